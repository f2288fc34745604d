"""Finds the state that a program declares, by opening its functions on the driver.

Promises: each function is opened and closed once, and gets no record.
Does not know: snapshots, engines."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from millstream.checkpoint.compatibility import DeclaredOperator
from millstream.checkpoint.restore import OperatorShape
from millstream.errors import InternalError
from millstream.graph.execution_plan import ExecutionPlan
from millstream.runtime.operators.sink import SinkSpec
from millstream.runtime.operators.source import SourceSpec
from millstream.runtime.task import Task, TaskEnvironment
from millstream.state.deltas import TableSchema
from millstream.state.handles import Handle
from millstream.state.snapshot import StoredFile


class _NoFiles:
    """State files of a task that has no state and must not write any."""

    def write(self, name: str, data: bytes) -> StoredFile:
        """Raise: there are no files."""
        raise InternalError(name)

    def read(self, handle: Handle) -> bytes:
        """Raise: there are no files."""
        raise InternalError(handle.name)


def find_declared_states(plan: ExecutionPlan, *, open_functions: bool = True) -> Iterator[DeclaredOperator]:
    """Yield every operator of a program, with the state it declares if functions may be opened."""
    for planned in plan.vertices:
        tables: dict[str, dict[str, TableSchema]] = {}
        if open_functions:
            environment = TaskEnvironment(files=_NoFiles(), open_store=lambda *_: None)
            task = Task(copy.deepcopy(planned.task), 0, environment)
            ends = [node.id for node in planned.task.operators if isinstance(node.spec, SourceSpec | SinkSpec)]
            # not opened, because readers and writers would connect to external systems
            tables = task.declared_tables(skip=ends)
            task.close()
        for node in planned.vertex.nodes:
            shape = OperatorShape(node.operator, node.name, planned.task.parallelism, planned.task.max_parallelism)
            yield DeclaredOperator(shape, node.uid, tables.get(node.operator) if open_functions else None, node.traits)


def find_built_tables(plan: ExecutionPlan) -> dict[str, dict[str, TableSchema]]:
    """Return the state tables that operators create when they are built, by operator; no function is opened."""
    tables: dict[str, dict[str, TableSchema]] = {}
    for planned in plan.vertices:
        task = Task(planned.task, 0, TaskEnvironment(files=_NoFiles(), open_store=lambda *_: None))
        tables |= task.declared_tables(skip=[node.id for node in planned.task.operators])
        task.close()
    return tables

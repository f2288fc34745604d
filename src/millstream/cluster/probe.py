"""The states a program declares, found out by opening its functions as a worker would.

Promises: functions are opened and closed once, on this machine, and see no record.
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
    """There is no state yet."""

    def write(self, name: str, data: bytes) -> StoredFile:
        """Refused."""
        raise InternalError(name)

    def read(self, handle: Handle) -> bytes:
        """Refused."""
        raise InternalError(handle.name)


def declared(plan: ExecutionPlan, *, open_functions: bool = True) -> Iterator[DeclaredOperator]:
    """Every operator of a program, with its states unless functions are not to be opened."""
    for planned in plan.vertices:
        tables: dict[str, dict[str, TableSchema]] = {}
        if open_functions:
            environment = TaskEnvironment(files=_NoFiles(), open_store=lambda *_: lambda: None)
            task = Task(copy.deepcopy(planned.task), 0, environment)
            ends = [node.id for node in planned.task.operators if isinstance(node.spec, SourceSpec | SinkSpec)]
            tables = task.declared_tables(skip=ends)  # a reader or writer would connect to somewhere
            task.close()
        for node in planned.vertex.nodes:
            shape = OperatorShape(node.operator, node.name, planned.task.parallelism, planned.task.max_parallelism)
            yield DeclaredOperator(shape, node.uid, tables.get(node.operator) if open_functions else None, node.traits)


def built(plan: ExecutionPlan) -> dict[str, dict[str, TableSchema]]:
    """The tables that operators have as soon as they are built, by operator; no function is opened."""
    found: dict[str, dict[str, TableSchema]] = {}
    for planned in plan.vertices:
        task = Task(planned.task, 0, TaskEnvironment(files=_NoFiles(), open_store=lambda *_: lambda: None))
        found |= task.declared_tables(skip=[node.id for node in planned.task.operators])
        task.close()
    return found

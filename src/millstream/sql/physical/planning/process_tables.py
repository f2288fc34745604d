"""Planning of process table functions.

Promises: tables are partitioned by PARTITION BY; a table argument gets updates only if the function supports them.
Does not know: what the function computes."""

from __future__ import annotations

from millstream.sql.errors import SqlNotSupported
from millstream.sql.functions import process_functions as p
from millstream.sql.logical import nodes as l
from millstream.sql.operators.process_table import ProcessTableSpec
from millstream.sql.physical.nodes import FORWARD, SINGLE, Distribution, Operation, distribute_by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.types.changelog_mode import ChangelogMode


def plan_process_table(planner: Planning, node: l.ProcessTable) -> Operation:
    """Plan a call of a process table function."""
    name, settings = node.function.name, planner.settings
    if settings.batch:
        message = f"the process table function '{name}' needs streaming mode, as in Flink"
        raise SqlNotSupported(message, hint="SET 'execution.runtime-mode' = 'streaming'", about=name)
    signature = node.function.signature
    children = tuple(planner.plan(table) for table in node.tables)
    distributions: list[Distribution] = []
    for child, argument, partition in zip(children, signature.tables, node.partitions, strict=True):
        if not child.mode.insert_only and p.ArgumentTrait.SUPPORT_UPDATES not in argument.traits:
            message = f"the table argument '{argument.name}' of '{name}' has updates ({child.mode.value})"
            hint = "declare it with ArgumentTrait.SUPPORT_UPDATES, or use an append-only table"
            raise SqlNotSupported(message, hint=hint, about=name)
        distributions.append(distribute_by_hash(partition) if partition else SINGLE if argument.is_set else FORWARD)
    spec = ProcessTableSpec(
        tuple(child.schema for child in children),
        node.schema,
        node.function,
        node.args,
        node.partitions,
        node.times,
        node.passes_columns,
        node.uid,
        settings.zone,
        settings.ttl,
    )
    if spec.has_time and not all(child.mode.insert_only for child in children):
        message = f"'{name}' has on_time, which is not possible with updates"
        raise SqlNotSupported(message, hint="leave on_time out, or use append-only tables", about=name)
    mode = ChangelogMode.RETRACT if node.function.function.emits_updates() else ChangelogMode.INSERT_ONLY
    if spec.has_time and not mode.insert_only:
        message = f"'{name}' emits updates, so it cannot have on_time"
        raise SqlNotSupported(message, hint="leave on_time out", about=name)
    detail = f"invocation=[{name}({', '.join(map(str, node.args))})], uid=[{node.uid or name}]"
    return Operation("ProcessTableFunction", detail, node.schema, children, tuple(distributions), spec, mode=mode)

"""Aggregation by group: of windows, and of all rows so far.

Promises: windows are told when they are over; other groups are added up where rows are first, if that is wanted.
Does not know: how aggregates are computed."""

from __future__ import annotations

from dataclasses import replace

from millstream.sql.logical import nodes as l
from millstream.sql.logical.rules.split_distinct import split_distinct
from millstream.sql.logical.window_columns import window_edges
from millstream.sql.operators.aggregate import group_aggregate, local_aggregate
from millstream.sql.physical.nodes import FORWARD, Operation, by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.physical.planning.texts import call_text
from millstream.sql.physical.planning.windows import plan_window_aggregate
from millstream.sql.types.changelog_mode import ChangelogMode


def plan_aggregate(planner: Planning, node: l.Aggregate, before: bool) -> Operation:
    """Rows by group: windows are told once, other groups are corrected."""
    buckets = planner.settings.distinct_buckets
    split = None if buckets is None or planner.settings.batch else split_distinct(node, buckets)
    if split is not None:
        return planner.plan(split, before=before)
    edges = window_edges(node.input)
    ends = {i for i, part in edges.items() if part[0] == "end"} & set(node.keys)
    schema = node.input.schema
    names = ", ".join(schema.names[i] for i in node.keys)
    calls = ", ".join(
        f"{call_text(c, schema)} AS {n}" for c, n in zip(node.calls, node.schema.names[len(node.keys) :], strict=True)
    )
    detail = (f"groupBy=[{names}], " if names else "") + f"select=[{', '.join(filter(None, (names, calls)))}]"
    if ends and any(edges[i][0] == "start" for i in node.keys if i in edges):
        end = min(ends)
        others = tuple(i for i in node.keys if i not in edges)
        return plan_window_aggregate(planner, node, end, edges[end], others, detail)
    child = planner.plan(node.input)
    retracts = not child.mode.insert_only
    made = group_aggregate.GroupAggregateSpec(
        child.schema,
        node.schema,
        node.keys,
        node.calls,
        retracts,
        before,
        planner.settings.mini_batch,
        node.ttl if node.ttl is not None else planner.settings.ttl,
        planner.settings.mini_batch_size,
    )
    mode = ChangelogMode.RETRACT if before else ChangelogMode.UPSERT
    if not node.calls and not retracts:
        mode = ChangelogMode.INSERT_ONLY
    keys = frozenset((tuple(range(len(node.keys))),))
    if made.columnar and planner.settings.two_phase:
        return _two_phases(made, detail, child, mode)
    return Operation(
        "GroupAggregate", detail, node.schema, (child,), (by_hash(node.keys),), made, mode=mode, upsert_keys=keys
    )


def _two_phases(
    spec: group_aggregate.GroupAggregateSpec, detail: str, child: Operation, mode: ChangelogMode
) -> Operation:
    """Rows are aggregated where they are, then the parts by key."""
    schema = local_aggregate.partial_schema(spec.input, spec.keys, spec.calls)
    first = local_aggregate.LocalAggregateSpec(spec.input, schema, spec.keys, spec.calls)
    local = Operation("LocalGroupAggregate", detail, schema, (child,), (FORWARD,), first)
    keys = tuple(range(len(spec.keys)))
    return Operation(
        "GlobalGroupAggregate",
        detail,
        spec.output,
        (local,),
        (by_hash(keys),),
        replace(spec, partial=True),
        mode=mode,
        upsert_keys=frozenset((keys,)),
    )

"""Planning of GROUP BY: window aggregates and unbounded aggregates.

Promises: window aggregates emit when the window ends; other groups have a local phase if the session enables it.
Does not know: how aggregates are computed."""

from __future__ import annotations

from dataclasses import replace

from millstream.sql.logical import nodes as l
from millstream.sql.logical.rules.split_distinct import split_distinct
from millstream.sql.logical.window_columns import find_window_edges
from millstream.sql.operators.aggregate import group_aggregate, local_aggregate
from millstream.sql.physical.nodes import FORWARD, Operation, distribute_by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.physical.planning.texts import format_call
from millstream.sql.physical.planning.windows import plan_count_windows, plan_window_aggregate
from millstream.sql.types.changelog_mode import ChangelogMode


def plan_aggregate(planner: Planning, node: l.Aggregate, before: bool) -> Operation:
    """Plan GROUP BY: by windows, whose results are final, or by other keys, whose results are updated."""
    buckets = planner.settings.distinct_buckets
    is_never_split = planner.settings.batch or node.count_window is not None
    split = None if buckets is None or is_never_split else split_distinct(node, buckets)
    if split is not None:
        return planner.plan(split, before=before)
    edges = find_window_edges(node.input)
    ends = {i for i, part in edges.items() if part[0] == "end"} & set(node.keys)
    schema = node.input.schema
    names = ", ".join(schema.names[i] for i in node.keys)
    calls = ", ".join(
        f"{format_call(c, schema)} AS {n}" for c, n in zip(node.calls, node.schema.names[len(node.keys) :], strict=True)
    )
    detail = (f"groupBy=[{names}], " if names else "") + f"select=[{', '.join(filter(None, (names, calls)))}]"
    if node.count_window is not None:
        return plan_count_windows(planner, node, node.count_window, detail)
    if ends and any(edges[i][0] == "start" for i in node.keys if i in edges):
        end = min(ends)
        others = tuple(i for i in node.keys if i not in edges)
        return plan_window_aggregate(planner, node, end, edges[end], others, detail)
    child = planner.plan(node.input)
    retracts = not child.mode.insert_only
    spec = group_aggregate.GroupAggregateSpec(
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
    if spec.columnar and planner.settings.two_phase:
        return _plan_two_phases(spec, detail, child, mode)
    return Operation(
        "GroupAggregate",
        detail,
        node.schema,
        (child,),
        (distribute_by_hash(node.keys),),
        spec,
        mode=mode,
        upsert_keys=keys,
    )


def _plan_two_phases(
    spec: group_aggregate.GroupAggregateSpec, detail: str, child: Operation, mode: ChangelogMode
) -> Operation:
    """Plan a local aggregate before the exchange, and a global aggregate after it."""
    schema = local_aggregate.create_partial_schema(spec.input, spec.keys, spec.calls)
    local_spec = local_aggregate.LocalAggregateSpec(spec.input, schema, spec.keys, spec.calls, spec.mini_batch_size)
    local = Operation("LocalGroupAggregate", detail, schema, (child,), (FORWARD,), local_spec)
    keys = tuple(range(len(spec.keys)))
    return Operation(
        "GlobalGroupAggregate",
        detail,
        spec.output,
        (local,),
        (distribute_by_hash(keys),),
        replace(spec, partial=True),
        mode=mode,
        upsert_keys=frozenset((keys,)),
    )

"""Aggregation by group: of windows, of sessions, and of all rows so far.

Promises: windows are told when they are over; other groups are added up where rows are first, if that is wanted.
Does not know: how aggregates are computed."""

from __future__ import annotations

from dataclasses import replace

from millstream.sql import logical as l
from millstream.sql import types as t
from millstream.sql.expressions import Ref
from millstream.sql.operators import group_aggregate, local_aggregate, partials, session_aggregate, windows
from millstream.sql.physical import FORWARD, ChangelogMode, Operation, by_hash
from millstream.sql.planning.contract import Planning
from millstream.sql.planning.texts import call_text
from millstream.sql.rules.split_distinct import split_distinct
from millstream.sql.window_columns import window_edges


def plan_aggregate(planner: Planning, node: l.Aggregate, before: bool) -> Operation:
    """Rows by group: windows are told once, other groups are corrected."""
    buckets = planner.settings.distinct_buckets
    split = None if buckets is None or planner.settings.batch else split_distinct(node, buckets)
    if split is not None:
        return planner.plan(split, before=before)
    child = planner.plan(node.input)
    retracts = not child.mode.insert_only
    edges = window_edges(node.input)
    starts = {i for i, part in edges.items() if part[0] == "start"}
    ends = {i for i, part in edges.items() if part[0] == "end"}
    grouped = set(node.keys)
    names = ", ".join(child.schema.names[i] for i in node.keys)
    calls = ", ".join(
        f"{call_text(c, child.schema)} AS {n}"
        for c, n in zip(node.calls, node.schema.names[len(node.keys) :], strict=True)
    )
    detail = (f"groupBy=[{names}], " if names else "") + f"select=[{', '.join(filter(None, (names, calls)))}]"
    if grouped & starts and grouped & ends:
        end = min(grouped & ends)
        window = edges[end][1]
        sessions = _session_aggregate(planner, node, detail) if window.kind == "SESSION" else None
        if sessions is not None:
            return sessions
        others = tuple(i for i in node.keys if i not in edges)
        spec = windows.WindowAggregateSpec(
            child.schema,
            node.schema,
            node.keys,
            others,
            end,
            node.calls,
            retracts,
            window.processing,
            edges[end][2],
            planner.settings.zone,
            window,
        )
        keys = frozenset((tuple(range(len(node.keys))),))
        return Operation("WindowAggregate", detail, node.schema, (child,), (by_hash(others),), spec, upsert_keys=keys)
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


def _session_aggregate(planner: Planning, node: l.Aggregate, detail: str) -> Operation | None:
    """Sessions that are added up while they are open; None where their rows must be kept."""
    inner, places = node.input, list(range(len(node.input.schema)))
    while isinstance(inner, l.Project) and all(isinstance(each, Ref) for each in inner.exprs):
        places = [inner.exprs[i].index for i in places]  # type: ignore[attr-defined]
        inner = inner.input
    if not isinstance(inner, l.WindowTable) or inner.window.processing:
        return None
    window, schema = inner.window, inner.input.schema
    if isinstance(schema.types[window.time], t.LocalZonedTimestampType) and planner.settings.zone != "UTC":
        return None
    keys = tuple(places[i] for i in node.keys)
    calls = tuple(
        replace(
            call,
            args=tuple(places[i] for i in call.args),
            filter=None if call.filter is None else places[call.filter],
        )
        for call in node.calls
    )
    read = [i for call in calls for i in (*call.args, *(() if call.filter is None else (call.filter,)))]
    kinds = [schema.types[i] for i in window.partition]
    if {i for i in keys if i < len(schema)} != set(window.partition) or any(i >= len(schema) for i in read):
        return None
    child = planner.plan(inner.input)
    if not child.mode.insert_only or not partials.can_aggregate(calls, kinds):
        return None
    spec = session_aggregate.SessionAggregateSpec(
        child.schema, node.schema, keys, window.partition, window.time, window.size, calls
    )
    where = (by_hash(window.partition),)
    found = frozenset((tuple(range(len(node.keys))),))
    return Operation("WindowAggregate", detail, node.schema, (child,), where, spec, upsert_keys=found)


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

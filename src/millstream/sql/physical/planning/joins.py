"""Planning of joins: regular joins, window joins, interval joins and temporal joins.

Promises: equalities between both sides are the keys by which rows are partitioned; other conditions are evaluated for
each pair.
Does not know: how rows are kept."""

from __future__ import annotations

from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import Expression, Ref, combine_conjuncts, shift_references
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.sources import as_columns, find_equi_keys
from millstream.sql.logical.window_columns import find_window_edges
from millstream.sql.operators import calc
from millstream.sql.operators.join import regular_join as join
from millstream.sql.operators.join import time_joins, window_tables
from millstream.sql.physical.nodes import FORWARD, Operation, distribute_by_hash
from millstream.sql.physical.planning.calcs import project_keys
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.physical.planning.intervals import compute_interval_bounds
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

_JOIN_NAMES = {
    "inner": "InnerJoin",
    "left": "LeftOuterJoin",
    "right": "RightOuterJoin",
    "full": "FullOuterJoin",
    "semi": "LeftSemiJoin",
    "anti": "LeftAntiJoin",
}


def plan_join(planner: Planning, node: l.Join) -> Operation:
    """Plan a join: as a window join, an interval join, or a regular join."""
    width = len(node.left.schema)
    lefts, rights, rest = find_equi_keys(node.condition, width)
    left_plan, left_keys = as_columns(node.left, lefts)
    right_plan, right_keys = as_columns(node.right, rights)
    left_plan, right_plan, left_keys, right_keys, rest = _shift_condition(
        node, left_plan, right_plan, left_keys, right_keys, rest
    )
    left, right = planner.plan(left_plan), planner.plan(right_plan)
    condition = combine_conjuncts(rest)
    is_semi = node.kind in ("semi", "anti")
    schema = left.schema if is_semi else l.join_schemas(left.schema, right.schema, node.kind)
    bounds = None
    if node.kind not in ("semi", "anti") and left.mode.insert_only and right.mode.insert_only:
        bounds = compute_interval_bounds(rest, left_plan.schema, right_plan.schema)
    keys = (left_keys, right_keys)
    distributions = (distribute_by_hash(left_keys), distribute_by_hash(right_keys))
    text = [f"joinType=[{_JOIN_NAMES[node.kind]}]"]
    equalities = [
        f"{left.schema.names[a]} = {right.schema.names[b]}" for a, b in zip(left_keys, right_keys, strict=True)
    ]
    text.append(f"where=[{' AND '.join(equalities) or 'true'}]")
    window = _find_window(left_plan, right_plan, left_keys, right_keys)
    if window is not None and left.mode.insert_only and right.mode.insert_only:
        key_index, edge = window
        spec: object = window_tables.WindowJoinSpec(
            left.schema, right.schema, schema, node.kind, keys, (left_keys[key_index], right_keys[key_index]),
            condition, edge[2], edge[1].processing, planner.settings.zone,
        )  # fmt: skip
        operation = Operation("WindowJoin", ", ".join(text), schema, (left, right), distributions, spec)
    elif bounds is not None:
        (left_time, right_time), lower, upper, others = bounds
        processing = t.get_time_attribute(left_plan.schema.types[left_time]) == t.PROCTIME
        spec = time_joins.IntervalJoinSpec(
            left.schema, right.schema, schema, node.kind, keys, (left_time, right_time), lower, upper,
            combine_conjuncts(others), processing, planner.settings.zone,
        )  # fmt: skip
        operation = Operation("IntervalJoin", ", ".join(text), schema, (left, right), distributions, spec)
    else:
        if node.kind == "inner" and not left_keys and not planner.settings.batch:
            text.append("single=[true]")
        left_ttl, right_ttl = node.ttl
        ttl = (
            planner.settings.ttl if left_ttl is None else left_ttl,
            planner.settings.ttl if right_ttl is None else right_ttl,
        )
        is_insert_only = left.mode.insert_only and right.mode.insert_only
        spec = join.JoinSpec(
            left.schema, right.schema, schema, node.kind, keys, condition, ttl, planner.settings.zone, is_insert_only
        )
        mode = ChangelogMode.INSERT_ONLY if is_insert_only and node.kind in ("inner", "semi") else ChangelogMode.RETRACT
        upsert = _join_keys(left, right, node.kind, left_keys, right_keys)
        operation = Operation(
            "Join", ", ".join(text), schema, (left, right), distributions, spec, mode=mode, upsert_keys=upsert
        )
    return _remove_key_columns(planner, operation, node, len(left_plan.schema))


def _find_window(
    left: l.Plan, right: l.Plan, left_keys: tuple[int, ...], right_keys: tuple[int, ...]
) -> tuple[int, tuple[str, l.WindowSpec, bool]] | None:
    """Return the index of the window end among the keys and its window, if the join is by the starts and ends of
    windows."""
    left_edges, right_edges = find_window_edges(left), find_window_edges(right)
    parts = [
        (left_edges.get(a, ("",))[0], index)
        for index, (a, b) in enumerate(zip(left_keys, right_keys, strict=True))
        if a in left_edges and b in right_edges and left_edges[a][0] == right_edges[b][0]
    ]
    ends = [index for part, index in parts if part == "end"]
    if not ends or not any(part == "start" for part, _ in parts):
        return None
    return ends[0], left_edges[left_keys[ends[0]]]


def _remove_key_columns(planner: Planning, operation: Operation, node: l.Join, left_width: int) -> Operation:
    """Project the join to the columns of the logical join, if key columns were added."""
    if len(operation.schema) == len(node.schema):
        return operation if operation.schema.names == node.schema.names else _rename(operation, node.schema)
    width = len(node.left.schema)
    indexes = list(range(width))
    if node.kind not in ("semi", "anti"):
        indexes += [left_width + i for i in range(len(node.right.schema))]
    refs = tuple(Ref(operation.schema.types[i], i) for i in indexes)
    spec = calc.CalcSpec(operation.schema, node.schema, None, refs, planner.settings.zone)
    keys = project_keys(operation.upsert_keys, refs)
    return Operation(
        "Calc",
        f"select=[{', '.join(node.schema.names)}]",
        node.schema,
        (operation,),
        (FORWARD,),
        spec,
        mode=operation.mode,
        upsert_keys=keys,
    )


def plan_temporal_join(planner: Planning, node: l.TemporalJoin) -> Operation:
    """Plan a temporal join: each row with the version of another table at its time."""
    left = planner.plan(node.left)
    attribute = t.get_time_attribute(node.left.schema.types[node.time])
    lookup_join = planner.lookup(node, left) if attribute == t.PROCTIME else None
    if lookup_join is not None:
        return lookup_join
    outside, planner.versions = planner.versions, True
    right = planner.plan(node.right)
    planner.versions = outside
    times = [i for i, data_type in enumerate(node.right.schema.types) if t.get_time_attribute(data_type) == t.ROWTIME]
    processing = attribute == t.PROCTIME
    if not processing and not times:
        message = "an event-time temporal join needs a versioned table: a primary key and a watermark"
        hint = "declare both in CREATE TABLE, or deduplicate in a view"
        raise SqlValidationError(message, hint=hint, about="SYSTEM_TIME")
    keys = (node.left_keys, node.right_keys)
    spec = time_joins.TemporalJoinSpec(
        left.schema, right.schema, node.schema, node.kind, keys, (node.time, times[0] if times else None),
        node.condition, processing, planner.settings.zone, planner.settings.ttl,
    )  # fmt: skip
    pairs = " AND ".join(f"{left.schema.names[a]} = {right.schema.names[b]}" for a, b in zip(*keys, strict=True))
    detail = f"joinType=[{_JOIN_NAMES[node.kind]}], where=[{pairs}]"
    distributions = (distribute_by_hash(node.left_keys), distribute_by_hash(node.right_keys))
    return Operation(
        "TemporalJoin",
        detail,
        node.schema,
        (left, right),
        distributions,
        spec,
        mode=left.mode,
        upsert_keys=left.upsert_keys,
    )


def _rename(operation: Operation, schema: t.RowType) -> Operation:
    refs = tuple(Ref(data_type, i) for i, data_type in enumerate(operation.schema.types))
    spec = calc.CalcSpec(operation.schema, schema, None, refs)
    return Operation(
        "Calc",
        f"select=[{', '.join(schema.names)}]",
        schema,
        (operation,),
        (FORWARD,),
        spec,
        mode=operation.mode,
        upsert_keys=operation.upsert_keys,
    )


def _shift_condition(
    node: l.Join,
    left: l.Plan,
    right: l.Plan,
    left_keys: tuple[int, ...],
    right_keys: tuple[int, ...],
    rest: list[Expression],
) -> tuple[l.Plan, l.Plan, tuple[int, ...], tuple[int, ...], list[Expression]]:
    """Shift the rest of the condition for the key columns that were added to the left side."""
    added = len(left.schema) - len(node.left.schema)
    if added:
        width = len(node.left.schema)
        rest = [shift_references(part, lambda i: i if i < width else i + added) for part in rest]
    return left, right, left_keys, right_keys, rest


def _join_keys(
    left: Operation, right: Operation, join_type: str, _left_keys: tuple[int, ...], right_keys: tuple[int, ...]
) -> frozenset[tuple[int, ...]]:
    if join_type in ("semi", "anti"):
        return left.upsert_keys
    width = len(left.schema)
    upsert_keys: set[tuple[int, ...]] = set()
    for left_key in left.upsert_keys:
        for right_key in right.upsert_keys:
            upsert_keys.add((*left_key, *(i + width for i in right_key)))
        if any(set(right_key) <= set(right_keys) for right_key in right.upsert_keys) and join_type in ("inner", "left"):
            upsert_keys.add(left_key)
    return frozenset(upsert_keys)

"""Joins: regular, in windows, within an interval of time, and with versions of a table.

Promises: conditions that compare columns of both sides distribute the rows; the rest is looked at pair by pair.
Does not know: how rows are kept."""

from __future__ import annotations

from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import Expression, Ref, conjunction, shifted
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.sources import as_columns, equi_keys
from millstream.sql.logical.window_columns import window_edges
from millstream.sql.operators import calc
from millstream.sql.operators.join import regular_join as join
from millstream.sql.operators.join import time_joins, window_tables
from millstream.sql.physical.nodes import FORWARD, Operation, by_hash
from millstream.sql.physical.planning.calcs import projected_keys
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.physical.planning.intervals import interval_bounds
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
    """Two tables by a condition: in windows, within an interval, or for ever."""
    width = len(node.left.schema)
    lefts, rights, rest = equi_keys(node.condition, width)
    left_plan, left_keys = as_columns(node.left, lefts)
    right_plan, right_keys = as_columns(node.right, rights)
    left_plan, right_plan, left_keys, right_keys, rest = _realigned(
        node, left_plan, right_plan, left_keys, right_keys, rest
    )
    left, right = planner.plan(left_plan), planner.plan(right_plan)
    condition = conjunction(rest)
    semi = node.kind in ("semi", "anti")
    schema = left.schema if semi else l.joined_schema(left.schema, right.schema, node.kind)
    bounds = None
    if node.kind not in ("semi", "anti") and left.mode.insert_only and right.mode.insert_only:
        bounds = interval_bounds(rest, left_plan.schema, right_plan.schema)
    keys = (left_keys, right_keys)
    where = (by_hash(left_keys), by_hash(right_keys))
    text = [f"joinType=[{_JOIN_NAMES[node.kind]}]"]
    equalities = [
        f"{left.schema.names[a]} = {right.schema.names[b]}" for a, b in zip(left_keys, right_keys, strict=True)
    ]
    text.append(f"where=[{' AND '.join(equalities) or 'true'}]")
    window = _window_of(left_plan, right_plan, left_keys, right_keys)
    if window is not None and left.mode.insert_only and right.mode.insert_only:
        place, found = window
        spec: object = window_tables.WindowJoinSpec(
            left.schema, right.schema, schema, node.kind, keys, (left_keys[place], right_keys[place]), condition,
            found[2], found[1].processing, planner.settings.zone,
        )  # fmt: skip
        made = Operation("WindowJoin", ", ".join(text), schema, (left, right), where, spec)
    elif bounds is not None:
        (left_time, right_time), lower, upper, others = bounds
        processing = t.attribute_of(left_plan.schema.types[left_time]) == t.PROCTIME
        spec = time_joins.IntervalJoinSpec(
            left.schema, right.schema, schema, node.kind, keys, (left_time, right_time), lower, upper,
            conjunction(others), processing, planner.settings.zone,
        )  # fmt: skip
        made = Operation("IntervalJoin", ", ".join(text), schema, (left, right), where, spec)
    else:
        if node.kind == "inner" and not left_keys and not planner.settings.batch:
            text.append("single=[true]")
        one, other = node.ttl
        ttl = (planner.settings.ttl if one is None else one, planner.settings.ttl if other is None else other)
        growing = left.mode.insert_only and right.mode.insert_only
        spec = join.JoinSpec(
            left.schema, right.schema, schema, node.kind, keys, condition, ttl, planner.settings.zone, growing
        )
        mode = ChangelogMode.INSERT_ONLY if growing and node.kind in ("inner", "semi") else ChangelogMode.RETRACT
        upsert = _join_keys(left, right, node.kind, left_keys, right_keys)
        made = Operation("Join", ", ".join(text), schema, (left, right), where, spec, mode=mode, upsert_keys=upsert)
    return _back(planner, made, node, len(left_plan.schema))


def _window_of(
    left: l.Plan, right: l.Plan, left_keys: tuple[int, ...], right_keys: tuple[int, ...]
) -> tuple[int, tuple[str, l.WindowSpec, bool]] | None:
    """Where windows' ends are among the keys of a join, if it is by starts and ends of equal windows."""
    one, other = window_edges(left), window_edges(right)
    parts = [
        (one.get(a, ("",))[0], place)
        for place, (a, b) in enumerate(zip(left_keys, right_keys, strict=True))
        if a in one and b in other and one[a][0] == other[b][0]
    ]
    ends = [place for part, place in parts if part == "end"]
    if not ends or not any(part == "start" for part, _ in parts):
        return None
    return ends[0], one[left_keys[ends[0]]]


def _back(planner: Planning, made: Operation, node: l.Join, left_width: int) -> Operation:
    """Only the columns the logical join has, where key columns were added."""
    if len(made.schema) == len(node.schema):
        return made if made.schema.names == node.schema.names else _renamed(made, node.schema)
    width = len(node.left.schema)
    places = list(range(width))
    if node.kind not in ("semi", "anti"):
        places += [left_width + i for i in range(len(node.right.schema))]
    refs = tuple(Ref(made.schema.types[i], i) for i in places)
    spec = calc.CalcSpec(made.schema, node.schema, None, refs, planner.settings.zone)
    keys = projected_keys(made.upsert_keys, refs)
    return Operation(
        "Calc",
        f"select=[{', '.join(node.schema.names)}]",
        node.schema,
        (made,),
        (FORWARD,),
        spec,
        mode=made.mode,
        upsert_keys=keys,
    )


def plan_temporal_join(planner: Planning, node: l.TemporalJoin) -> Operation:
    """Each row with the version of another table at its time."""
    left = planner.plan(node.left)
    kind = t.attribute_of(node.left.schema.types[node.time])
    found = planner.lookup(node, left) if kind == t.PROCTIME else None
    if found is not None:
        return found
    outside, planner.versions = planner.versions, True
    right = planner.plan(node.right)
    planner.versions = outside
    times = [i for i, k in enumerate(node.right.schema.types) if t.attribute_of(k) == t.ROWTIME]
    processing = kind == t.PROCTIME
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
    where = (by_hash(node.left_keys), by_hash(node.right_keys))
    return Operation(
        "TemporalJoin",
        detail,
        node.schema,
        (left, right),
        where,
        spec,
        mode=left.mode,
        upsert_keys=left.upsert_keys,
    )


def _renamed(made: Operation, schema: t.RowType) -> Operation:
    refs = tuple(Ref(kind, i) for i, kind in enumerate(made.schema.types))
    spec = calc.CalcSpec(made.schema, schema, None, refs)
    return Operation(
        "Calc",
        f"select=[{', '.join(schema.names)}]",
        schema,
        (made,),
        (FORWARD,),
        spec,
        mode=made.mode,
        upsert_keys=made.upsert_keys,
    )


def _realigned(
    node: l.Join,
    left: l.Plan,
    right: l.Plan,
    left_keys: tuple[int, ...],
    right_keys: tuple[int, ...],
    rest: list[Expression],
) -> tuple[l.Plan, l.Plan, tuple[int, ...], tuple[int, ...], list[Expression]]:
    """The rest of the condition over the sides as they are with their key columns."""
    added = len(left.schema) - len(node.left.schema)
    if added:
        width = len(node.left.schema)
        rest = [shifted(part, lambda i: i if i < width else i + added) for part in rest]
    return left, right, left_keys, right_keys, rest


def _join_keys(
    left: Operation, right: Operation, kind: str, _left_keys: tuple[int, ...], right_keys: tuple[int, ...]
) -> frozenset[tuple[int, ...]]:
    if kind in ("semi", "anti"):
        return left.upsert_keys
    width = len(left.schema)
    found: set[tuple[int, ...]] = set()
    for one in left.upsert_keys:
        for other in right.upsert_keys:
            found.add((*one, *(i + width for i in other)))
        if any(set(other) <= set(right_keys) for other in right.upsert_keys) and kind in ("inner", "left"):
            found.add(one)
    return frozenset(found)

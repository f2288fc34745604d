"""Aggregation of windows: told when they are over.

Promises: where it can be, rows are added up before they are put into windows, and before they are dealt out by key.
Does not know: how aggregates are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.sql.evaluation.repeated import is_pure
from millstream.sql.expressions.nodes import AggregateCall, Expression, Ref, references, shifted
from millstream.sql.logical import nodes as l
from millstream.sql.operators.aggregate.local_aggregate import LocalAggregateSpec, partial_schema
from millstream.sql.operators.aggregate.partials import ROWS, can_aggregate
from millstream.sql.operators.window.local_sessions import LocalSessionAggregateSpec, session_schema
from millstream.sql.operators.window.local_windows import LocalWindowAggregateSpec, sliced_schema
from millstream.sql.operators.window.session_aggregate import SessionAggregateSpec
from millstream.sql.operators.window.sliced_windows import SlicedWindowAggregateSpec
from millstream.sql.operators.window.slices import can_slice
from millstream.sql.operators.window.window_aggregate import WindowAggregateSpec
from millstream.sql.physical.nodes import FORWARD, Operation, by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.physical.planning.placement import Placements
from millstream.sql.types import data_types as t


def plan_window_aggregate(
    planner: Planning,
    node: l.Aggregate,
    end: int,
    edge: tuple[str, l.WindowSpec, bool],
    others: tuple[int, ...],
    detail: str,
) -> Operation:
    """Groups by windows that end at the column `end`, which is the given edge, and by `others`."""
    below = _below(node.input)
    if below is not None:
        made = _of_sessions if below.window.kind == "SESSION" else _of_slices
        found = made(planner, node, below, detail)
        if found is not None:
            return found
    child = planner.plan(node.input)
    window = edge[1]
    spec = WindowAggregateSpec(
        child.schema,
        node.schema,
        node.keys,
        others,
        end,
        node.calls,
        not child.mode.insert_only,
        window.processing,
        edge[2],
        planner.settings.zone,
        window,
    )
    keys = frozenset((tuple(range(len(node.keys))),))
    single = Operation("WindowAggregate", detail, node.schema, (child,), (by_hash(others),), spec, upsert_keys=keys)
    two = planner.settings.two_phase and not planner.settings.batch and spec.columnar
    return _two_phases(single, spec) if two and not Placements().in_place(single, 0) else single


def _two_phases(made: Operation, spec: WindowAggregateSpec) -> Operation:
    """Rows are aggregated where they are, then the parts by key."""
    calls = (*spec.calls, ROWS)
    schema = partial_schema(spec.input, spec.keys, calls)
    first = LocalAggregateSpec(spec.input, schema, spec.keys, calls)
    local = Operation("LocalWindowAggregate", made.detail, schema, made.inputs, (FORWARD,), first)
    where = by_hash(tuple(spec.keys.index(i) for i in spec.others))
    return replace(
        made, name="GlobalWindowAggregate", inputs=(local,), distributions=(where,), spec=replace(spec, partial=True)
    )


# ------------------------------------------------------------------------------------------ rows before their windows


@dataclass(frozen=True)
class _Below:
    """Rows, the windows they are to be put into, and where each column is: behind the columns of the rows are the
    start, the end and the time of the window."""

    rows: l.Plan
    window: l.WindowSpec
    places: tuple[int, ...]

    def own(self, columns: set[int]) -> bool:
        """Whether columns are of the rows, not of their windows."""
        return all(self.places[i] < len(self.rows.schema) for i in columns)


def _below(plan: l.Plan) -> _Below | None:
    """A plan as what it is before rows are put into windows; None where that cannot be told apart."""
    match plan:
        case l.WindowTable(input=rows, window=window):
            return _Below(rows, window, tuple(range(len(plan.schema))))
        case l.Filter(input=inner, condition=condition):
            found = _below(inner)
            if found is None or found.window.kind == "SESSION" or not is_pure(condition):
                return None
            if not found.own(references(condition)):
                return None
            rows = l.Filter(found.rows.schema, found.rows, shifted(condition, found.places.__getitem__))
            return replace(found, rows=rows)
        case l.Project(input=inner, exprs=exprs):
            found = _below(inner)
            if found is None or all(isinstance(each, Ref) for each in exprs):
                return found and replace(found, places=tuple(found.places[each.index] for each in exprs))  # type: ignore[attr-defined]
            return _projected(found, exprs, plan.schema.names)
    return None


def _projected(found: _Below, exprs: Sequence[Expression], names: Sequence[str]) -> _Below | None:
    """Columns computed before rows are put into windows; the time goes with them."""
    window, before = found.window, found.rows.schema
    if window.kind == "SESSION":
        return None
    made: list[Expression] = []
    called: list[str] = []
    places: list[int] = []
    for name, each in zip(names, exprs, strict=True):
        if isinstance(each, Ref) and not found.own({each.index}):
            places.append(found.places[each.index] - len(before))  # numbers of edges, which move behind the columns
            continue
        if not is_pure(each) or not found.own(references(each)):
            return None
        made.append(shifted(each, found.places.__getitem__))
        called.append(name)
        places.append(-len(made))
    made.append(Ref(before.types[window.time], window.time))
    called.append(before.names[window.time])
    rows = l.project(found.rows, made, called)
    moved = tuple(-1 - place if place < 0 else len(made) + place for place in places)
    return _Below(rows, replace(window, time=len(made) - 1), moved)


def _moved(call: AggregateCall, places: Sequence[int]) -> AggregateCall:
    condition = None if call.filter is None else places[call.filter]
    return replace(call, args=tuple(places[i] for i in call.args), filter=condition)


def _columns_of(call: AggregateCall) -> set[int]:
    return {*call.args, *(() if call.filter is None else (call.filter,))}


def _of_slices(planner: Planning, node: l.Aggregate, below: _Below, detail: str) -> Operation | None:
    """Windows of rows that are added up by slice; None where each row must be put into its windows."""
    window, schema = below.window, below.rows.schema
    zoned = window.processing or isinstance(schema.types[window.time], t.LocalZonedTimestampType)
    if planner.settings.batch or not can_slice(window) or (zoned and planner.settings.zone != "UTC"):
        return None
    if not all(below.own(_columns_of(call)) for call in node.calls):
        return None
    keys = tuple(below.places[i] for i in node.keys)
    calls = tuple(_moved(call, below.places) for call in node.calls)
    partition = tuple(dict.fromkeys(i for i in keys if i < len(schema)))
    if not can_aggregate(calls, [schema.types[i] for i in partition]):
        return None
    child = planner.plan(below.rows)
    if not child.mode.insert_only:
        return None
    spec = SlicedWindowAggregateSpec(schema, node.schema, keys, partition, window, calls)
    found = frozenset((tuple(range(len(keys))),))
    where = (by_hash(partition),)
    made = Operation("WindowAggregate", detail, node.schema, (child,), where, spec, upsert_keys=found)
    if not planner.settings.two_phase or Placements().in_place(made, 0):
        return made
    sliced = sliced_schema(schema, partition, calls)
    first = LocalWindowAggregateSpec(schema, sliced, partition, calls, window)
    return _second(made, Operation("LocalWindowAggregate", detail, sliced, (child,), (FORWARD,), first))


def _of_sessions(planner: Planning, node: l.Aggregate, below: _Below, detail: str) -> Operation | None:
    """Sessions that are added up while they are open; None where their rows must be kept."""
    window, schema = below.window, below.rows.schema
    if window.processing:
        return None
    if isinstance(schema.types[window.time], t.LocalZonedTimestampType) and planner.settings.zone != "UTC":
        return None
    keys = tuple(below.places[i] for i in node.keys)
    calls = tuple(_moved(call, below.places) for call in node.calls)
    kinds = [schema.types[i] for i in window.partition]
    if {i for i in keys if i < len(schema)} != set(window.partition):
        return None
    if not all(below.own(_columns_of(call)) for call in node.calls):
        return None
    child = planner.plan(below.rows)
    if not child.mode.insert_only or not can_aggregate(calls, kinds):
        return None
    spec = SessionAggregateSpec(child.schema, node.schema, keys, window.partition, window.time, window.size, calls)
    found = frozenset((tuple(range(len(node.keys))),))
    where = (by_hash(window.partition),)
    made = Operation("WindowAggregate", detail, node.schema, (child,), where, spec, upsert_keys=found)
    if not planner.settings.two_phase or planner.settings.batch or Placements().in_place(made, 0):
        return made
    sessions = session_schema(schema, window.partition, calls)
    first = LocalSessionAggregateSpec(schema, sessions, window.partition, window.time, window.size, calls)
    return _second(made, Operation("LocalWindowAggregate", detail, sessions, (child,), (FORWARD,), first))


def _second(made: Operation, local: Operation) -> Operation:
    """An aggregation in one phase as the second of two; the keys come first in what the first one makes."""
    where = by_hash(tuple(range(len(made.spec.partition))))
    spec = replace(made.spec, partial=True)
    return replace(made, name="GlobalWindowAggregate", inputs=(local,), distributions=(where,), spec=spec)

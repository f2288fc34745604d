"""Planning of window aggregates, which emit when the window ends.

Promises: if possible, rows are aggregated before they are assigned to windows, and before they are partitioned by key.
Does not know: how aggregates are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.sql.errors import SqlNotSupported
from millstream.sql.evaluation.repeated import is_pure
from millstream.sql.expressions.nodes import AggregateCall, Expression, Ref, find_references, shift_references
from millstream.sql.logical import nodes as l
from millstream.sql.operators.aggregate.local_aggregate import LocalAggregateSpec, create_partial_schema
from millstream.sql.operators.aggregate.partials import ROWS, can_aggregate
from millstream.sql.operators.window.count_windows import CountWindowAggregateSpec
from millstream.sql.operators.window.local_sessions import LocalSessionAggregateSpec, create_session_schema
from millstream.sql.operators.window.local_windows import LocalWindowAggregateSpec, create_sliced_schema
from millstream.sql.operators.window.session_aggregate import SessionAggregateSpec
from millstream.sql.operators.window.sliced_windows import SlicedWindowAggregateSpec
from millstream.sql.operators.window.slices import can_slice
from millstream.sql.operators.window.window_aggregate import WindowAggregateSpec
from millstream.sql.physical.nodes import FORWARD, Operation, distribute_by_hash
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
    """Plan groups by windows, whose end is the column `end` with the window `edge`, and by the keys `others`."""
    unwindowed = _remove_window(node.input)
    if unwindowed is not None:
        plan_unwindowed = _plan_sessions if unwindowed.window.kind == "SESSION" else _plan_slices
        planned = plan_unwindowed(planner, node, unwindowed, detail)
        if planned is not None:
            return planned
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
    one_phase = Operation(
        "WindowAggregate", detail, node.schema, (child,), (distribute_by_hash(others),), spec, upsert_keys=keys
    )
    has_two_phases = planner.settings.two_phase and not planner.settings.batch and spec.columnar
    return (
        _plan_two_phases(one_phase, spec) if has_two_phases and not Placements().in_place(one_phase, 0) else one_phase
    )


def plan_count_windows(planner: Planning, node: l.Aggregate, window: tuple[int, int], detail: str) -> Operation:
    """Plan groups by windows of a number of rows."""
    child = planner.plan(node.input)
    if not child.mode.insert_only:
        message = "a window of rows needs input without updates"
        raise SqlNotSupported(message, hint="window the table before the operation that updates it")
    size, slide = window
    spec = CountWindowAggregateSpec(child.schema, node.schema, node.keys, node.calls, size, slide)
    window_detail = f"window=[{size} rows every {slide} rows], {detail}"
    return Operation(
        "GroupWindowAggregate", window_detail, node.schema, (child,), (distribute_by_hash(node.keys),), spec
    )


def _plan_two_phases(one_phase: Operation, spec: WindowAggregateSpec) -> Operation:
    """Plan a local aggregate before the exchange, and a global aggregate after it."""
    calls = (*spec.calls, ROWS)
    schema = create_partial_schema(spec.input, spec.keys, calls)
    local_spec = LocalAggregateSpec(spec.input, schema, spec.keys, calls)
    local = Operation("LocalWindowAggregate", one_phase.detail, schema, one_phase.inputs, (FORWARD,), local_spec)
    distribution = distribute_by_hash(tuple(spec.keys.index(i) for i in spec.others))
    return replace(
        one_phase,
        name="GlobalWindowAggregate",
        inputs=(local,),
        distributions=(distribution,),
        spec=replace(spec, partial=True),
    )


# ----------------------------------------------------------------------------- aggregates below the window function


@dataclass(frozen=True)
class _Unwindowed:
    """The input of a window function, the window, and the columns of the plan above.

    `column_indexes` has an entry for each column of that plan; indexes after the columns of `rows` are the start, the
    end and the time of the window."""

    rows: l.Plan
    window: l.WindowSpec
    column_indexes: tuple[int, ...]

    def are_row_columns(self, columns: set[int]) -> bool:
        """Return whether columns are columns of the rows, not of their windows."""
        return all(self.column_indexes[i] < len(self.rows.schema) for i in columns)


def _remove_window(plan: l.Plan) -> _Unwindowed | None:
    """Return a plan as it is below its window function; None if that is not possible."""
    match plan:
        case l.WindowTable(input=rows, window=window):
            return _Unwindowed(rows, window, tuple(range(len(plan.schema))))
        case l.Filter(input=inner, condition=condition):
            below = _remove_window(inner)
            if below is None or below.window.kind == "SESSION" or not is_pure(condition):
                return None
            if not below.are_row_columns(find_references(condition)):
                return None
            rows = l.Filter(
                below.rows.schema, below.rows, shift_references(condition, below.column_indexes.__getitem__)
            )
            return replace(below, rows=rows)
        case l.Project(input=inner, exprs=exprs):
            below = _remove_window(inner)
            if below is None:
                return None
            indexes = [expr.index for expr in exprs if isinstance(expr, Ref)]
            if len(indexes) == len(exprs):
                return replace(below, column_indexes=tuple(below.column_indexes[i] for i in indexes))
            return _project_below(below, exprs, plan.schema.names)
    return None


def _project_below(below: _Unwindowed, exprs: Sequence[Expression], names: Sequence[str]) -> _Unwindowed | None:
    """Compute a projection below the window function; the time attribute is kept."""
    window, before = below.window, below.rows.schema
    if window.kind == "SESSION":
        return None
    projected: list[Expression] = []
    projected_names: list[str] = []
    positions: list[int] = []
    for name, expr in zip(names, exprs, strict=True):
        if isinstance(expr, Ref) and not below.are_row_columns({expr.index}):
            positions.append(
                below.column_indexes[expr.index] - len(before)
            )  # window columns, which come after the projected columns
            continue
        if not is_pure(expr) or not below.are_row_columns(find_references(expr)):
            return None
        projected.append(shift_references(expr, below.column_indexes.__getitem__))
        projected_names.append(name)
        positions.append(-len(projected))
    projected.append(Ref(before.types[window.time], window.time))
    projected_names.append(before.names[window.time])
    rows = l.project(below.rows, projected, projected_names)
    column_indexes = tuple(-1 - position if position < 0 else len(projected) + position for position in positions)
    return _Unwindowed(rows, replace(window, time=len(projected) - 1), column_indexes)


def _map_columns(call: AggregateCall, column_indexes: Sequence[int]) -> AggregateCall:
    condition = None if call.filter is None else column_indexes[call.filter]
    return replace(call, args=tuple(column_indexes[i] for i in call.args), filter=condition)


def _list_columns(call: AggregateCall) -> set[int]:
    return {*call.args, *(() if call.filter is None else (call.filter,))}


def _plan_slices(planner: Planning, node: l.Aggregate, below: _Unwindowed, detail: str) -> Operation | None:
    """Plan an aggregate by slices; None if each row must be assigned to its windows."""
    window, schema = below.window, below.rows.schema
    is_zoned = window.processing or isinstance(schema.types[window.time], t.LocalZonedTimestampType)
    if planner.settings.batch or not can_slice(window) or (is_zoned and planner.settings.zone != "UTC"):
        return None
    if not all(below.are_row_columns(_list_columns(call)) for call in node.calls):
        return None
    keys = tuple(below.column_indexes[i] for i in node.keys)
    calls = tuple(_map_columns(call, below.column_indexes) for call in node.calls)
    partition = tuple(dict.fromkeys(i for i in keys if i < len(schema)))
    if not can_aggregate(calls, [schema.types[i] for i in partition]):
        return None
    child = planner.plan(below.rows)
    if not child.mode.insert_only:
        return None
    spec = SlicedWindowAggregateSpec(schema, node.schema, keys, partition, window, calls)
    upsert_keys = frozenset((tuple(range(len(keys))),))
    distributions = (distribute_by_hash(partition),)
    one_phase = Operation(
        "WindowAggregate", detail, node.schema, (child,), distributions, spec, upsert_keys=upsert_keys
    )
    if not planner.settings.two_phase or Placements().in_place(one_phase, 0):
        return one_phase
    sliced = create_sliced_schema(schema, partition, calls)
    local_spec = LocalWindowAggregateSpec(schema, sliced, partition, calls, window)
    return _plan_as_global(
        one_phase, Operation("LocalWindowAggregate", detail, sliced, (child,), (FORWARD,), local_spec)
    )


def _plan_sessions(planner: Planning, node: l.Aggregate, below: _Unwindowed, detail: str) -> Operation | None:
    """Plan an aggregate of open sessions; None if their rows must be kept."""
    window, schema = below.window, below.rows.schema
    if window.processing:
        return None
    if isinstance(schema.types[window.time], t.LocalZonedTimestampType) and planner.settings.zone != "UTC":
        return None
    keys = tuple(below.column_indexes[i] for i in node.keys)
    calls = tuple(_map_columns(call, below.column_indexes) for call in node.calls)
    key_types = [schema.types[i] for i in window.partition]
    if {i for i in keys if i < len(schema)} != set(window.partition):
        return None
    if not all(below.are_row_columns(_list_columns(call)) for call in node.calls):
        return None
    child = planner.plan(below.rows)
    if not child.mode.insert_only or not can_aggregate(calls, key_types):
        return None
    spec = SessionAggregateSpec(child.schema, node.schema, keys, window.partition, window.time, window.size, calls)
    upsert_keys = frozenset((tuple(range(len(node.keys))),))
    distributions = (distribute_by_hash(window.partition),)
    one_phase = Operation(
        "WindowAggregate", detail, node.schema, (child,), distributions, spec, upsert_keys=upsert_keys
    )
    if not planner.settings.two_phase or planner.settings.batch or Placements().in_place(one_phase, 0):
        return one_phase
    sessions = create_session_schema(schema, window.partition, calls)
    local_spec = LocalSessionAggregateSpec(schema, sessions, window.partition, window.time, window.size, calls)
    return _plan_as_global(
        one_phase, Operation("LocalWindowAggregate", detail, sessions, (child,), (FORWARD,), local_spec)
    )


def _plan_as_global(one_phase: Operation, local: Operation) -> Operation:
    """Turn a one-phase aggregate into the global phase; the output of the local phase has the keys first."""
    distribution = distribute_by_hash(tuple(range(len(one_phase.spec.partition))))
    spec = replace(one_phase.spec, partial=True)
    return replace(one_phase, name="GlobalWindowAggregate", inputs=(local,), distributions=(distribution,), spec=spec)

"""Planning of OVER aggregates.

Promises: calls with the same partition and order share an operator; the output columns are in the order of the query.
Does not know: how aggregates are computed."""

from __future__ import annotations

from millstream.sql.errors import SqlNotSupported
from millstream.sql.expressions.nodes import Ref
from millstream.sql.functions.over_functions import OVER_FUNCTIONS, OverFunction
from millstream.sql.logical import nodes as l
from millstream.sql.operators import calc
from millstream.sql.operators.over import changing_over
from millstream.sql.operators.over import over_aggregate as over
from millstream.sql.operators.over.changing_over import NUMBERINGS
from millstream.sql.operators.over.final_over import FinalOverSpec
from millstream.sql.physical.nodes import FORWARD, Operation, distribute_by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode


def plan_over(planner: Planning, node: l.Over) -> Operation:
    """Plan OVER calls: one operator for each distinct partition, order and frame."""
    child = planner.plan(node.input)
    if not child.mode.insert_only and not all(map(_supports_updates, node.calls)):
        message = (
            "over updating input, OVER supports only numbers, ranks, and aggregates with ROWS or UNBOUNDED PRECEDING"
        )
        hint = "compute OVER before the operator that emits updates"
        raise SqlNotSupported(message, hint=hint, about="OVER")
    for call in node.calls:
        if call.call.user is None and call.call.function in OVER_FUNCTIONS:
            _check_streaming(OVER_FUNCTIONS[call.call.function])
        elif not planner.settings.batch and call.upper != 0:
            message = "a frame on a stream must end with the current row"
            raise SqlNotSupported(message, hint="end it with CURRENT ROW, or use batch mode", about="OVER")
    current, width = child, len(node.input.schema)
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, call in enumerate(node.calls):
        groups.setdefault((call.partition, call.order, call.rows, call.lower, call.upper), []).append(i)
    order: list[int] = []
    for indexes in groups.values():
        calls = tuple(node.calls[i] for i in indexes)
        current = _plan_over_group(planner, current, calls, node.input.schema)
        order += indexes
    if order != sorted(order):
        refs = [Ref(current.schema.types[i], i) for i in range(width)]
        refs += [Ref(current.schema.types[width + order.index(i)], width + order.index(i)) for i in range(len(order))]
        spec = calc.CalcSpec(current.schema, node.schema, None, tuple(refs), planner.settings.zone)
        current = Operation("Calc", "select=[...]", node.schema, (current,), (FORWARD,), spec, mode=current.mode)
    return current


def _check_streaming(function: OverFunction) -> None:
    if not function.in_streaming:
        message = f"{function.name} needs rows after the current one, so it cannot be computed on a stream"
        hint = "use batch mode, or collect the rows of a window and compute it there"
        raise SqlNotSupported(message, hint=hint, about="OVER")


def _plan_over_group(planner: Planning, child: Operation, calls: tuple[l.OverCall, ...], base: t.RowType) -> Operation:
    first = calls[0]
    if not child.mode.insert_only:
        return _plan_changing_over(child, calls)
    if planner.settings.batch and not any(_is_numbering(call) for call in calls):
        return _plan_final_over(child, calls)
    is_streaming = not planner.settings.batch
    if is_streaming and _is_ordered_by_values(first, base) and all(map(_supports_updates, calls)):
        return _plan_changing_over(child, calls)
    if len(first.order) != 1 or t.get_time_attribute(base.types[first.order[0][0]]) is None or not first.order[0][1]:
        message = "OVER on a stream must be ordered by one time attribute, ascending"
        hint = (
            "ORDER BY a watermarked column or PROCTIME(); numbers, ranks and aggregates can also be ordered by one "
            "other column, ascending; for a Top-N, filter on the row number"
        )
        raise SqlNotSupported(message, hint=hint, about="OVER")
    time_index = first.order[0][0]
    processing = t.get_time_attribute(base.types[time_index]) == t.PROCTIME
    schema = _append_results(child.schema, calls)
    spec = over.OverSpec(child.schema, schema, calls, None if processing else time_index, planner.settings.ttl)
    partition = ", ".join(child.schema.names[i] for i in first.partition)
    detail = f"partitionBy=[{partition}], orderBy=[{child.schema.names[time_index]}]"
    return Operation("OverAggregate", detail, schema, (child,), (distribute_by_hash(first.partition),), spec)


def _is_ordered_by_values(over: l.OverCall, base: t.RowType) -> bool:
    """Return whether rows are ordered by a column that is not a time attribute: later rows change the results of
    earlier ones."""
    return len(over.order) == 1 and over.order[0][1] and t.get_time_attribute(base.types[over.order[0][0]]) is None


def _plan_final_over(child: Operation, calls: tuple[l.OverCall, ...]) -> Operation:
    """Plan OVER calls of a batch job, with any order and frame."""
    schema = _append_results(child.schema, calls)
    spec = FinalOverSpec(child.schema, schema, calls)
    where = (distribute_by_hash(calls[0].partition),)
    return Operation("OverAggregate", _describe(child, calls[0]), schema, (child,), where, spec)


def _is_numbering(over: l.OverCall) -> bool:
    return over.call.user is None and over.call.function in OVER_FUNCTIONS


def _describe(child: Operation, over: l.OverCall) -> str:
    names = child.schema.names
    order = ", ".join(f"{names[i]} {'ASC' if a else 'DESC'}" for i, a, _ in over.order)
    return f"partitionBy=[{', '.join(names[i] for i in over.partition)}], orderBy=[{order}]"


def _plan_changing_over(child: Operation, calls: tuple[l.OverCall, ...]) -> Operation:
    """Plan OVER calls whose results change: on updating input, or in the order of a column that is not a time
    attribute."""
    schema = _append_results(child.schema, calls)
    spec = changing_over.ChangingOverSpec(child.schema, schema, calls)
    where = (distribute_by_hash(calls[0].partition),)
    return Operation(
        "OverAggregate", _describe(child, calls[0]), schema, (child,), where, spec, mode=ChangelogMode.RETRACT
    )


def _append_results(schema: t.RowType, calls: tuple[l.OverCall, ...]) -> t.RowType:
    names = [*schema.names, *(f"w{len(schema) + i}$o" for i in range(len(calls)))]
    return t.row_of(l.make_names_unique(names), [*schema.types, *(c.call.type for c in calls)], null=False)


def _supports_updates(over: l.OverCall) -> bool:
    """Return whether a call can be computed on updating input."""
    if over.call.user is None and over.call.function in OVER_FUNCTIONS:
        return over.call.function in NUMBERINGS
    return over.rows or over.lower is None

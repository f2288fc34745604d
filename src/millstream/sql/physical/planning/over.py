"""Aggregates over the rows around a row.

Promises: calls of one partition and order share an operator; columns come out in the order of the query.
Does not know: how aggregates are computed."""

from __future__ import annotations

from millstream.sql.errors import SqlNotSupported
from millstream.sql.expressions.nodes import Ref
from millstream.sql.functions.over_functions import OVER_FUNCTIONS, OverFunction
from millstream.sql.logical import nodes as l
from millstream.sql.operators import calc
from millstream.sql.operators.over import changing_over
from millstream.sql.operators.over import over_aggregate as over
from millstream.sql.physical.nodes import FORWARD, Operation, by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode


def plan_over(planner: Planning, node: l.Over) -> Operation:
    """Each row with aggregates over rows around it."""
    child = planner.plan(node.input)
    if not child.mode.insert_only and not all(map(_over_changes, node.calls)):
        message = "only aggregates of ROWS, or of RANGE from the first row, can be computed over corrected rows"
        hint = "number them in a Top-N, or compute OVER before what corrects them"
        raise SqlNotSupported(message, hint=hint, about="OVER")
    for each in node.calls:
        if each.call.user is None and each.call.function in OVER_FUNCTIONS:
            _check_streaming(OVER_FUNCTIONS[each.call.function])
    current, width = child, len(node.input.schema)
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, each in enumerate(node.calls):
        groups.setdefault((each.partition, each.order, each.rows, each.lower), []).append(i)
    order: list[int] = []
    for indexes in groups.values():
        calls = tuple(node.calls[i] for i in indexes)
        current = _over_group(planner, current, calls, node.input.schema)
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


def _over_group(planner: Planning, child: Operation, calls: tuple[l.OverCall, ...], base: t.RowType) -> Operation:
    first = calls[0]
    if not child.mode.insert_only:
        return _changing_over(child, calls)
    if len(first.order) != 1 or t.attribute_of(base.types[first.order[0][0]]) is None or not first.order[0][1]:
        message = "OVER on a stream must be ordered by one time attribute, ascending"
        hint = "ORDER BY a watermarked column or PROCTIME(); for a Top-N, filter on the row number"
        raise SqlNotSupported(message, hint=hint, about="OVER")
    place = first.order[0][0]
    processing = t.attribute_of(base.types[place]) == t.PROCTIME
    schema = _with_results(child.schema, calls)
    spec = over.OverSpec(child.schema, schema, calls, None if processing else place, planner.settings.ttl)
    partition = ", ".join(child.schema.names[i] for i in first.partition)
    detail = f"partitionBy=[{partition}], orderBy=[{child.schema.names[place]}]"
    return Operation("OverAggregate", detail, schema, (child,), (by_hash(first.partition),), spec)


def _changing_over(child: Operation, calls: tuple[l.OverCall, ...]) -> Operation:
    """OVER over rows that are corrected later, in any order."""
    first, names = calls[0], child.schema.names
    schema = _with_results(child.schema, calls)
    spec = changing_over.ChangingOverSpec(child.schema, schema, calls)
    order = ", ".join(f"{names[i]} {'ASC' if a else 'DESC'}" for i, a, _ in first.order)
    detail = f"partitionBy=[{', '.join(names[i] for i in first.partition)}], orderBy=[{order}]"
    where = (by_hash(first.partition),)
    return Operation("OverAggregate", detail, schema, (child,), where, spec, mode=ChangelogMode.RETRACT)


def _with_results(schema: t.RowType, calls: tuple[l.OverCall, ...]) -> t.RowType:
    names = [*schema.names, *(f"w{len(schema) + i}$o" for i in range(len(calls)))]
    return t.row_of(l.unique(names), [*schema.types, *(c.call.type for c in calls)], null=False)


def _over_changes(over: l.OverCall) -> bool:
    """Whether a call can be computed over rows that are corrected later."""
    numbering = over.call.function in ("ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "NTILE")
    return not numbering and (over.rows or over.lower is None)

"""Set on each scan the columns, and the fields of row columns, that the plan reads.

Promises: the same rows; columns and fields that are not read may be NULL. A scan that several nodes share reads what
all of them need.
Does not know: which connectors can leave fields out.

It runs after `share_equal_plans`, so that shared scans are known."""

from __future__ import annotations

from dataclasses import replace

from millstream.formats.format_types import FieldSelection
from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.expressions.nodes import Expression, FieldRef, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.rewriting import rewrite_bottom_up

Need = dict[int, "Need | None"]  # by column or field index: the needed fields of a row, or None for the whole value


def narrow_scans(plan: l.Plan) -> l.Plan:
    """Set `Scan.wanted` everywhere in the plan."""
    order: list[l.Plan] = []
    _visit(plan, order, set())
    needs: dict[int, Need] = {id(plan): _need_all_columns(plan)}
    for node in reversed(order):
        for input_plan, need in _compute_input_needs(node, needs[id(node)]):
            _merge(needs.setdefault(id(input_plan), {}), need)

    def narrow(node: l.Plan) -> l.Plan:
        if not isinstance(node, l.Scan) or not isinstance(node.table, TableDefinition) or id(node) not in needs:
            return node
        selection = _to_selection(needs[id(node)])
        return node if selection == _to_selection(_need_all_columns(node)) else replace(node, wanted=selection)

    return rewrite_bottom_up(plan, narrow)


def _visit(plan: l.Plan, order: list[l.Plan], seen: set[int]) -> None:
    """Append all nodes to `order`, each after its inputs."""
    if id(plan) not in seen:
        seen.add(id(plan))
        for input_plan in plan.inputs():
            _visit(input_plan, order, seen)
        order.append(plan)


def _need_all_columns(plan: l.Plan) -> Need:
    return dict.fromkeys(range(len(plan.schema)))


def _compute_input_needs(node: l.Plan, need: Need) -> list[tuple[l.Plan, Need]]:
    """Return what a node needs of its inputs if `need` is needed of the node."""
    below: Need = {}
    match node:
        case l.Project(exprs=exprs):
            for index, part in need.items():
                _use(below, exprs[index], part)
        case l.Filter(condition=condition):
            _merge(below, need)
            _use(below, condition, None)
        case l.WatermarkAssigner(expr=expr, column=column):
            _merge(below, need)
            _merge(below, {column: None})
            _use(below, expr, None)
        case _:
            return [(input_plan, _need_all_columns(input_plan)) for input_plan in node.inputs()]
    return [(node.inputs()[0], below)]


def _use(need: Need, expression: Expression, part: Need | None) -> None:
    """Add what an expression reads; `part` are the needed fields of its value, None for all."""
    match expression:
        case Ref(index=index):
            _merge(need, {index: part})
        case FieldRef(operand=operand, index=index):
            _use(need, operand, {index: part})
        case _:
            for child in expression.children():
                _use(need, child, None)


def _merge(need: Need, more: Need) -> None:
    for index, part in more.items():
        selected_fields = need.get(index, {})
        if part is None or selected_fields is None:
            need[index] = None
        else:
            merged = dict(selected_fields)
            _merge(merged, part)
            need[index] = merged


def _to_selection(need: Need) -> FieldSelection:
    return tuple((index, None if part is None else _to_selection(part)) for index, part in sorted(need.items()))

"""A scan is told which columns, and which fields of rows in them, anyone reads.

Promises: the same rows; what nobody reads may come as NULL. A scan that several parts of a plan share reads what all of
them need together.
Does not know: which connectors can leave fields out.

It comes after equal parts have become one."""

from __future__ import annotations

from dataclasses import replace

from millstream.formats.format_types import FieldSelection
from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.expressions.fields import FieldRef
from millstream.sql.expressions.nodes import Expression, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.rewriting import everywhere

Need = dict[int, "Need | None"]  # by position: what is needed of a row, or None for all of a value


def narrow_scans(plan: l.Plan) -> l.Plan:
    """The rewrite."""
    order: list[l.Plan] = []
    _visit(plan, order, set())
    needs: dict[int, Need] = {id(plan): _whole(plan)}
    for node in reversed(order):
        for below, need in _asked(node, needs[id(node)]):
            _merge(needs.setdefault(id(below), {}), need)

    def told(node: l.Plan) -> l.Plan:
        if not isinstance(node, l.Scan) or not isinstance(node.table, TableDefinition) or id(node) not in needs:
            return node
        wanted = _frozen(needs[id(node)])
        return node if wanted == _frozen(_whole(node)) else replace(node, wanted=wanted)

    return everywhere(plan, told)


def _visit(plan: l.Plan, order: list[l.Plan], seen: set[int]) -> None:
    """All nodes, each behind its inputs."""
    if id(plan) not in seen:
        seen.add(id(plan))
        for each in plan.inputs():
            _visit(each, order, seen)
        order.append(plan)


def _whole(plan: l.Plan) -> Need:
    return dict.fromkeys(range(len(plan.schema)))


def _asked(node: l.Plan, need: Need) -> list[tuple[l.Plan, Need]]:
    """What a node needs of its inputs, if this is needed of it."""
    below: Need = {}
    match node:
        case l.Project(exprs=exprs):
            for place, part in need.items():
                _use(below, exprs[place], part)
        case l.Filter(condition=condition):
            _merge(below, need)
            _use(below, condition, None)
        case l.WatermarkAssigner(expr=expr, column=column):
            _merge(below, need)
            _merge(below, {column: None})
            _use(below, expr, None)
        case _:
            return [(each, _whole(each)) for each in node.inputs()]
    return [(node.inputs()[0], below)]


def _use(need: Need, expression: Expression, part: Need | None) -> None:
    """Add what an expression reads, of whose value `part` is needed."""
    match expression:
        case Ref(index=index):
            _merge(need, {index: part})
        case FieldRef(operand=operand, index=index):
            _use(need, operand, {index: part})
        case _:
            for child in expression.children():
                _use(need, child, None)


def _merge(need: Need, more: Need) -> None:
    for place, part in more.items():
        known = need.get(place, {})
        if part is None or known is None:
            need[place] = None
        else:
            merged = dict(known)
            _merge(merged, part)
            need[place] = merged


def _frozen(need: Need) -> FieldSelection:
    return tuple((place, None if part is None else _frozen(part)) for place, part in sorted(need.items()))

"""What looks at one row at a time: projections, filters, watermarks, table functions, windows of a row.

Promises: projections and filters that follow one another become one operator, and no work is done twice for it.
Does not know: groups, joins, order."""

from __future__ import annotations

from millstream.sql.errors import SqlNotSupported
from millstream.sql.evaluation.repeated import is_random
from millstream.sql.expressions.nodes import (
    Expression,
    Lit,
    Ref,
    conjunction,
    conjuncts,
    references,
    shifted,
    substituted,
)
from millstream.sql.logical import nodes as l
from millstream.sql.operators import calc, expand, watermark
from millstream.sql.operators.window import window_aggregate as windows
from millstream.sql.physical.changelog import narrowed
from millstream.sql.physical.nodes import FORWARD, Operation, by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.physical.planning.texts import described, selected, window_text


def plan_calc(planner: Planning, node: l.Plan, before: bool) -> Operation:
    """Projections and filters, one behind the other, as one operator."""
    exprs: tuple[Expression, ...] | None = None
    condition: Expression | None = None
    current = node
    while isinstance(current, l.Project | l.Filter):
        if isinstance(current, l.Filter):
            parts = [*conjuncts(current.condition), *conjuncts(condition)]
            condition = conjunction(parts)
        else:
            outer = conjuncts(condition) if exprs is None else [*exprs, *conjuncts(condition)]
            if outer and not _mergeable(current.exprs, outer, shown=exprs is None):
                break
            made = current.exprs
            exprs = made if exprs is None else tuple(substituted(each, made) for each in exprs)
            condition = None if condition is None else substituted(condition, made)
        current = current.input
    keeps_key = condition is None
    child = planner.plan(current, before=before or not keeps_key)
    if exprs is not None:
        used = set().union(*(references(each) for each in (*exprs, *conjuncts(condition))))
        slim, places = narrowed(child, used)
        if slim is not child:
            child, exprs = slim, tuple(shifted(each, places) for each in exprs)
            condition = None if condition is None else shifted(condition, places)
    spec = calc.CalcSpec(
        child.schema, node.schema, condition, exprs, planner.settings.zone, planner.settings.asynchronous
    )
    detail = []
    if exprs is not None:
        detail.append(f"select=[{selected(exprs, node.schema, child.schema)}]")
    if condition is not None:
        detail.append(f"where=[{described(condition, child.schema)}]")
    keys = child.upsert_keys if exprs is None else projected_keys(child.upsert_keys, exprs)
    return Operation(
        "Calc", ", ".join(detail), node.schema, (child,), (FORWARD,), spec, mode=child.mode, upsert_keys=keys
    )


def plan_watermark(planner: Planning, node: l.WatermarkAssigner) -> Operation:
    """The time of rows, and how far it has come."""
    child = planner.plan(node.input)
    spec = watermark.WatermarkSpec(child.schema, node.expr, node.idle_timeout, planner.settings.zone)
    name = node.schema.names[node.column]
    detail = f"rowtime=[{name}], watermark=[{described(node.expr, child.schema)}]"
    return Operation(
        "WatermarkAssigner",
        detail,
        node.schema,
        (child,),
        (FORWARD,),
        spec,
        mode=child.mode,
        upsert_keys=child.upsert_keys,
    )


def plan_expand(planner: Planning, node: l.Expand) -> Operation:
    """Each row once for every grouping set."""
    child = planner.plan(node.input)
    spec = expand.ExpandSpec(child.schema, node.schema, node.keys, node.sets)
    return Operation("Expand", f"sets={node.sets}", node.schema, (child,), (FORWARD,), spec, mode=child.mode)


def plan_correlate(planner: Planning, node: l.Correlate) -> Operation:
    """Each row with the rows that a table function makes of it."""
    child = planner.plan(node.input)
    settings = planner.settings
    spec = expand.CorrelateSpec(
        child.schema, node.schema, node.function, node.args, node.outer, settings.zone, settings.asynchronous_tables
    )
    kind = "LEFT" if node.outer else "INNER"
    args = ", ".join(described(each, child.schema) for each in node.args)
    detail = f"invocation=[{node.function.name}({args})], joinType=[{kind}]"
    return Operation("Correlate", detail, node.schema, (child,), (FORWARD,), spec, mode=child.mode)


def plan_window_table(planner: Planning, node: l.WindowTable) -> Operation:
    """Each row with the windows it is in."""
    child = planner.plan(node.input)
    window = node.window
    spec = windows.WindowTableSpec(child.schema, node.schema, window, planner.settings.zone)
    where = by_hash(window.partition) if window.kind == "SESSION" else FORWARD
    if window.kind == "SESSION" and not child.mode.insert_only:
        message = "a SESSION window cannot be made of rows that are corrected later"
        raise SqlNotSupported(message, about="SESSION")
    return Operation(
        "WindowTableFunction",
        f"window=[{window_text(window, child.schema)}]",
        node.schema,
        (child,),
        (where,),
        spec,
        mode=child.mode,
    )


def _mergeable(inner: tuple[Expression, ...], outer: list[Expression], *, shown: bool) -> bool:
    """Whether computing `inner` inside `outer` repeats no work and computes no random value twice; `shown` says that
    `inner` is computed once more as the result."""
    uses: dict[int, int] = {}
    for each in outer:
        for index in _occurrences(each):
            uses[index] = uses.get(index, 0) + 1
    return all(
        isinstance(each, Ref | Lit) or uses.get(i, 0) <= (0 if shown and is_random(each) else 1)
        for i, each in enumerate(inner)
    )


def _occurrences(expression: Expression) -> list[int]:
    if isinstance(expression, Ref):
        return [expression.index]
    return [index for child in expression.children() for index in _occurrences(child)]


def projected_keys(keys: frozenset[tuple[int, ...]], exprs: tuple[Expression, ...]) -> frozenset[tuple[int, ...]]:
    """The keys that are still there behind a projection."""
    where: dict[int, int] = {}
    for i, each in enumerate(exprs):
        if isinstance(each, Ref):
            where.setdefault(each.index, i)
    return frozenset(tuple(where[i] for i in key) for key in keys if all(i in where for i in key))

"""Planning of operators on single rows: projections, filters, watermarks, table functions, window table functions.

Promises: adjacent projections and filters become one operator, unless an expression would be computed twice.
Does not know: groups, joins, order."""

from __future__ import annotations

from millstream.sql.errors import SqlNotSupported
from millstream.sql.evaluation.repeated import is_random
from millstream.sql.expressions.nodes import (
    Expression,
    Lit,
    Ref,
    combine_conjuncts,
    find_references,
    shift_references,
    split_conjuncts,
    substitute,
)
from millstream.sql.functions.model_functions import ModelFunction
from millstream.sql.logical import nodes as l
from millstream.sql.operators import calc, expand, watermark
from millstream.sql.operators.window import window_aggregate as windows
from millstream.sql.physical.changelog import narrow_normalization
from millstream.sql.physical.nodes import FORWARD, Operation, distribute_by_hash
from millstream.sql.physical.planning.contract import Planning
from millstream.sql.physical.planning.texts import describe_expression, describe_projection, format_window


def plan_calc(planner: Planning, node: l.Plan, before: bool) -> Operation:
    """Plan adjacent projections and filters as one operator."""
    exprs: tuple[Expression, ...] | None = None
    condition: Expression | None = None
    current = node
    while isinstance(current, l.Project | l.Filter):
        if isinstance(current, l.Filter):
            parts = [*split_conjuncts(current.condition), *split_conjuncts(condition)]
            condition = combine_conjuncts(parts)
        else:
            outer = split_conjuncts(condition) if exprs is None else [*exprs, *split_conjuncts(condition)]
            if outer and not _can_merge(current.exprs, outer, shown=exprs is None):
                break
            inner_exprs = current.exprs
            exprs = inner_exprs if exprs is None else tuple(substitute(expr, inner_exprs) for expr in exprs)
            condition = None if condition is None else substitute(condition, inner_exprs)
        current = current.input
    keeps_key = condition is None
    child = planner.plan(current, before=before or not keeps_key)
    if exprs is not None:
        used = set().union(*(find_references(expr) for expr in (*exprs, *split_conjuncts(condition))))
        narrow, mapping = narrow_normalization(child, used)
        if narrow is not child:
            child, exprs = narrow, tuple(shift_references(expr, mapping) for expr in exprs)
            condition = None if condition is None else shift_references(condition, mapping)
    spec = calc.CalcSpec(
        child.schema, node.schema, condition, exprs, planner.settings.zone, planner.settings.asynchronous
    )
    detail = []
    if exprs is not None:
        detail.append(f"select=[{describe_projection(exprs, node.schema, child.schema)}]")
    if condition is not None:
        detail.append(f"where=[{describe_expression(condition, child.schema)}]")
    keys = child.upsert_keys if exprs is None else project_keys(child.upsert_keys, exprs)
    return Operation(
        "Calc", ", ".join(detail), node.schema, (child,), (FORWARD,), spec, mode=child.mode, upsert_keys=keys
    )


def plan_watermark(planner: Planning, node: l.WatermarkAssigner) -> Operation:
    """Plan the watermark of a table."""
    child = planner.plan(node.input)
    spec = watermark.WatermarkSpec(child.schema, node.expr, node.idle_timeout, planner.settings.zone)
    name = node.schema.names[node.column]
    detail = f"rowtime=[{name}], watermark=[{describe_expression(node.expr, child.schema)}]"
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
    """Plan grouping sets: each row once for every grouping set."""
    child = planner.plan(node.input)
    spec = expand.ExpandSpec(child.schema, node.schema, node.keys, node.sets)
    return Operation("Expand", f"sets={node.sets}", node.schema, (child,), (FORWARD,), spec, mode=child.mode)


def plan_correlate(planner: Planning, node: l.Correlate) -> Operation:
    """Plan a table function."""
    child = planner.plan(node.input)
    settings = planner.settings
    asynchronous = settings.asynchronous_tables
    if isinstance(node.function, ModelFunction):
        asynchronous = node.function.async_options
        if not child.mode.insert_only:
            message = "ML_PREDICT needs an insert-only table, but the table emits updates"
            hint = "a model may predict something else for the same row, so an update could not be retracted"
            raise SqlNotSupported(message, hint=hint, about="ML_PREDICT")
    spec = expand.CorrelateSpec(
        child.schema, node.schema, node.function, node.args, node.outer, settings.zone, asynchronous
    )
    join_type = "LEFT" if node.outer else "INNER"
    args = ", ".join(describe_expression(arg, child.schema) for arg in node.args)
    detail = f"invocation=[{node.function.name}({args})], joinType=[{join_type}]"
    return Operation("Correlate", detail, node.schema, (child,), (FORWARD,), spec, mode=child.mode)


def plan_window_table(planner: Planning, node: l.WindowTable) -> Operation:
    """Plan a window table function: each row with its windows."""
    child = planner.plan(node.input)
    window = node.window
    spec = windows.WindowTableSpec(child.schema, node.schema, window, planner.settings.zone)
    distribution = distribute_by_hash(window.partition) if window.kind == "SESSION" else FORWARD
    if window.kind == "SESSION" and not child.mode.insert_only:
        message = "the input of a SESSION window must be insert-only, but it emits updates"
        raise SqlNotSupported(message, about="SESSION")
    return Operation(
        "WindowTableFunction",
        f"window=[{format_window(window, child.schema)}]",
        node.schema,
        (child,),
        (distribution,),
        spec,
        mode=child.mode,
    )


def _can_merge(inner: tuple[Expression, ...], outer: list[Expression], *, shown: bool) -> bool:
    """Return whether `inner` can be computed inside `outer` without computing expensive or random values twice.

    `shown` is whether `inner` is also computed as the result."""
    uses: dict[int, int] = {}
    for expr in outer:
        for index in _count_occurrences(expr):
            uses[index] = uses.get(index, 0) + 1
    return all(
        isinstance(expr, Ref | Lit) or uses.get(i, 0) <= (0 if shown and is_random(expr) else 1)
        for i, expr in enumerate(inner)
    )


def _count_occurrences(expression: Expression) -> list[int]:
    if isinstance(expression, Ref):
        return [expression.index]
    return [index for child in expression.children() for index in _count_occurrences(child)]


def project_keys(keys: frozenset[tuple[int, ...]], exprs: tuple[Expression, ...]) -> frozenset[tuple[int, ...]]:
    """Return the upsert keys that are kept by a projection."""
    new_indexes: dict[int, int] = {}
    for i, expr in enumerate(exprs):
        if isinstance(expr, Ref):
            new_indexes.setdefault(expr.index, i)
    return frozenset(tuple(new_indexes[i] for i in key) for key in keys if all(i in new_indexes for i in key))

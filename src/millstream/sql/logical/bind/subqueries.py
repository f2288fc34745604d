"""Binding of subqueries to joins: IN and EXISTS to semi and anti joins, scalar subqueries to left joins.

Promises: a correlated subquery is split into a plan without references to the enclosing query, and join conditions;
a subquery that cannot be split is refused.
Does not know: how joins are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.evaluation.evaluate import EvaluationFailed, evaluate_constant
from millstream.sql.expressions.nodes import (
    TRUE,
    AggregateCall,
    Apply,
    Choose,
    Expression,
    Lit,
    Ref,
    combine_conjuncts,
    rewrite,
    shift_references,
    split_conjuncts,
    substitute,
    walk,
)
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, coerce
from millstream.sql.logical.bind.scope import Outer, Scope
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import find_common_type

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder


def bind_semi_join(queries: QueryBinder, plan: l.Plan, scope: Scope, node: s.Expr) -> l.Plan | None:
    """Bind a conjunct of WHERE that is IN or EXISTS over a query, possibly negated; return None for other conjuncts."""
    negated = False
    while isinstance(node, s.Call) and node.name == "NOT" and isinstance(node.args[0], s.In | s.Exists):
        negated = not negated
        node = node.args[0]
    match node:
        case s.In(query=query) if query is not None:
            return _bind_in(queries, plan, scope, node, negated != node.negated)
        case s.Exists(query=query):
            inner = _bind_subquery(queries, scope, query)
            inner, conditions = decorrelate(inner, node.at)
            return _create_semi_join(plan, inner, conditions, negated)
    return None


def _bind_subquery(queries: QueryBinder, scope: Scope, query: s.Query) -> l.Plan:
    return type(queries)(queries.session, queries.ctes, scope).query(query)


def _create_semi_join(
    plan: l.Plan, inner: l.Plan, conditions: list[Expression], negated: bool, *, null_aware: bool = False
) -> l.Plan:
    join_type = "anti" if negated else "semi"
    return l.Join(
        plan.schema,
        plan,
        inner,
        join_type,
        combine_conjuncts(_to_join_conditions(conditions, len(plan.schema))),
        null_aware,
    )


def _to_join_conditions(
    conditions: list[Expression], width: int, outer_columns: Mapping[int, int] | None = None
) -> list[Expression]:
    """Convert conditions with Outer and inner Ref to conditions over both sides of a join.

    `outer_columns` maps columns of the enclosing query to columns of the join's left side, None if they are the
    same."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Outer):
            return Ref(node.type, node.index if outer_columns is None else outer_columns[node.index])
        return Ref(node.type, node.index + width) if isinstance(node, Ref) else None

    return [rewrite(condition, change) for condition in conditions]


def _bind_in(queries: QueryBinder, plan: l.Plan, scope: Scope, node: s.In, negated: bool) -> l.Plan:
    assert node.query is not None
    inner = _bind_subquery(queries, scope, node.query)
    operand = ExpressionBinder(queries.session, scope, clause="before IN").bind(node.operand)
    items = list(operand.args) if isinstance(operand, Apply) and operand.function == "ROW" else [operand]
    if len(inner.schema) != len(items):
        message = f"the query after IN has {len(inner.schema)} columns, not {len(items)}"
        raise SqlValidationError(message, at=node.at)
    width = len(inner.schema)
    inner, conditions = decorrelate(inner, node.at)
    for i in range(width):
        left = rewrite(items[i], lambda e: Outer(e.type, e.index) if isinstance(e, Ref) else None)
        right: Expression = Ref(inner.schema.types[i], i)
        common = find_common_type([left.type, right.type])
        if common is None:
            message = f"{left.type} and {right.type} cannot be compared"
            raise SqlValidationError(message, at=node.at)
        null = left.type.null or right.type.null
        equal: Expression = Apply(t.BooleanType(null=null), "=", (coerce(left, common), coerce(right, common)))
        if negated and null:
            is_unknown = Apply(t.BOOLEAN.not_null(), "IS NULL", (equal,))
            equal = Apply(t.BooleanType(null=null), "OR", (equal, is_unknown))
        conditions.append(equal)
    return _create_semi_join(plan, inner, conditions, negated, null_aware=negated)


def is_correlated(plan: l.Plan) -> bool:
    """Return whether a plan refers to the enclosing query."""
    return any(
        isinstance(e, Outer) for node in _walk_nodes(plan) for expr in _list_expressions(node) for e in walk(expr)
    )


def _walk_nodes(plan: l.Plan) -> list[l.Plan]:
    return [plan, *(node for child in plan.inputs() for node in _walk_nodes(child))]


def _list_expressions(node: l.Plan) -> list[Expression]:
    match node:
        case l.Project(exprs=exprs):
            return list(exprs)
        case l.Filter(condition=condition):
            return [condition]
        case l.Join(condition=condition) if condition is not None:
            return [condition]
        case l.Correlate(args=args):
            return list(args)
    return []


def decorrelate(plan: l.Plan, at: int | None) -> tuple[l.Plan, list[Expression]]:
    """Remove the references to the enclosing query from a plan, and return the conditions that contain them.

    Columns that the conditions read are appended to the plan."""
    if not is_correlated(plan):
        return plan, []
    match plan:
        case l.Filter(input=inner, condition=condition):
            base, conditions = decorrelate(inner, at)
            correlated = [c for c in split_conjuncts(condition) if _is_correlated_expression(c)]
            uncorrelated = combine_conjuncts(
                [c for c in split_conjuncts(condition) if not _is_correlated_expression(c)]
            )
            filtered = base if uncorrelated is None else l.Filter(base.schema, base, uncorrelated)
            return filtered, [*conditions, *correlated]
        case l.Project(input=inner, exprs=exprs):
            base, conditions = decorrelate(inner, at)
            if any(map(_is_correlated_expression, exprs)):
                raise _create_error(at)
            needed = sorted({e.index for c in conditions for e in walk(c) if isinstance(e, Ref)})
            columns = [*exprs, *(Ref(base.schema.types[i], i) for i in needed)]
            names = [*plan.schema.names, *(f"$c{i}" for i in needed)]
            mapping = {i: len(exprs) + n for n, i in enumerate(needed)}
            return l.project(base, columns, names), [shift_references(c, mapping) for c in conditions]
        case l.Aggregate(input=inner, keys=keys, calls=calls):
            base, conditions = decorrelate(inner, at)
            return _decorrelate_aggregate(plan, base, keys, calls, conditions, at)
        case l.Join(left=left, right=right, kind="inner", condition=condition):
            left_plan, left_conditions = decorrelate(left, at)
            right_plan, right_conditions = decorrelate(right, at)
            if len(left_plan.schema) != len(left.schema):
                raise _create_error(at)
            width = len(left.schema)
            correlated = [c for c in split_conjuncts(condition) if _is_correlated_expression(c)]
            uncorrelated = combine_conjuncts(
                [c for c in split_conjuncts(condition) if not _is_correlated_expression(c)]
            )
            schema = l.join_schemas(left_plan.schema, right_plan.schema, "inner")
            shifted_conditions = [shift_references(c, lambda i: i + width) for c in right_conditions]
            return l.Join(schema, left_plan, right_plan, "inner", uncorrelated), [
                *left_conditions,
                *shifted_conditions,
                *correlated,
            ]
    raise _create_error(at)


def _decorrelate_aggregate(
    plan: l.Aggregate,
    base: l.Plan,
    keys: tuple[int, ...],
    calls: tuple[AggregateCall, ...],
    conditions: list[Expression],
    at: int | None,
) -> tuple[l.Plan, list[Expression]]:
    """Group an aggregate over a correlated input also by the columns that are compared with the enclosing query."""
    compared: list[int] = []
    for condition in conditions:
        match condition:
            case Apply(function="=", args=(Ref(index=i), other)) if not any(isinstance(e, Ref) for e in walk(other)):
                compared.append(i)
            case Apply(function="=", args=(other, Ref(index=i))) if not any(isinstance(e, Ref) for e in walk(other)):
                compared.append(i)
            case _:
                raise _create_error(at)
    added_keys = [i for i in dict.fromkeys(compared) if i not in keys]
    width = len(keys)
    all_keys = (*keys, *added_keys)
    added_types = [t.strip_time_attribute(base.schema.types[i]) for i in added_keys]
    names = l.make_names_unique(
        [*plan.schema.names[:width], *(f"$t{i}" for i in added_keys), *plan.schema.names[width:]]
    )
    schema = t.row_of(names, [*plan.schema.types[:width], *added_types, *plan.schema.types[width:]], null=False)
    grouped = l.Aggregate(schema, base, all_keys, calls)
    order = [*range(width), *range(width + len(added_keys), len(schema)), *range(width, width + len(added_keys))]
    refs = [Ref(schema.types[i], i) for i in order]
    reordered = l.project(grouped, refs, [names[i] for i in order])
    mapping = {key: order.index(all_keys.index(key)) for key in all_keys}
    return reordered, [shift_references(c, mapping) for c in conditions]


def _is_correlated_expression(expression: Expression) -> bool:
    return any(isinstance(e, Outer) for e in walk(expression))


def _create_error(at: int | None) -> SqlNotSupported:
    message = "this correlated subquery cannot be converted to a join"
    return SqlNotSupported(message, at=at, hint="write it as a join")


class Scalars:
    """Scalar subqueries, each joined to the plan when it is bound."""

    def __init__(
        self, queries: QueryBinder, plan: l.Plan, scope: Scope, outer_columns: Mapping[int, int] | None = None
    ) -> None:
        self._queries, self._scope, self._outer_columns = queries, scope, outer_columns
        self.plan = plan

    def bind(self, node: s.Expr) -> Expression:
        """Join a subquery to the plan and return its value."""
        match node:
            case s.Subquery(at=at, query=query):
                return self._bind_scalar(at, query)
            case s.Exists(at=at, query=query):
                return self._bind_exists(at, query)
            case s.In():
                return self._bind_in_value(node)
        raise AssertionError(node)

    def _bind_scalar(self, at: int, query: s.Query) -> Expression:
        inner = _bind_subquery(self._queries, self._scope, query)
        if len(inner.schema) != 1:
            message = f"a scalar subquery must have one column, this one has {len(inner.schema)}"
            raise SqlValidationError(message, at=at)
        data_type = t.strip_time_attribute(inner.schema.types[0]).nullable()
        empty_value = self._find_empty_value(inner)
        inner, conditions = _decorrelate_lateral(inner, at) if is_correlated(inner) else (inner, [])
        if not conditions and not _has_one_row(inner):
            call = AggregateCall("SINGLE_VALUE", (0,), data_type, (data_type,))
            inner = l.Aggregate(t.row_of(inner.schema.names, [data_type], null=False), inner, (), (call,))
        elif conditions and not isinstance(_skip_projections(inner), l.Aggregate):
            inner, conditions = _enforce_single_value(inner, conditions, data_type, at)
        if conditions and empty_value is not None:
            inner = l.project(inner, [*inner.refs(), TRUE], l.make_names_unique([*inner.schema.names, "$found"]))
        value_column = len(self.plan.schema)
        schema = l.join_schemas(self.plan.schema, inner.schema, "left")
        condition = combine_conjuncts(self._join_conditions(conditions, value_column, at))
        self.plan = l.Join(schema, self.plan, inner, "left", condition)
        value: Expression = Ref(schema.types[value_column], value_column)
        if conditions and empty_value is not None:
            has_group = Apply(t.BOOLEAN.not_null(), "IS NOT NULL", (Ref(schema.types[-1], len(schema) - 1),))
            value = Choose(data_type, (has_group, value, Lit(data_type, empty_value)))
        return value

    def _find_empty_value(self, plan: l.Plan) -> object:
        """Return the value over no rows of an aggregate without groups, if it is not NULL.

        The left join has no row for such a group, so the value is added after the join."""
        values = _compute_values_over_no_rows(plan)
        try:
            return None if values is None else evaluate_constant(values[0], zone=self._queries.session.zone)
        except EvaluationFailed:
            return None

    def _bind_exists(self, at: int, query: s.Query) -> Expression:
        inner = _bind_subquery(self._queries, self._scope, query)
        inner, conditions = decorrelate(inner, at)
        return self._mark(inner, conditions, at)

    def _mark(self, inner: l.Plan, conditions: list[Expression], at: int) -> Expression:
        """Join the plan with the groups of a query, and return whether a row has a match.

        Only equalities are supported, so that each row of the plan matches at most one group."""
        keys: list[int] = []
        for condition in conditions:
            match condition:
                case Apply(function="=", args=(Ref(index=i), _)) | Apply(function="=", args=(_, Ref(index=i))):
                    keys.append(i)
                case _:
                    raise _create_error(at)
        keys_once = tuple(dict.fromkeys(keys))
        base = l.project(inner, [Ref(inner.schema.types[i], i) for i in keys_once], [f"$m{i}" for i in keys_once])
        call = AggregateCall("COUNT", (), t.BIGINT.not_null(), ())
        data_types = [t.strip_time_attribute(data_type) for data_type in base.schema.types]
        schema = t.row_of([*base.schema.names, "$count"], [*data_types, t.BIGINT.not_null()], null=False)
        grouped = l.Aggregate(schema, base, tuple(range(len(keys_once))), (call,))
        width = len(self.plan.schema)
        joined = l.join_schemas(self.plan.schema, grouped.schema, "left")
        mapping = {i: n for n, i in enumerate(keys_once)}
        join_conditions = self._join_conditions([shift_references(c, mapping) for c in conditions], width, at)
        self.plan = l.Join(joined, self.plan, grouped, "left", combine_conjuncts(join_conditions))
        count = Ref(joined.types[-1], len(joined) - 1)
        return Apply(t.BOOLEAN.not_null(), "IS NOT NULL", (count,))

    def _join_conditions(self, conditions: list[Expression], width: int, at: int) -> list[Expression]:
        try:
            return _to_join_conditions(conditions, width, self._outer_columns)
        except KeyError:
            message = "a subquery in a grouped SELECT can refer to columns of GROUP BY only"
            raise SqlValidationError(message, at=at, hint="add the column to GROUP BY") from None

    def _bind_in_value(self, node: s.In) -> Expression:
        assert node.query is not None
        inner = _bind_subquery(self._queries, self._scope, node.query)
        operand = ExpressionBinder(self._queries.session, self._scope, clause="before IN").bind(node.operand)
        if len(inner.schema) != 1:
            message = f"the query after IN has {len(inner.schema)} columns"
            raise SqlValidationError(message, at=node.at)
        if operand.type.null or inner.schema.types[0].null:
            message = "IN with a subquery over nullable columns can only be a condition of WHERE"
            raise SqlNotSupported(message, at=node.at, hint="write it as a join, or exclude NULLs")
        inner, conditions = decorrelate(inner, node.at)
        left = rewrite(operand, lambda e: Outer(e.type, e.index) if isinstance(e, Ref) else None)
        conditions.append(Apply(t.BOOLEAN.not_null(), "=", (left, Ref(inner.schema.types[0], 0))))
        has_match = self._mark(inner, conditions, node.at)
        return Apply(t.BOOLEAN.not_null(), "NOT", (has_match,)) if node.negated else has_match


@dataclass(frozen=True)
class SubqueryRef(Expression):
    """Placeholder for the value of a subquery in a grouped SELECT, until the grouped plan exists."""

    index: int


class Deferred:
    """Scalar subqueries of a grouped SELECT, which are joined to the groups."""

    def __init__(self, queries: QueryBinder, scope: Scope) -> None:
        self._queries, self._scope = queries, scope
        self._walk_nodes: list[s.Expr] = []

    def collect(self, node: s.Expr) -> Expression:
        """Add a subquery and return a placeholder for its value."""
        data_type: t.DataType = t.BOOLEAN.not_null()
        if isinstance(node, s.In):
            message = "IN with a subquery cannot be used in a grouped SELECT"
            raise SqlNotSupported(message, at=node.at, hint="put the grouped query into FROM")
        if isinstance(node, s.Subquery):
            data_type = t.strip_time_attribute(
                _bind_subquery(self._queries, self._scope, node.query).schema.types[0]
            ).nullable()
        self._walk_nodes.append(node)
        return SubqueryRef(data_type, len(self._walk_nodes) - 1)

    def join(
        self, plan: l.Plan, key_columns: Mapping[int, int], exprs: list[Expression]
    ) -> tuple[l.Plan, list[Expression]]:
        """Join the subqueries to the groups, and rewrite the expressions to refer to their values."""
        holder = Scalars(self._queries, plan, self._scope, key_columns)
        values = [holder.bind(node) for node in self._walk_nodes]

        def change(expression: Expression) -> Expression | None:
            return values[expression.index] if isinstance(expression, SubqueryRef) else None

        return holder.plan, [rewrite(expr, change) for expr in exprs]


def _skip_projections(plan: l.Plan) -> l.Plan:
    while isinstance(plan, l.Project):
        plan = plan.input
    return plan


def _compute_values_over_no_rows(plan: l.Plan) -> tuple[Expression, ...] | None:
    """Return the values over no rows of an aggregate without groups, and of projections of it.

    Returns None for any other plan."""
    match plan:
        case l.Aggregate(keys=(), calls=calls):
            return tuple(
                Lit(call.type, 0) if call.function == "COUNT" else Lit(call.type.nullable(), None) for call in calls
            )
        case l.Project(input=inner, exprs=exprs):
            input_values = _compute_values_over_no_rows(inner)
            if input_values is None or any(map(_is_correlated_expression, exprs)):
                return None
            return tuple(substitute(expr, input_values) for expr in exprs)
    return None


def _enforce_single_value(
    inner: l.Plan, conditions: list[Expression], data_type: t.DataType, at: int | None
) -> tuple[l.Plan, list[Expression]]:
    """Group by the compared columns and return the only value of each group; more than one value is an error."""
    compared = []
    for condition in conditions:
        match condition:
            case Apply(function="=", args=(Ref(index=i), other)) if not any(isinstance(e, Ref) for e in walk(other)):
                compared.append(i)
            case Apply(function="=", args=(other, Ref(index=i))) if not any(isinstance(e, Ref) for e in walk(other)):
                compared.append(i)
            case _:
                raise _create_error(at)
    keys = tuple(dict.fromkeys(compared))
    call = AggregateCall("SINGLE_VALUE", (0,), data_type, (data_type,))
    names = l.make_names_unique([*(inner.schema.names[i] for i in keys), "$value"])
    key_types = [t.strip_time_attribute(inner.schema.types[i]) for i in keys]
    grouped = l.Aggregate(t.row_of(names, [*key_types, data_type], null=False), inner, keys, (call,))
    refs = grouped.refs()
    reordered = l.project(grouped, [refs[-1], *refs[:-1]], [names[-1], *names[:-1]])
    mapping = {key: index + 1 for index, key in enumerate(keys)}
    return reordered, [shift_references(c, mapping) for c in conditions]


def _has_one_row(plan: l.Plan) -> bool:
    below = _skip_projections(plan)
    match below:
        case l.Aggregate(keys=()):
            return True
        case l.Values(rows=rows):
            return len(rows) <= 1
        case l.Sort(limit=limit) if limit is not None and limit <= 1:
            return True
    return False


def bind_lateral_join(
    queries: QueryBinder, left: l.Plan, scope: Scope, node: s.DerivedTable, join_type: str
) -> tuple[l.Plan, list[str]]:
    """Bind LATERAL (SELECT ...) as an inner or left join."""
    if join_type not in ("inner", "left"):
        message = "a lateral query can be joined by JOIN or LEFT JOIN only"
        raise SqlNotSupported(message, at=node.at)
    inner = _bind_subquery(queries, scope, node.query)
    names = list(node.columns or inner.schema.names)
    inner, conditions = _decorrelate_lateral(inner, node.at)
    schema = l.join_schemas(left.schema, inner.schema, join_type)
    condition = combine_conjuncts(_to_join_conditions(conditions, len(left.schema)))
    return l.Join(schema, left, inner, join_type, condition), names


def _decorrelate_lateral(plan: l.Plan, at: int | None) -> tuple[l.Plan, list[Expression]]:
    """Decorrelate a plan; ORDER BY with LIMIT becomes a Top-N for each value of the compared columns."""
    if isinstance(plan, l.Sort) and plan.limit is not None:
        base, conditions = decorrelate(plan.input, at)
        compared = []
        for condition in conditions:
            match condition:
                case Apply(function="=", args=(Ref(index=i), _)) | Apply(function="=", args=(_, Ref(index=i))):
                    compared.append(i)
                case _:
                    raise _create_error(at)
        first = plan.offset + 1
        rank = l.Rank(
            base.schema, base, "ROW_NUMBER", tuple(compared), plan.order, first, plan.offset + plan.limit, False
        )
        return rank, conditions
    if isinstance(plan, l.Project) and isinstance(plan.input, l.Sort):
        base, conditions = _decorrelate_lateral(plan.input, at)
        needed = sorted({e.index for c in conditions for e in walk(c) if isinstance(e, Ref)})
        columns = [*plan.exprs, *(Ref(base.schema.types[i], i) for i in needed)]
        mapping = {i: len(plan.exprs) + n for n, i in enumerate(needed)}
        names = [*plan.schema.names, *(f"$c{i}" for i in needed)]
        return l.project(base, columns, names), [shift_references(c, mapping) for c in conditions]
    return decorrelate(plan, at)

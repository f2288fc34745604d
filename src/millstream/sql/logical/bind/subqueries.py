"""Subqueries become joins: IN and EXISTS semi and anti joins, scalar ones left joins.

Promises: a correlated subquery is taken apart into the part that stands alone and the condition that ties it to the
query around it; what cannot be taken apart is refused.
Does not know: how joins are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.evaluation.evaluate import EvaluationFailed, constant
from millstream.sql.expressions.nodes import (
    TRUE,
    AggregateCall,
    Apply,
    Choose,
    Expression,
    Lit,
    Ref,
    conjunction,
    conjuncts,
    rewrite,
    shifted,
    substituted,
    walk,
)
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, coerced
from millstream.sql.logical.bind.scope import Outer, Scope
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import common_type

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder


def semi_join(queries: QueryBinder, plan: l.Plan, scope: Scope, node: s.Expr) -> l.Plan | None:
    """The plan for a condition of WHERE that is IN, EXISTS or NOT of them over a query; None for any other."""
    negated = False
    while isinstance(node, s.Call) and node.name == "NOT" and isinstance(node.args[0], s.In | s.Exists):
        negated = not negated
        node = node.args[0]
    match node:
        case s.In(query=query) if query is not None:
            return _in(queries, plan, scope, node, negated != node.negated)
        case s.Exists(query=query):
            inner = _subplan(queries, scope, query)
            inner, conditions = decorrelated(inner, node.at)
            return _joined(plan, inner, conditions, negated)
    return None


def _subplan(queries: QueryBinder, scope: Scope, query: s.Query) -> l.Plan:
    return type(queries)(queries.session, queries.ctes, scope).query(query)


def _joined(plan: l.Plan, inner: l.Plan, conditions: list[Expression], negated: bool, *, aware: bool = False) -> l.Plan:
    kind = "anti" if negated else "semi"
    return l.Join(plan.schema, plan, inner, kind, conjunction(_over_join(conditions, len(plan.schema))), aware)


def _over_join(conditions: list[Expression], width: int, places: Mapping[int, int] | None = None) -> list[Expression]:
    """Conditions over (outer columns as Outer, inner columns as Ref) as conditions over both sides of a join; `places`
    says where outer columns are, if not where they were."""

    def change(each: Expression) -> Expression | None:
        if isinstance(each, Outer):
            return Ref(each.type, each.index if places is None else places[each.index])
        return Ref(each.type, each.index + width) if isinstance(each, Ref) else None

    return [rewrite(condition, change) for condition in conditions]


def _in(queries: QueryBinder, plan: l.Plan, scope: Scope, node: s.In, negated: bool) -> l.Plan:
    assert node.query is not None
    inner = _subplan(queries, scope, node.query)
    operand = ExpressionBinder(queries.session, scope, clause="before IN").bind(node.operand)
    items = list(operand.args) if isinstance(operand, Apply) and operand.function == "ROW" else [operand]
    if len(inner.schema) != len(items):
        message = f"the query behind IN has {len(inner.schema)} columns, not {len(items)}"
        raise SqlValidationError(message, at=node.at)
    width = len(inner.schema)
    inner, conditions = decorrelated(inner, node.at)
    for i in range(width):
        left = rewrite(items[i], lambda e: Outer(e.type, e.index) if isinstance(e, Ref) else None)
        right: Expression = Ref(inner.schema.types[i], i)
        common = common_type([left.type, right.type])
        if common is None:
            message = f"{left.type} and {right.type} cannot be compared"
            raise SqlValidationError(message, at=node.at)
        null = left.type.null or right.type.null
        equal: Expression = Apply(t.BooleanType(null=null), "=", (coerced(left, common), coerced(right, common)))
        if negated and null:
            unknown = Apply(t.BOOLEAN.not_null(), "IS NULL", (equal,))
            equal = Apply(t.BooleanType(null=null), "OR", (equal, unknown))
        conditions.append(equal)
    return _joined(plan, inner, conditions, negated, aware=negated)


def is_correlated(plan: l.Plan) -> bool:
    """Whether anything in a plan refers to the query around it."""
    return any(isinstance(e, Outer) for node in _nodes(plan) for expr in _expressions(node) for e in walk(expr))


def _nodes(plan: l.Plan) -> list[l.Plan]:
    return [plan, *(node for child in plan.inputs() for node in _nodes(child))]


def _expressions(node: l.Plan) -> list[Expression]:
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


def decorrelated(plan: l.Plan, at: int | None) -> tuple[l.Plan, list[Expression]]:
    """The plan without references to the outside, and the conditions in which they were; columns that the conditions
    need are behind the plan's own."""
    if not is_correlated(plan):
        return plan, []
    match plan:
        case l.Filter(input=inner, condition=condition):
            base, conditions = decorrelated(inner, at)
            tied = [c for c in conjuncts(condition) if _is_tied(c)]
            free = conjunction([c for c in conjuncts(condition) if not _is_tied(c)])
            made = base if free is None else l.Filter(base.schema, base, free)
            return made, [*conditions, *tied]
        case l.Project(input=inner, exprs=exprs):
            base, conditions = decorrelated(inner, at)
            if any(map(_is_tied, exprs)):
                raise _refused(at)
            needed = sorted({e.index for c in conditions for e in walk(c) if isinstance(e, Ref)})
            columns = [*exprs, *(Ref(base.schema.types[i], i) for i in needed)]
            names = [*plan.schema.names, *(f"$c{i}" for i in needed)]
            mapping = {i: len(exprs) + n for n, i in enumerate(needed)}
            return l.project(base, columns, names), [shifted(c, mapping) for c in conditions]
        case l.Aggregate(input=inner, keys=keys, calls=calls):
            base, conditions = decorrelated(inner, at)
            return _grouped(plan, base, keys, calls, conditions, at)
        case l.Join(left=left, right=right, kind="inner", condition=condition):
            one, ones = decorrelated(left, at)
            other, others = decorrelated(right, at)
            if len(one.schema) != len(left.schema):
                raise _refused(at)
            width = len(left.schema)
            tied = [c for c in conjuncts(condition) if _is_tied(c)]
            free = conjunction([c for c in conjuncts(condition) if not _is_tied(c)])
            schema = l.joined_schema(one.schema, other.schema, "inner")
            moved = [shifted(c, lambda i: i + width) for c in others]
            return l.Join(schema, one, other, "inner", free), [*ones, *moved, *tied]
    raise _refused(at)


def _grouped(
    plan: l.Aggregate,
    base: l.Plan,
    keys: tuple[int, ...],
    calls: tuple[AggregateCall, ...],
    conditions: list[Expression],
    at: int | None,
) -> tuple[l.Plan, list[Expression]]:
    """An aggregate of a correlated input: it is grouped by what ties it, too."""
    ties: list[int] = []
    for condition in conditions:
        match condition:
            case Apply(function="=", args=(Ref(index=i), other)) if not any(isinstance(e, Ref) for e in walk(other)):
                ties.append(i)
            case Apply(function="=", args=(other, Ref(index=i))) if not any(isinstance(e, Ref) for e in walk(other)):
                ties.append(i)
            case _:
                raise _refused(at)
    extra = [i for i in dict.fromkeys(ties) if i not in keys]
    width = len(keys)
    all_keys = (*keys, *extra)
    kinds = [t.plain(base.schema.types[i]) for i in extra]
    names = l.unique([*plan.schema.names[:width], *(f"$t{i}" for i in extra), *plan.schema.names[width:]])
    schema = t.row_of(names, [*plan.schema.types[:width], *kinds, *plan.schema.types[width:]], null=False)
    grouped = l.Aggregate(schema, base, all_keys, calls)
    back = [*range(width), *range(width + len(extra), len(schema)), *range(width, width + len(extra))]
    refs = [Ref(schema.types[i], i) for i in back]
    made = l.project(grouped, refs, [names[i] for i in back])
    mapping = {key: back.index(all_keys.index(key)) for key in all_keys}
    return made, [shifted(c, mapping) for c in conditions]


def _is_tied(expression: Expression) -> bool:
    return any(isinstance(e, Outer) for e in walk(expression))


def _refused(at: int | None) -> SqlNotSupported:
    message = "this correlated subquery cannot be taken apart"
    return SqlNotSupported(message, at=at, hint="write it as a join")


class Scalars:
    """Subqueries that stand for values, joined to a plan one after the other."""

    def __init__(
        self, queries: QueryBinder, plan: l.Plan, scope: Scope, places: Mapping[int, int] | None = None
    ) -> None:
        self._queries, self._scope, self._places = queries, scope, places
        self.plan = plan

    def bind(self, node: s.Expr) -> Expression:
        """The value of a subquery."""
        match node:
            case s.Subquery(at=at, query=query):
                return self._scalar(at, query)
            case s.Exists(at=at, query=query):
                return self._exists(at, query)
            case s.In():
                return self._marked(node)
        raise AssertionError(node)

    def _scalar(self, at: int, query: s.Query) -> Expression:
        inner = _subplan(self._queries, self._scope, query)
        if len(inner.schema) != 1:
            message = f"a subquery that stands for a value has {len(inner.schema)} columns"
            raise SqlValidationError(message, at=at)
        kind = t.plain(inner.schema.types[0]).nullable()
        of_nothing = self._of_nothing(inner)
        inner, conditions = _lateral_parts(inner, at) if is_correlated(inner) else (inner, [])
        if not conditions and not _one_row(inner):
            call = AggregateCall("SINGLE_VALUE", (0,), kind, (kind,))
            inner = l.Aggregate(t.row_of(inner.schema.names, [kind], null=False), inner, (), (call,))
        elif conditions and not isinstance(_below(inner), l.Aggregate):
            inner, conditions = _single_values(inner, conditions, kind, at)
        if conditions and of_nothing is not None:
            inner = l.project(inner, [*inner.refs(), TRUE], l.unique([*inner.schema.names, "$found"]))
        place = len(self.plan.schema)
        schema = l.joined_schema(self.plan.schema, inner.schema, "left")
        condition = conjunction(self._tied(conditions, place, at))
        self.plan = l.Join(schema, self.plan, inner, "left", condition)
        value: Expression = Ref(schema.types[place], place)
        if conditions and of_nothing is not None:
            found = Apply(t.BOOLEAN.not_null(), "IS NOT NULL", (Ref(schema.types[-1], len(schema) - 1),))
            value = Choose(kind, (found, value, Lit(kind, of_nothing)))
        return value

    def _of_nothing(self, plan: l.Plan) -> object:
        """What an aggregate without groups is of no rows, where that is not NULL: a join finds no row for it."""
        values = _values_of_nothing(plan)
        try:
            return None if values is None else constant(values[0], zone=self._queries.session.zone)
        except EvaluationFailed:
            return None

    def _exists(self, at: int, query: s.Query) -> Expression:
        inner = _subplan(self._queries, self._scope, query)
        inner, conditions = decorrelated(inner, at)
        return self._mark(inner, conditions, at)

    def _mark(self, inner: l.Plan, conditions: list[Expression], at: int) -> Expression:
        """Whether there is a row: equalities only, so that each row of the plan meets one group at most."""
        keys: list[int] = []
        for condition in conditions:
            match condition:
                case Apply(function="=", args=(Ref(index=i), _)) | Apply(function="=", args=(_, Ref(index=i))):
                    keys.append(i)
                case _:
                    raise _refused(at)
        unique = tuple(dict.fromkeys(keys))
        base = l.project(inner, [Ref(inner.schema.types[i], i) for i in unique], [f"$m{i}" for i in unique])
        call = AggregateCall("COUNT", (), t.BIGINT.not_null(), ())
        kinds = [t.plain(k) for k in base.schema.types]
        schema = t.row_of([*base.schema.names, "$count"], [*kinds, t.BIGINT.not_null()], null=False)
        grouped = l.Aggregate(schema, base, tuple(range(len(unique))), (call,))
        place = len(self.plan.schema)
        joined = l.joined_schema(self.plan.schema, grouped.schema, "left")
        mapping = {i: n for n, i in enumerate(unique)}
        tied = self._tied([shifted(c, mapping) for c in conditions], place, at)
        self.plan = l.Join(joined, self.plan, grouped, "left", conjunction(tied))
        count = Ref(joined.types[-1], len(joined) - 1)
        return Apply(t.BOOLEAN.not_null(), "IS NOT NULL", (count,))

    def _tied(self, conditions: list[Expression], width: int, at: int) -> list[Expression]:
        try:
            return _over_join(conditions, width, self._places)
        except KeyError:
            message = "a subquery beside aggregates can refer to what is grouped by only"
            raise SqlValidationError(message, at=at, hint="add the column to GROUP BY") from None

    def _marked(self, node: s.In) -> Expression:
        assert node.query is not None
        inner = _subplan(self._queries, self._scope, node.query)
        operand = ExpressionBinder(self._queries.session, self._scope, clause="before IN").bind(node.operand)
        if len(inner.schema) != 1:
            message = f"the query behind IN has {len(inner.schema)} columns"
            raise SqlValidationError(message, at=node.at)
        if operand.type.null or inner.schema.types[0].null:
            message = "IN over a query with NULLs can only stand alone in WHERE"
            raise SqlNotSupported(message, at=node.at, hint="write it as a join, or exclude NULLs")
        inner, conditions = decorrelated(inner, node.at)
        left = rewrite(operand, lambda e: Outer(e.type, e.index) if isinstance(e, Ref) else None)
        conditions.append(Apply(t.BOOLEAN.not_null(), "=", (left, Ref(inner.schema.types[0], 0))))
        found = self._mark(inner, conditions, node.at)
        return Apply(t.BOOLEAN.not_null(), "NOT", (found,)) if node.negated else found


@dataclass(frozen=True)
class SubqueryRef(Expression):
    """The value of a subquery beside aggregates, until there are groups to join it to."""

    index: int


class Deferred:
    """Subqueries of a grouped SELECT, which stand for values beside those of the groups."""

    def __init__(self, queries: QueryBinder, scope: Scope) -> None:
        self._queries, self._scope = queries, scope
        self._nodes: list[s.Expr] = []

    def collect(self, node: s.Expr) -> Expression:
        """Take a subquery in."""
        kind: t.DataType = t.BOOLEAN.not_null()
        if isinstance(node, s.In):
            message = "IN over a query cannot stand beside aggregates"
            raise SqlNotSupported(message, at=node.at, hint="put the grouped query into FROM")
        if isinstance(node, s.Subquery):
            kind = t.plain(_subplan(self._queries, self._scope, node.query).schema.types[0]).nullable()
        self._nodes.append(node)
        return SubqueryRef(kind, len(self._nodes) - 1)

    def joined(
        self, plan: l.Plan, places: Mapping[int, int], exprs: list[Expression]
    ) -> tuple[l.Plan, list[Expression]]:
        """The groups with the values behind them, and the expressions over both."""
        holder = Scalars(self._queries, plan, self._scope, places)
        values = [holder.bind(node) for node in self._nodes]

        def change(each: Expression) -> Expression | None:
            return values[each.index] if isinstance(each, SubqueryRef) else None

        return holder.plan, [rewrite(each, change) for each in exprs]


def _below(plan: l.Plan) -> l.Plan:
    while isinstance(plan, l.Project):
        plan = plan.input
    return plan


def _values_of_nothing(plan: l.Plan) -> tuple[Expression, ...] | None:
    """What an aggregate without groups, and what is computed from it, is of no rows; None for any other plan."""
    match plan:
        case l.Aggregate(keys=(), calls=calls):
            return tuple(
                Lit(call.type, 0) if call.function == "COUNT" else Lit(call.type.nullable(), None) for call in calls
            )
        case l.Project(input=inner, exprs=exprs):
            below = _values_of_nothing(inner)
            if below is None or any(map(_is_tied, exprs)):
                return None
            return tuple(substituted(each, below) for each in exprs)
    return None


def _single_values(
    inner: l.Plan, conditions: list[Expression], kind: t.DataType, at: int | None
) -> tuple[l.Plan, list[Expression]]:
    """The one value for each tie; it fails where there is more than one."""
    ties = []
    for condition in conditions:
        match condition:
            case Apply(function="=", args=(Ref(index=i), other)) if not any(isinstance(e, Ref) for e in walk(other)):
                ties.append(i)
            case Apply(function="=", args=(other, Ref(index=i))) if not any(isinstance(e, Ref) for e in walk(other)):
                ties.append(i)
            case _:
                raise _refused(at)
    keys = tuple(dict.fromkeys(ties))
    call = AggregateCall("SINGLE_VALUE", (0,), kind, (kind,))
    names = l.unique([*(inner.schema.names[i] for i in keys), "$value"])
    kinds = [t.plain(inner.schema.types[i]) for i in keys]
    grouped = l.Aggregate(t.row_of(names, [*kinds, kind], null=False), inner, keys, (call,))
    refs = grouped.refs()
    made = l.project(grouped, [refs[-1], *refs[:-1]], [names[-1], *names[:-1]])
    mapping = {key: place + 1 for place, key in enumerate(keys)}
    return made, [shifted(c, mapping) for c in conditions]


def _one_row(plan: l.Plan) -> bool:
    below = _below(plan)
    match below:
        case l.Aggregate(keys=()):
            return True
        case l.Values(rows=rows):
            return len(rows) <= 1
        case l.Sort(limit=limit) if limit is not None and limit <= 1:
            return True
    return False


def lateral_join(
    queries: QueryBinder, left: l.Plan, scope: Scope, node: s.DerivedTable, kind: str
) -> tuple[l.Plan, list[str]]:
    """LATERAL (SELECT ...): an inner or left join with what ties the query to the row."""
    if kind not in ("inner", "left"):
        message = "a lateral query can be joined by JOIN or LEFT JOIN only"
        raise SqlNotSupported(message, at=node.at)
    inner = _subplan(queries, scope, node.query)
    names = list(node.columns or inner.schema.names)
    inner, conditions = _lateral_parts(inner, node.at)
    schema = l.joined_schema(left.schema, inner.schema, kind)
    condition = conjunction(_over_join(conditions, len(left.schema)))
    return l.Join(schema, left, inner, kind, condition), names


def _lateral_parts(plan: l.Plan, at: int | None) -> tuple[l.Plan, list[Expression]]:
    """As `decorrelated`; ORDER BY with LIMIT inside becomes a rank for each tie."""
    if isinstance(plan, l.Sort) and plan.limit is not None:
        base, conditions = decorrelated(plan.input, at)
        ties = []
        for condition in conditions:
            match condition:
                case Apply(function="=", args=(Ref(index=i), _)) | Apply(function="=", args=(_, Ref(index=i))):
                    ties.append(i)
                case _:
                    raise _refused(at)
        first = plan.offset + 1
        rank = l.Rank(base.schema, base, "ROW_NUMBER", tuple(ties), plan.order, first, plan.offset + plan.limit, False)
        return rank, conditions
    if isinstance(plan, l.Project) and isinstance(plan.input, l.Sort):
        base, conditions = _lateral_parts(plan.input, at)
        needed = sorted({e.index for c in conditions for e in walk(c) if isinstance(e, Ref)})
        columns = [*plan.exprs, *(Ref(base.schema.types[i], i) for i in needed)]
        mapping = {i: len(plan.exprs) + n for n, i in enumerate(needed)}
        names = [*plan.schema.names, *(f"$c{i}" for i in needed)]
        return l.project(base, columns, names), [shifted(c, mapping) for c in conditions]
    return decorrelated(plan, at)

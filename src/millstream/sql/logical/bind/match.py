"""Binding of MATCH_RECOGNIZE: the row pattern, and the expressions over the rows of a match.

Promises: steps are strictly contiguous; quantifiers are greedy unless a question mark follows. Patterns that Flink
refuses are refused: groups, alternatives, ALL ROWS PER MATCH, a last step that is optional.
Does not know: how patterns are planned or matched."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from millstream.runtime.nfa.pattern import Skip, SkipKind
from millstream.sql.errors import SqlNotSupported, SqlValidationError, nearest
from millstream.sql.expressions.nodes import AggregateCall, Expression, Lit, Ref
from millstream.sql.functions.aggregates import resolve_aggregate
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, Hooks, is_aggregate
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.logical.patterns import MatchDescription, PatternRef
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.times import MILLISECOND

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder


class _Binder:
    """Binds expressions that refer to variables of a pattern."""

    def __init__(self, queries: QueryBinder, plan: l.Plan, scope: Scope, variables: list[str], time: int) -> None:
        self._queries, self._plan, self._scope = queries, plan, scope
        self._variables, self._time = variables, time
        self._rows = ExpressionBinder(queries.session, scope, clause="in a pattern")

    def bind(self, node: s.Expr) -> tuple[Expression, list[PatternRef]]:
        """Bind an expression, and return it with the values that it reads."""
        refs: list[PatternRef] = []

        def add_ref(ref: PatternRef, data_type: t.DataType) -> Expression:
            if ref not in refs:
                refs.append(ref)
            return Ref(data_type if ref.call is not None else data_type.nullable(), refs.index(ref))

        def pattern(expr_node: s.Expr) -> Expression | None:
            match expr_node:
                case s.Name(parts=(variable, *rest)) if rest and variable in self._variables:
                    expr = self._scope.resolve(tuple(rest), expr_node.at)
                    return add_ref(PatternRef(variable, expr=expr), expr.type)
                case s.Name():
                    expr = self._scope.resolve(expr_node.parts, expr_node.at)
                    return add_ref(PatternRef(None, expr=expr), expr.type)
                case s.Call(name="FIRST" | "LAST", args=args) if args:
                    return self._bind_edge(expr_node, add_ref)
                case s.Call(name="MATCH_ROWTIME" | "MATCH_PROCTIME"):
                    data_type = self._plan.schema.types[self._time]
                    return add_ref(PatternRef(None, expr=Ref(t.strip_time_attribute(data_type), self._time)), data_type)
                case s.Call(name="PREV" | "NEXT"):
                    message = f"{expr_node.name} is not supported"
                    raise SqlNotSupported(message, at=expr_node.at, hint="use LAST(A.x, 1) for the row before")
                case s.Call() if is_aggregate(expr_node, self._queries.session.catalogs):
                    return self._aggregate(expr_node, add_ref)
            return None

        binder = ExpressionBinder(self._queries.session, self._scope, Hooks(pattern=pattern), "in a pattern")
        return binder.bind(node), refs

    def _bind_inner(self, node: s.Expr) -> tuple[str | None, Expression]:
        """Bind an expression that reads rows of one variable, and return the variable."""
        variables: set[str] = set()

        def pattern(expr_node: s.Expr) -> Expression | None:
            if isinstance(expr_node, s.Name) and len(expr_node.parts) > 1 and expr_node.parts[0] in self._variables:
                variables.add(expr_node.parts[0])
                return self._scope.resolve(expr_node.parts[1:], expr_node.at)
            return None

        binder = ExpressionBinder(self._queries.session, self._scope, Hooks(pattern=pattern), "in a pattern")
        expr = binder.bind(node)
        if len(variables) > 1:
            message = f"one expression refers to several variables: {', '.join(sorted(variables))}"
            raise SqlValidationError(message, at=node.at, hint="FIRST, LAST and aggregates read one variable")
        return (variables.pop() if variables else None), expr

    def _bind_edge(self, call: s.Call, add_ref: object) -> Expression:
        variable, expr = self._bind_inner(call.args[0])
        offset = 0
        if len(call.args) > 1:
            literal = self._rows.bind(call.args[1])
            if not isinstance(literal, Lit) or not isinstance(literal.value, int):
                message = f"the offset of {call.name} must be an integer"
                raise SqlValidationError(message, at=call.at)
            offset = literal.value
        ref = PatternRef(variable, call.name == "FIRST", offset, expr)
        value: Expression = add_ref(ref, expr.type)  # type: ignore[operator]
        return value

    def _aggregate(self, call: s.Call, add_ref: object) -> Expression:
        variable: str | None = None
        args: list[Expression] = []
        for arg in call.args:
            if isinstance(arg, s.Star) and arg.qualifier:
                variable = arg.qualifier[0]
                continue
            arg_variable, expr = self._bind_inner(arg)
            variable = arg_variable or variable
            args.append(expr)
        arg_types = tuple(arg.type for arg in args)
        result_type = resolve_aggregate(call.name, arg_types, call.at)
        aggregate_call = AggregateCall(call.name, (), result_type, arg_types, call.distinct)
        result: Expression = add_ref(PatternRef(variable, call=aggregate_call, args=tuple(args)), result_type)  # type: ignore[operator]
        return result


def bind_match(queries: QueryBinder, node: s.MatchRecognize, plan: l.Plan, scope: Scope) -> l.Plan:
    """Bind MATCH_RECOGNIZE over a bound input."""
    if node.all_rows:
        message = "ALL ROWS PER MATCH is not supported"
        raise SqlNotSupported(message, at=node.at, hint="write ONE ROW PER MATCH")
    steps = _read_steps(node.pattern)
    names = [name for name, *_ in steps]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        message = f"the variable {repeated[0]} is in the pattern twice"
        raise SqlNotSupported(message, at=node.pattern.at)
    if steps[-1][3] and (steps[-1][2] is None or steps[-1][2] > steps[-1][1]):
        message = "a pattern cannot end with a greedy quantifier"
        raise SqlNotSupported(message, at=node.pattern.at, hint="add a variable after it that ends the match")
    binder = ExpressionBinder(queries.session, scope, clause="in MATCH_RECOGNIZE")
    partition = _list_columns([binder.bind(partition_expr) for partition_expr in node.partition], node.at)
    if not node.order:
        message = "MATCH_RECOGNIZE needs ORDER BY a time attribute"
        raise SqlValidationError(message, at=node.at)
    order = binder.bind(node.order[0].expr)
    if not isinstance(order, Ref) or t.get_time_attribute(order.type) is None or not node.order[0].ascending:
        message = "MATCH_RECOGNIZE must be ordered by a time attribute, ascending"
        raise SqlValidationError(message, at=node.order[0].at)
    variables = [*names, *(name for name, _ in node.subsets)]
    values = _Binder(queries, plan, scope, variables, order.index)
    define = []
    for variable, expr in node.define:
        if variable not in names:
            message = f"DEFINE names '{variable}', which is not in the pattern"
            raise SqlValidationError(message, at=expr.at, hint=nearest(variable, names))
        bound, refs = values.bind(expr)
        define.append((variable, bound, tuple(refs)))
    measures = [(values.bind(expr), name) for expr, name in node.measures]
    skip = _read_skip(node, names)
    within = _read_within(binder, node.within)
    data_types = [plan.schema.types[i] for i in partition] + [bound.type for (bound, _), _ in measures]
    out = l.make_names_unique([*(plan.schema.names[i] for i in partition), *(name for _, name in measures)])
    description = MatchDescription(
        tuple(steps),
        tuple(define),
        tuple((bound, tuple(refs)) for (bound, refs), _ in measures),
        partition,
        order.index,
        skip,
        within,
        node.subsets,
        t.get_time_attribute(order.type) == t.PROCTIME,
    )
    return l.Match(t.row_of(out, data_types, null=False), plan, description)


def _list_columns(exprs: list[Expression], at: int) -> tuple[int, ...]:
    if not all(isinstance(expr, Ref) for expr in exprs):
        message = "PARTITION BY of MATCH_RECOGNIZE must name columns"
        raise SqlNotSupported(message, at=at)
    return tuple(expr.index for expr in exprs if isinstance(expr, Ref))


def _read_steps(node: s.PatternNode) -> list[tuple[str, int, int | None, bool]]:
    parts = node.parts if node.type == "sequence" else (node,)
    steps: list[tuple[str, int, int | None, bool]] = []
    for part in parts:
        match part:
            case s.PatternNode(type="variable", name=name):
                steps.append((name, 1, 1, False))
            case s.PatternNode(
                type="quantified",
                parts=(s.PatternNode(type="variable", name=name),),
                least=least,
                most=most,
                greedy=greedy,
            ):
                steps.append((name, least, most, greedy))
            case _:
                construct = "alternatives" if part.type == "choice" else "groups of variables"
                message = f"{construct} in a pattern are not supported"
                raise SqlNotSupported(message, at=part.at)
    return steps


def _read_skip(node: s.MatchRecognize, names: list[str]) -> Skip:
    how, name = node.skip
    if name is not None and name not in names:
        message = f"AFTER MATCH SKIP names '{name}', which is not in the pattern"
        raise SqlValidationError(message, at=node.at, hint=nearest(name, names))
    match how:
        case "TO NEXT ROW":
            return Skip(SkipKind.SKIP_TO_NEXT)
        case "TO FIRST":
            return Skip(SkipKind.SKIP_TO_FIRST, name, strict=True)
        case "TO LAST":
            return Skip(SkipKind.SKIP_TO_LAST, name, strict=True)
    return Skip(SkipKind.SKIP_PAST_LAST_EVENT)


def _read_within(binder: ExpressionBinder, node: s.Expr | None) -> int | None:
    if node is None:
        return None
    interval = binder.bind(node)
    if not isinstance(interval, Lit) or not isinstance(interval.value, datetime.timedelta):
        message = "WITHIN needs an interval of days or less"
        raise SqlValidationError(message, at=node.at)
    return int(interval.value // MILLISECOND)

"""Binding of MATCH_RECOGNIZE: a row pattern, and its expressions over the rows of a match.

Promises: steps are strict, quantifiers greedy unless a question mark follows; what Flink refuses (groups, alternatives,
ALL ROWS PER MATCH, an optional last step) is refused.
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

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder


class _Binder:
    """Binds expressions over variables of a pattern."""

    def __init__(self, queries: QueryBinder, plan: l.Plan, scope: Scope, variables: list[str], time: int) -> None:
        self._queries, self._plan, self._scope = queries, plan, scope
        self._variables, self._time = variables, time
        self._rows = ExpressionBinder(queries.session, scope, clause="in a pattern")

    def bind(self, node: s.Expr) -> tuple[Expression, list[PatternRef]]:
        """An expression over values, and the values."""
        refs: list[PatternRef] = []

        def place(ref: PatternRef, kind: t.DataType) -> Expression:
            if ref not in refs:
                refs.append(ref)
            return Ref(kind if ref.call is not None else kind.nullable(), refs.index(ref))

        def pattern(each: s.Expr) -> Expression | None:
            match each:
                case s.Name(parts=(variable, *rest)) if rest and variable in self._variables:
                    expr = self._scope.resolve(tuple(rest), each.at)
                    return place(PatternRef(variable, expr=expr), expr.type)
                case s.Name():
                    expr = self._scope.resolve(each.parts, each.at)
                    return place(PatternRef(None, expr=expr), expr.type)
                case s.Call(name="FIRST" | "LAST", args=args) if args:
                    return self._edge(each, place)
                case s.Call(name="MATCH_ROWTIME" | "MATCH_PROCTIME"):
                    kind = self._plan.schema.types[self._time]
                    return place(PatternRef(None, expr=Ref(t.plain(kind), self._time)), kind)
                case s.Call(name="PREV" | "NEXT"):
                    message = f"{each.name} is not supported"
                    raise SqlNotSupported(message, at=each.at, hint="use LAST(A.x, 1) for the row before")
                case s.Call() if is_aggregate(each, self._queries.session.catalogs):
                    return self._aggregate(each, place)
            return None

        binder = ExpressionBinder(self._queries.session, self._scope, Hooks(pattern=pattern), "in a pattern")
        return binder.bind(node), refs

    def _inner(self, node: s.Expr) -> tuple[str | None, Expression]:
        """An expression over rows of one variable."""
        found: set[str] = set()

        def pattern(each: s.Expr) -> Expression | None:
            if isinstance(each, s.Name) and len(each.parts) > 1 and each.parts[0] in self._variables:
                found.add(each.parts[0])
                return self._scope.resolve(each.parts[1:], each.at)
            return None

        binder = ExpressionBinder(self._queries.session, self._scope, Hooks(pattern=pattern), "in a pattern")
        expr = binder.bind(node)
        if len(found) > 1:
            message = f"one expression names the variables {', '.join(sorted(found))}"
            raise SqlValidationError(message, at=node.at, hint="FIRST, LAST and aggregates are over one variable")
        return (found.pop() if found else None), expr

    def _edge(self, call: s.Call, place: object) -> Expression:
        variable, expr = self._inner(call.args[0])
        offset = 0
        if len(call.args) > 1:
            literal = self._rows.bind(call.args[1])
            if not isinstance(literal, Lit) or not isinstance(literal.value, int):
                message = f"the offset of {call.name} must be a whole number"
                raise SqlValidationError(message, at=call.at)
            offset = literal.value
        ref = PatternRef(variable, call.name == "FIRST", offset, expr)
        made: Expression = place(ref, expr.type)  # type: ignore[operator]
        return made

    def _aggregate(self, call: s.Call, place: object) -> Expression:
        variable: str | None = None
        args: list[Expression] = []
        for arg in call.args:
            if isinstance(arg, s.Star) and arg.qualifier:
                variable = arg.qualifier[0]
                continue
            found, expr = self._inner(arg)
            variable = found or variable
            args.append(expr)
        kinds = tuple(arg.type for arg in args)
        kind = resolve_aggregate(call.name, kinds, call.at)
        made = AggregateCall(call.name, (), kind, kinds, call.distinct)
        result: Expression = place(PatternRef(variable, call=made, args=tuple(args)), kind)  # type: ignore[operator]
        return result


def bind_match(queries: QueryBinder, node: s.MatchRecognize, plan: l.Plan, scope: Scope) -> l.Plan:
    """The plan of MATCH_RECOGNIZE over a bound input."""
    if node.all_rows:
        message = "ALL ROWS PER MATCH is not supported"
        raise SqlNotSupported(message, at=node.at, hint="write ONE ROW PER MATCH")
    steps = _steps(node.pattern)
    names = [name for name, *_ in steps]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        message = f"the variable {repeated[0]} is in the pattern twice"
        raise SqlNotSupported(message, at=node.pattern.at)
    if steps[-1][3] and (steps[-1][2] is None or steps[-1][2] > steps[-1][1]):
        message = "a pattern cannot end with a greedy quantifier"
        raise SqlNotSupported(message, at=node.pattern.at, hint="put a variable behind it that says where it ends")
    binder = ExpressionBinder(queries.session, scope, clause="in MATCH_RECOGNIZE")
    partition = _columns([binder.bind(each) for each in node.partition], node.at)
    if not node.order:
        message = "MATCH_RECOGNIZE needs ORDER BY a time attribute"
        raise SqlValidationError(message, at=node.at)
    order = binder.bind(node.order[0].expr)
    if not isinstance(order, Ref) or t.attribute_of(order.type) is None or not node.order[0].ascending:
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
    skip = _skip(node, names)
    within = _within(binder, node.within)
    kinds = [plan.schema.types[i] for i in partition] + [bound.type for (bound, _), _ in measures]
    out = l.unique([*(plan.schema.names[i] for i in partition), *(name for _, name in measures)])
    description = MatchDescription(
        tuple(steps),
        tuple(define),
        tuple((bound, tuple(refs)) for (bound, refs), _ in measures),
        partition,
        order.index,
        skip,
        within,
        node.subsets,
        t.attribute_of(order.type) == t.PROCTIME,
    )
    return l.Match(t.row_of(out, kinds, null=False), plan, description)


def _columns(exprs: list[Expression], at: int) -> tuple[int, ...]:
    if not all(isinstance(each, Ref) for each in exprs):
        message = "PARTITION BY of MATCH_RECOGNIZE must name columns"
        raise SqlNotSupported(message, at=at)
    return tuple(each.index for each in exprs if isinstance(each, Ref))


def _steps(node: s.PatternNode) -> list[tuple[str, int, int | None, bool]]:
    parts = node.parts if node.kind == "sequence" else (node,)
    found: list[tuple[str, int, int | None, bool]] = []
    for part in parts:
        match part:
            case s.PatternNode(kind="variable", name=name):
                found.append((name, 1, 1, False))
            case s.PatternNode(
                kind="quantified",
                parts=(s.PatternNode(kind="variable", name=name),),
                least=least,
                most=most,
                greedy=greedy,
            ):
                found.append((name, least, most, greedy))
            case _:
                what = "alternatives" if part.kind == "choice" else "groups of variables"
                message = f"{what} in a pattern are not supported"
                raise SqlNotSupported(message, at=part.at)
    return found


def _skip(node: s.MatchRecognize, names: list[str]) -> Skip:
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


def _within(binder: ExpressionBinder, node: s.Expr | None) -> int | None:
    if node is None:
        return None
    found = binder.bind(node)
    if not isinstance(found, Lit) or not isinstance(found.value, datetime.timedelta):
        message = "WITHIN needs an interval of days or less"
        raise SqlValidationError(message, at=node.at)
    return int(found.value // datetime.timedelta(milliseconds=1))

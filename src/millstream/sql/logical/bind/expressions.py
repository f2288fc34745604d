"""Expressions of the syntax tree become bound ones.

Promises: every argument has the type its function wants, by casts that Flink would insert; whatever is wrong is
refused at its place in the text.
Does not know: queries; aggregates, windows over rows and subqueries are handed to whoever binds the query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.expressions.nodes import Apply, Choose, Convert, Expression, Lit, Sym, UserCall
from millstream.sql.functions import library
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.arithmetic import rounded_decimal_type
from millstream.sql.functions.casts import can_cast
from millstream.sql.functions.over_functions import OVER_FUNCTIONS
from millstream.sql.functions.temporal_arithmetic import timestampadd_type
from millstream.sql.functions.user_functions import AGGREGATE, SCALAR, TABLE_AGGREGATE, UserFunction
from millstream.sql.logical.bind import literals, objects
from millstream.sql.logical.bind.scope import Scope, field_of
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import common_type

GROUPINGS = ("GROUPING", "GROUPING_ID", "GROUP_ID")
WINDOW_PARTS = tuple(
    f"{window}_{part}" for window in ("TUMBLE", "HOP", "SESSION") for part in ("START", "END", "ROWTIME", "PROCTIME")
)


@dataclass
class Session:
    """What binding needs to know beyond the text."""

    catalogs: Catalogs
    zone: str = "UTC"
    options: Callable[[str], str | None] = lambda _key: None
    views: tuple[tuple[str, str, str], ...] = ()


@dataclass
class Hooks:
    """What the binder of a query does for expressions."""

    aggregate: Callable[[s.Call], Expression] | None = None
    over: Callable[[s.Call], Expression] | None = None
    subquery: Callable[[s.Expr], Expression] | None = None
    grouping: Callable[[s.Call], Expression] | None = None
    window_part: Callable[[s.Call], Expression] | None = None
    pattern: Callable[[s.Expr], Expression | None] | None = None


def is_aggregate(call: s.Call, catalogs: Catalogs) -> bool:
    """Whether a call is of an aggregate function."""
    if call.user is None and not call.path and call.name in AGGREGATES:
        return True
    found = call.user or catalogs.function(call.path or (call.name,))
    return isinstance(found, UserFunction) and found.kind in (AGGREGATE, TABLE_AGGREGATE)


class ExpressionBinder:
    """Binds expressions in one scope."""

    def __init__(self, session: Session, scope: Scope, hooks: Hooks | None = None, clause: str = "here") -> None:
        self.session = session
        self.scope = scope
        self.hooks = hooks or Hooks()
        self.clause = clause

    def bind(self, node: s.Expr) -> Expression:
        """An expression."""
        if self.hooks.pattern is not None:
            found = self.hooks.pattern(node)
            if found is not None:
                return found
        match node:
            case s.Name(at=at, parts=parts):
                return self.scope.resolve(parts, at)
            case s.Literal(at=at, value=value):
                return literals.literal(value, at)
            case s.IntervalLiteral():
                return literals.interval(node)
            case s.Symbol(word=word):
                return Sym(t.SymbolType(null=False), word)
            case s.Cast():
                return self._cast(node)
            case s.Case():
                return self._case(node)
            case s.In():
                return self._in(node)
            case s.Exists() | s.Subquery():
                return self._subquery(node)
            case s.ElementAccess(at=at, operand=operand, index=index):
                return self.apply("ITEM", [self.bind(operand), self.bind(index)], at)
            case s.FieldAccess(at=at, operand=operand, name=name):
                return field_of(self.bind(operand), name, at)
            case s.Call():
                return self._call(node)
            case s.Star(at=at):
                message = "* cannot be used here"
                raise SqlValidationError(message, at=at)
            case s.Descriptor(at=at):
                message = "DESCRIPTOR can only be an argument of a window function"
                raise SqlValidationError(message, at=at)
        message = "this cannot be used here"
        raise SqlValidationError(message, at=node.at)

    def condition(self, node: s.Expr) -> Expression:
        """An expression that must be a boolean."""
        found = self.bind(node)
        if isinstance(found.type, t.NullType):
            return Convert(t.BOOLEAN, found)
        if not isinstance(found.type, t.BooleanType):
            message = f"a condition must be BOOLEAN, this is {found.type}"
            raise SqlValidationError(message, at=node.at)
        return found

    def _subquery(self, node: s.Expr) -> Expression:
        if self.hooks.subquery is None:
            message = f"a subquery cannot be used {self.clause}"
            raise SqlNotSupported(message, at=node.at)
        return self.hooks.subquery(node)

    def _cast(self, node: s.Cast) -> Expression:
        operand = self.bind(node.operand)
        if not can_cast(operand.type, node.type):
            message = f"{operand.type} cannot be cast to {node.type}"
            raise SqlValidationError(message, at=node.at)
        kind = node.type.with_null(True if node.safe else operand.type.null or isinstance(operand.type, t.NullType))
        return Convert(kind, operand, node.safe)

    def _case(self, node: s.Case) -> Expression:
        conditions: list[Expression] = []
        for when, _ in node.whens:
            if node.operand is None:
                conditions.append(self.condition(when))
            else:
                conditions.append(self.apply("=", [self.bind(node.operand), self.bind(when)], when.at))
        results = [self.bind(result) for _, result in node.whens]
        otherwise = literals.literal(None, node.at) if node.otherwise is None else self.bind(node.otherwise)
        return self.choose(conditions, [*results, otherwise], node.at)

    def choose(self, conditions: list[Expression], results: list[Expression], at: int) -> Expression:
        """CASE of bound parts; the last result is that of ELSE."""
        common = common_type([each.type for each in results])
        if common is None:
            kinds = ", ".join(str(each.type) for each in results)
            message = f"the results of CASE have no common type: {kinds}"
            raise SqlValidationError(message, at=at)
        made = [coerced(each, common) for each in results]
        parts = [part for pair in zip(conditions, made[:-1], strict=True) for part in pair]
        return Choose(common, (*parts, made[-1]))

    def _in(self, node: s.In) -> Expression:
        if node.query is not None:
            return self._subquery(node)
        operand = self.bind(node.operand)
        items = [self.bind(item) for item in node.items]
        found = self.apply("IN", [operand, *items], node.at)
        return self.apply("NOT", [found], node.at) if node.negated else found

    # --------------------------------------------------------------------------------------------------------- calls

    def _call(self, node: s.Call) -> Expression:
        if node.over is not None or (node.name in OVER_FUNCTIONS and not node.path):
            if self.hooks.over is None or node.over is None:
                hint = f"write {node.name}(...) OVER (PARTITION BY ... ORDER BY ...)" if node.over is None else None
                message = (
                    f"{node.name} with OVER cannot be used {self.clause}" if node.over else f"{node.name} needs OVER"
                )
                raise SqlValidationError(message, at=node.at, hint=hint)
            return self.hooks.over(node)
        if is_aggregate(node, self.session.catalogs):
            if self.hooks.aggregate is None:
                message = f"the aggregate {node.name} cannot be used {self.clause}"
                raise SqlValidationError(message, at=node.at)
            return self.hooks.aggregate(node)
        if node.name in GROUPINGS and self.hooks.grouping is not None:
            return self.hooks.grouping(node)
        if node.name in WINDOW_PARTS and self.hooks.window_part is not None:
            return self.hooks.window_part(node)
        special: Any = _SPECIAL.get(node.name) if not node.path else None
        if special is not None:
            made: Expression = special(self, node)
            return made
        return self._function(node)

    def _function(self, node: s.Call) -> Expression:
        user = node.user or self.session.catalogs.function(node.path or (node.name,))
        args = [self._argument(arg) for arg in node.args]
        if isinstance(user, UserFunction):
            return self._user(node, user, args)
        if node.star:
            message = f"{node.name}(*) means nothing"
            raise SqlValidationError(message, at=node.at)
        return self.apply(node.name, args, node.at)

    def _argument(self, node: s.Expr) -> Expression:
        if isinstance(node, s.NamedArgument):
            message = "named arguments are not supported by this function"
            raise SqlNotSupported(message, at=node.at)
        return self.bind(node)

    def _user(self, node: s.Call, user: UserFunction, args: list[Expression]) -> Expression:
        if user.kind != SCALAR:
            message = f"'{user.name}' is a {user.kind} function"
            hint = "use it in LATERAL TABLE(...)" if "table" in user.kind else None
            raise SqlValidationError(message, at=node.at, hint=hint)
        return UserCall(user.result_type or t.STRING, user.name, user, tuple(user_arguments(user, args, node.at)))

    def apply(self, name: str, args: list[Expression], at: int | None) -> Expression:
        """A built-in function applied to bound arguments."""
        function = library.find(name)
        if function is None:
            message = f"there is no function '{name}'"
            hint = library.similar(name, [*AGGREGATES, *self.session.catalogs.function_names()])
            raise SqlValidationError(message, at=at, hint=hint)
        kinds, result = library.resolve(function, [each.type for each in args], at)
        made = tuple(coerced(arg, kind) for arg, kind in zip(args, kinds, strict=True))
        return Apply(result, function.name, made)

    # -------------------------------------------------------------------------------------- calls with their own rules

    def _sum(self, node: s.Call) -> Expression:
        left, right = (self.bind(arg) for arg in node.args)
        return self.sum(node.name, left, right, node.at)

    def sum(self, sign: str, left: Expression, right: Expression, at: int | None) -> Expression:
        """+ and - of numbers, moments and intervals."""
        if t.is_interval(right.type):
            prefix = "INTERVAL" if t.is_interval(left.type) else "TEMPORAL"
            if t.is_text(left.type):
                left = Convert(t.TimestampType(3, null=left.type.null), left)
            return self.apply(f"{prefix} {sign}", [left, right], at)
        if t.is_interval(left.type) and sign == "+":
            return self.apply("TEMPORAL +", [right, left], at)
        return self.apply(sign, [left, right], at)

    def _product(self, node: s.Call) -> Expression:
        left, right = (self.bind(arg) for arg in node.args)
        return self.product(node.name, left, right, node.at)

    def product(self, sign: str, left: Expression, right: Expression, at: int | None) -> Expression:
        """* and / of numbers and intervals."""
        if t.is_interval(left.type) and sign in ("*", "/"):
            return self.apply(f"INTERVAL {sign}", [left, right], at)
        if t.is_interval(right.type) and sign == "*":
            return self.apply("INTERVAL *", [right, left], at)
        return self.apply(sign, [left, right], at)

    def _between(self, node: s.Call) -> Expression:
        value, low, high = (self.bind(arg) for arg in node.args)
        inside = self._inside(value, low, high, node.at)
        if node.name == "BETWEEN SYMMETRIC":
            return self.apply("OR", [inside, self._inside(value, high, low, node.at)], node.at)
        return inside

    def _inside(self, value: Expression, low: Expression, high: Expression, at: int) -> Expression:
        return self.apply("AND", [self.apply(">=", [value, low], at), self.apply("<=", [value, high], at)], at)

    def _temporal_literal(self, node: s.Call) -> Expression:
        (constant,) = node.args
        assert isinstance(constant, s.Literal)
        return literals.temporal(node.name.removesuffix(" LITERAL"), str(constant.value), constant.at)

    def _if(self, node: s.Call) -> Expression:
        if len(node.args) != 3:
            message = "IF takes a condition and two values"
            raise SqlValidationError(message, at=node.at)
        condition = self.condition(node.args[0])
        return self.choose([condition], [self.bind(node.args[1]), self.bind(node.args[2])], node.at)

    def _round(self, node: s.Call) -> Expression:
        args = [self.bind(arg) for arg in node.args]
        made = self.apply(node.name, args, node.at)
        if isinstance(made.type, t.DecimalType):
            digits = args[1].value if len(args) > 1 and isinstance(args[1], Lit) else (0 if len(args) == 1 else None)
            if digits is not None:
                kind = rounded_decimal_type(made.type, digits).with_null(made.type.null)
                assert isinstance(made, Apply)
                return Apply(kind, made.function, made.args)
        return made

    def _timestampadd(self, node: s.Call) -> Expression:
        made = self._function(node)
        assert isinstance(made, Apply)
        assert isinstance(made.args[0], Sym)
        return Apply(timestampadd_type(made.args[0].word, made.type), made.function, made.args)

    def _to_timestamp_ltz(self, node: s.Call) -> Expression:
        return self._function(node)

    def _array(self, node: s.Call) -> Expression:
        if not node.args:
            message = f"an empty {node.name.split()[0]} has no type"
            raise SqlValidationError(message, at=node.at, hint="CAST(NULL AS ARRAY<INT>) has one")
        return self._function(node)

    def _object(self, node: s.Call) -> Expression:
        make = objects.object_of if node.name == "OBJECT_OF" else objects.object_update
        return make([self._argument(arg) for arg in node.args], node.at)

    def _current_database(self, node: s.Call) -> Expression:
        return literals.literal(self.session.catalogs.current_database, node.at)

    def _document(self, node: s.Expr) -> Expression:
        """JSON that a path leads into: text, or a variant's."""
        found = self.bind(node)
        return self.apply("JSON_STRING", [found], node.at) if isinstance(found.type, t.VariantType) else found

    def _json_value(self, node: s.Call) -> Expression:
        document, path, *rest = node.args
        returning: t.DataType = t.STRING
        handling: dict[str, tuple[str, Expression]] = {}
        nothing = Convert(t.STRING, literals.literal(None, node.at))
        for each in rest:
            if isinstance(each, s.Cast):
                returning = each.type
            elif isinstance(each, s.NamedArgument):
                if isinstance(each.value, s.Symbol):
                    handling[each.name] = (each.value.word, nothing)
                else:
                    handling[each.name] = ("DEFAULT", coerced(self.bind(each.value), t.STRING))
        parts: list[Expression] = [self._document(document), self.bind(path)]
        for event in ("ON EMPTY", "ON ERROR"):
            how, default = handling.get(event, ("NULL", nothing))
            parts += [Sym(t.SymbolType(null=False), how), default]
        made = self.apply("JSON_VALUE", parts, node.at)
        return made if t.is_text(returning) else Convert(returning.nullable(), made, safe=True)

    def _json_query(self, node: s.Call) -> Expression:
        document, path, *rest = node.args
        wrapper = next((each.word for each in rest if isinstance(each, s.Symbol)), "WITHOUT WRAPPER")
        handling = {
            each.name: each.value.word
            for each in rest
            if isinstance(each, s.NamedArgument) and isinstance(each.value, s.Symbol)
        }
        words = [wrapper, handling.get("ON EMPTY", "NULL"), handling.get("ON ERROR", "NULL")]
        symbols: list[Expression] = [Sym(t.SymbolType(null=False), word) for word in words]
        return self.apply("JSON_QUERY", [self._document(document), self.bind(path), *symbols], node.at)

    def _json_made(self, node: s.Call) -> Expression:
        """JSON_OBJECT and JSON_ARRAY: what other constructors made is not quoted."""
        args: list[Expression] = []
        for each in node.args:
            bound = self.bind(each)
            if isinstance(bound, Apply) and bound.function in ("JSON_OBJECT", "JSON_ARRAY"):
                bound = Apply(t.JsonTextType(null=bound.type.null), "JSON", (bound,))
            args.append(bound)
        return self.apply(node.name, args, node.at)

    def _json_exists(self, node: s.Call) -> Expression:
        document, path, *rest = node.args
        how = next(
            (e.value.word for e in rest if isinstance(e, s.NamedArgument) and isinstance(e.value, s.Symbol)), "FALSE"
        )
        symbol = Sym(t.SymbolType(null=False), how)
        return self.apply("JSON_EXISTS", [self._document(document), self.bind(path), symbol], node.at)


_SPECIAL: dict[str, Any] = {
    "+": ExpressionBinder._sum,
    "-": ExpressionBinder._sum,
    "*": ExpressionBinder._product,
    "/": ExpressionBinder._product,
    "BETWEEN": ExpressionBinder._between,
    "BETWEEN SYMMETRIC": ExpressionBinder._between,
    "DATE LITERAL": ExpressionBinder._temporal_literal,
    "TIME LITERAL": ExpressionBinder._temporal_literal,
    "TIMESTAMP LITERAL": ExpressionBinder._temporal_literal,
    "TIMESTAMP_LTZ LITERAL": ExpressionBinder._temporal_literal,
    "IF": ExpressionBinder._if,
    "ROUND": ExpressionBinder._round,
    "TRUNCATE": ExpressionBinder._round,
    "TIMESTAMPADD": ExpressionBinder._timestampadd,
    "ARRAY VALUE": ExpressionBinder._array,
    "MAP VALUE": ExpressionBinder._array,
    "OBJECT_OF": ExpressionBinder._object,
    "OBJECT_UPDATE": ExpressionBinder._object,
    "CURRENT_DATABASE": ExpressionBinder._current_database,
    "JSON_VALUE": ExpressionBinder._json_value,
    "JSON_QUERY": ExpressionBinder._json_query,
    "JSON_EXISTS": ExpressionBinder._json_exists,
    "JSON_OBJECT": ExpressionBinder._json_made,
    "JSON_ARRAY": ExpressionBinder._json_made,
}


def coerced(expression: Expression, kind: t.DataType) -> Expression:
    """The expression in a type it can be brought to; nothing is done when it already has it."""
    have = expression.type
    if isinstance(kind, t.SymbolType) or have.same(kind):
        return expression
    if t.is_text(have) and t.is_text(kind) and (not isinstance(kind, t.CharType) or kind.length <= 0):
        return expression  # both are strings: no value changes
    if isinstance(expression, Lit) and expression.value is None:
        return Lit(kind.nullable(), None)
    return Convert(kind.with_null(have.null), expression)


def user_arguments(user: UserFunction, args: list[Expression], at: int | None) -> list[Expression]:
    """The arguments in the types a user's function declares."""
    if user.input_types is None:
        return args
    if len(user.input_types) != len(args):
        message = f"'{user.name}' takes {len(user.input_types)} arguments, not {len(args)}"
        raise SqlValidationError(message, at=at)
    for arg, kind in zip(args, user.input_types, strict=True):
        if not can_cast(arg.type, kind):
            message = f"'{user.name}' takes {kind}, not {arg.type}"
            raise SqlValidationError(message, at=at)
    return [coerced(arg, kind) for arg, kind in zip(args, user.input_types, strict=True)]

"""Binding of expressions: syntax tree to bound expressions.

Promises: every argument has the type that its function requires, by the casts that Flink inserts; errors have the
position in the statement.
Does not know: queries; aggregates, OVER calls and subqueries are bound by the binder of the query (see `Hooks`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.expressions.nodes import Apply, Choose, Convert, Expression, Lit, Sym, UserCall
from millstream.sql.functions import library
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.arithmetic import round_decimal_type
from millstream.sql.functions.casts import can_cast
from millstream.sql.functions.over_functions import OVER_FUNCTIONS
from millstream.sql.functions.temporal_arithmetic import derive_timestampadd_type
from millstream.sql.functions.temporal_text import check_pattern, to_timestamp_ltz_type
from millstream.sql.functions.user_functions import AGGREGATE, SCALAR, TABLE_AGGREGATE, UserFunction, describe_mismatch
from millstream.sql.logical.bind import literals, objects
from millstream.sql.logical.bind.scope import Scope, bind_field
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import find_leading_type

GROUPINGS = ("GROUPING", "GROUPING_ID", "GROUP_ID")
WINDOW_PARTS = tuple(
    f"{window}_{part}" for window in ("TUMBLE", "HOP", "SESSION") for part in ("START", "END", "ROWTIME", "PROCTIME")
)


@dataclass
class Session:
    """The catalogs and options that binding depends on."""

    catalogs: Catalogs
    zone: str = "UTC"
    options: Callable[[str], str | None] = lambda _key: None
    views: tuple[tuple[str, str, str], ...] = ()


@dataclass
class Hooks:
    """Callbacks to the binder of the query, for expressions that depend on the query."""

    aggregate: Callable[[s.Call], Expression] | None = None
    over: Callable[[s.Call], Expression] | None = None
    subquery: Callable[[s.Expr], Expression] | None = None
    grouping: Callable[[s.Call], Expression] | None = None
    window_property: Callable[[s.Call], Expression] | None = None
    pattern: Callable[[s.Expr], Expression | None] | None = None


def is_aggregate(call: s.Call, catalogs: Catalogs) -> bool:
    """Return whether a call is of an aggregate function."""
    if call.user is None and not call.path and call.name in AGGREGATES:
        return True
    function = call.user or catalogs.function(call.path or (call.name,))
    return isinstance(function, UserFunction) and function.kind in (AGGREGATE, TABLE_AGGREGATE)


class ExpressionBinder:
    """Binds expressions in one scope."""

    def __init__(self, session: Session, scope: Scope, hooks: Hooks | None = None, clause: str = "here") -> None:
        self.session = session
        self.scope = scope
        self.hooks = hooks or Hooks()
        self.clause = clause

    def bind(self, node: s.Expr) -> Expression:
        """Bind an expression."""
        if self.hooks.pattern is not None:
            bound = self.hooks.pattern(node)
            if bound is not None:
                return bound
        match node:
            case s.Name(at=at, parts=parts):
                return self.scope.resolve(parts, at)
            case s.Literal(at=at, value=value):
                return literals.bind_literal(value, at)
            case s.IntervalLiteral():
                return literals.bind_interval(node)
            case s.Symbol(word=word):
                return Sym(t.SymbolType(null=False), word)
            case s.Cast():
                return self._bind_cast(node)
            case s.Case():
                return self._bind_case(node)
            case s.In():
                return self._bind_in(node)
            case s.Exists() | s.Subquery():
                return self._bind_subquery(node)
            case s.ElementAccess(at=at, operand=operand, index=index):
                return self.apply("ITEM", [self.bind(operand), self.bind(index)], at)
            case s.FieldAccess(at=at, operand=operand, name=int(index)):
                return self._access_field_or_element(self.bind(operand), index, at)
            case s.FieldAccess(at=at, operand=operand, name=str(name)):
                return bind_field(self.bind(operand), name, at)
            case s.Call():
                return self._bind_call(node)
            case s.Star(at=at):
                message = "* cannot be used here"
                raise SqlValidationError(message, at=at)
            case s.Descriptor(at=at):
                message = "DESCRIPTOR can only be an argument of a window function"
                raise SqlValidationError(message, at=at)
        message = "expected an expression"
        raise SqlValidationError(message, at=node.at)

    def bind_condition(self, node: s.Expr) -> Expression:
        """Bind an expression that must be BOOLEAN."""
        bound = self.bind(node)
        if isinstance(bound.type, t.NullType):
            return Convert(t.BOOLEAN, bound)
        if not isinstance(bound.type, t.BooleanType):
            message = f"a condition must be BOOLEAN, this is {bound.type}"
            raise SqlValidationError(message, at=node.at)
        return bound

    def _access_field_or_element(self, operand: Expression, index: int, at: int) -> Expression:
        if not isinstance(operand.type, t.RowType):
            return self.apply("ITEM", [operand, Lit(t.INT.with_null(False), index)], at)
        if index >= len(operand.type):
            message = f"the row has {len(operand.type)} fields, there is none with index {index}"
            raise SqlValidationError(message, at=at)
        return bind_field(operand, operand.type.names[index], at)

    def _bind_subquery(self, node: s.Expr) -> Expression:
        if self.hooks.subquery is None:
            message = f"a subquery cannot be used {self.clause}"
            raise SqlNotSupported(message, at=node.at)
        return self.hooks.subquery(node)

    def _bind_cast(self, node: s.Cast) -> Expression:
        operand = self.bind(node.operand)
        if not can_cast(operand.type, node.type):
            message = f"{operand.type} cannot be cast to {node.type}"
            raise SqlValidationError(message, at=node.at)
        data_type = node.type.with_null(
            True if node.safe else operand.type.null or isinstance(operand.type, t.NullType)
        )
        return Convert(data_type, operand, node.safe)

    def _bind_case(self, node: s.Case) -> Expression:
        conditions: list[Expression] = []
        for when, _ in node.whens:
            if node.operand is None:
                conditions.append(self.bind_condition(when))
            else:
                conditions.append(self.apply("=", [self.bind(node.operand), self.bind(when)], when.at))
        results = [self.bind(result) for _, result in node.whens]
        otherwise = literals.bind_literal(None, node.at) if node.otherwise is None else self.bind(node.otherwise)
        return self.choose(conditions, [*results, otherwise], node.at)

    def choose(self, conditions: list[Expression], results: list[Expression], at: int) -> Expression:
        """Return a CASE of bound parts; the last result is that of ELSE."""
        common = find_leading_type([result.type for result in results])
        if common is None:
            type_names = ", ".join(str(result.type) for result in results)
            message = f"the results of CASE have no common type: {type_names}"
            raise SqlValidationError(message, at=at)
        coerced_results = [coerce(result, common) for result in results]
        parts = [part for pair in zip(conditions, coerced_results[:-1], strict=True) for part in pair]
        return Choose(common, (*parts, coerced_results[-1]))

    def _bind_in(self, node: s.In) -> Expression:
        if node.query is not None:
            return self._bind_subquery(node)
        operand = self.bind(node.operand)
        items = [self.bind(item) for item in node.items]
        membership = self.apply("IN", [operand, *items], node.at)
        return self.apply("NOT", [membership], node.at) if node.negated else membership

    # --------------------------------------------------------------------------------------------------------- calls

    def _bind_call(self, node: s.Call) -> Expression:
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
        if node.name in WINDOW_PARTS and self.hooks.window_property is not None:
            return self.hooks.window_property(node)
        special: Any = _SPECIAL.get(node.name) if not node.path else None
        if special is not None:
            bound: Expression = special(self, node)
            return bound
        return self._bind_function(node)

    def _bind_function(self, node: s.Call) -> Expression:
        user = node.user or self.session.catalogs.function(node.path or (node.name,))
        args = [self._bind_argument(arg) for arg in node.args]
        if isinstance(user, UserFunction):
            return self._bind_user_call(node, user, args)
        if node.star:
            message = f"{node.name} does not take *"
            raise SqlValidationError(message, at=node.at)
        return self.apply(node.name, args, node.at)

    def _bind_argument(self, node: s.Expr) -> Expression:
        if isinstance(node, s.NamedArgument):
            message = "named arguments are not supported by this function"
            raise SqlNotSupported(message, at=node.at)
        return self.bind(node)

    def _bind_user_call(self, node: s.Call, user: UserFunction, args: list[Expression]) -> Expression:
        if user.kind != SCALAR:
            message = f"'{user.name}' is a {user.kind} function"
            hint = "use it in LATERAL TABLE(...)" if "table" in user.kind else None
            raise SqlValidationError(message, at=node.at, hint=hint)
        return UserCall(user.result_type or t.STRING, user.name, user, tuple(find_user_arguments(user, args, node.at)))

    def apply(self, name: str, args: list[Expression], at: int | None) -> Expression:
        """Apply a built-in function to bound arguments."""
        function = library.find(name)
        if function is None:
            message = f"there is no function '{name}'"
            hint = library.suggest_name(name, [*AGGREGATES, *self.session.catalogs.function_names()])
            raise SqlValidationError(message, at=at, hint=hint)
        arg_types, result = library.resolve(function, [argument.type for argument in args], at)
        coerced_args = tuple(coerce(arg, data_type) for arg, data_type in zip(args, arg_types, strict=True))
        return Apply(result, function.name, coerced_args)

    # -------------------------------------------------------------------------------------- calls with their own rules

    def _sum(self, node: s.Call) -> Expression:
        left, right = (self.bind(arg) for arg in node.args)
        return self.sum(node.name, left, right, node.at)

    def _bind_plus(self, node: s.Call) -> Expression:
        """Bind + of the Table API, which concatenates if the left operand is a string; SQL has || for it."""
        left, right = (self.bind(arg) for arg in node.args)
        if t.is_text(left.type):
            return self.apply("||", [left, coerce(right, t.STRING)], node.at)
        if t.is_text(right.type):
            message = f"+ cannot add {right.type} to {left.type}"
            raise SqlValidationError(
                message, at=node.at, hint="cast the string to a number, or the left operand to a string"
            )
        return self.sum("+", left, right, node.at)

    def sum(self, operator: str, left: Expression, right: Expression, at: int | None) -> Expression:
        """Add or subtract numbers, timestamps and intervals."""
        if t.is_interval(right.type):
            prefix = "INTERVAL" if t.is_interval(left.type) else "TEMPORAL"
            return self.apply(f"{prefix} {operator}", [left, right], at)
        if t.is_interval(left.type) and operator == "+":
            return self.apply("TEMPORAL +", [right, left], at)
        return self.apply(operator, [left, right], at)

    def _bind_product(self, node: s.Call) -> Expression:
        left, right = (self.bind(arg) for arg in node.args)
        return self.product(node.name, left, right, node.at)

    def product(self, operator: str, left: Expression, right: Expression, at: int | None) -> Expression:
        """Multiply or divide numbers and intervals."""
        if t.is_interval(left.type) and operator in ("*", "/"):
            return self.apply(f"INTERVAL {operator}", [left, right], at)
        if t.is_interval(right.type) and operator == "*":
            return self.apply("INTERVAL *", [right, left], at)
        return self.apply(operator, [left, right], at)

    def _bind_between(self, node: s.Call) -> Expression:
        value, low, high = (self.bind(arg) for arg in node.args)
        inside = self._create_is_within(value, low, high, node.at)
        if node.name == "BETWEEN SYMMETRIC":
            return self.apply("OR", [inside, self._create_is_within(value, high, low, node.at)], node.at)
        return inside

    def _create_is_within(self, value: Expression, low: Expression, high: Expression, at: int) -> Expression:
        return self.apply("AND", [self.apply(">=", [value, low], at), self.apply("<=", [value, high], at)], at)

    def _bind_temporal_literal(self, node: s.Call) -> Expression:
        (constant,) = node.args
        assert isinstance(constant, s.Literal)
        return literals.bind_temporal(node.name.removesuffix(" LITERAL"), str(constant.value), constant.at)

    def _bind_if(self, node: s.Call) -> Expression:
        if len(node.args) != 3:
            message = "IF takes a condition and two values"
            raise SqlValidationError(message, at=node.at)
        condition = self.bind_condition(node.args[0])
        return self.choose([condition], [self.bind(node.args[1]), self.bind(node.args[2])], node.at)

    def _round(self, node: s.Call) -> Expression:
        args = [self.bind(arg) for arg in node.args]
        call = self.apply(node.name, args, node.at)
        if isinstance(call.type, t.DecimalType):
            digits = args[1].value if len(args) > 1 and isinstance(args[1], Lit) else (0 if len(args) == 1 else None)
            if digits is not None:
                data_type = round_decimal_type(call.type, digits).with_null(call.type.null)
                assert isinstance(call, Apply)
                return Apply(data_type, call.function, call.args)
        return call

    def _bind_timestampadd(self, node: s.Call) -> Expression:
        call = self._bind_function(node)
        assert isinstance(call, Apply)
        assert isinstance(call.args[0], Sym)
        return Apply(derive_timestampadd_type(call.args[0].word, call.type), call.function, call.args)

    def _to_timestamp_ltz(self, node: s.Call) -> Expression:
        call = self._bind_function(node)
        if not isinstance(call, Apply) or len(call.args) < 2 or not isinstance(call.args[1], Lit):
            return call
        try:
            data_type = to_timestamp_ltz_type(call.args[1].value)
        except ValueError as problem:
            raise SqlValidationError(str(problem), at=node.at) from None
        return Apply(data_type, call.function, call.args)

    def _read_date_pattern(self, node: s.Call) -> Expression:
        call = self._bind_function(node)
        pattern = call.args[1] if isinstance(call, Apply) and len(call.args) == 2 else None
        if isinstance(call, Apply) and isinstance(pattern, Lit) and isinstance(pattern.value, str):
            try:
                check_pattern(call.function, call.args[0].type, pattern.value)
            except ValueError as problem:
                raise SqlValidationError(str(problem), at=node.at) from None
        return call

    def _bind_array(self, node: s.Call) -> Expression:
        if not node.args:
            message = f"an empty {node.name.split()[0]} has no type"
            raise SqlValidationError(message, at=node.at, hint="CAST(NULL AS ARRAY<INT>) has one")
        return self._bind_function(node)

    def _bind_object(self, node: s.Call) -> Expression:
        make = objects.bind_object_of if node.name == "OBJECT_OF" else objects.bind_object_update
        return make([self._bind_argument(arg) for arg in node.args], node.at)

    def _bind_current_database(self, node: s.Call) -> Expression:
        return literals.bind_literal(self.session.catalogs.current_database, node.at)

    def _bind_document(self, node: s.Expr) -> Expression:
        """Bind a JSON document: text, or the text of a VARIANT."""
        bound = self.bind(node)
        return self.apply("JSON_STRING", [bound], node.at) if isinstance(bound.type, t.VariantType) else bound

    def _bind_json_value(self, node: s.Call) -> Expression:
        document, path, *rest = node.args
        returning: t.DataType = t.STRING
        handling: dict[str, tuple[str, Expression]] = {}
        null_text = Convert(t.STRING, literals.bind_literal(None, node.at))
        for clause in rest:
            if isinstance(clause, s.Cast):
                returning = clause.type
            elif isinstance(clause, s.NamedArgument):
                if isinstance(clause.value, s.Symbol):
                    handling[clause.name] = (clause.value.word, null_text)
                else:
                    handling[clause.name] = ("DEFAULT", coerce(self.bind(clause.value), t.STRING))
        parts: list[Expression] = [self._bind_document(document), self.bind(path)]
        for event in ("ON EMPTY", "ON ERROR"):
            behavior, default = handling.get(event, ("NULL", null_text))
            parts += [Sym(t.SymbolType(null=False), behavior), default]
        value = self.apply("JSON_VALUE", parts, node.at)
        return value if t.is_text(returning) else Convert(returning.nullable(), value, safe=True)

    def _bind_json_query(self, node: s.Call) -> Expression:
        document, path, *rest = node.args
        wrapper = next((clause.word for clause in rest if isinstance(clause, s.Symbol)), "WITHOUT WRAPPER")
        handling = {
            clause.name: clause.value.word
            for clause in rest
            if isinstance(clause, s.NamedArgument) and isinstance(clause.value, s.Symbol)
        }
        words = [wrapper, handling.get("ON EMPTY", "NULL"), handling.get("ON ERROR", "NULL")]
        returning = next((clause.type for clause in rest if isinstance(clause, s.Cast)), t.STRING)
        returns_array = returning.same(t.ArrayType(t.STRING))
        if not returns_array and not t.is_text(returning):
            message = f"JSON_QUERY cannot return {returning.text()}"
            raise SqlValidationError(message, at=node.at, hint="write RETURNING STRING or RETURNING ARRAY<STRING>")
        if returns_array and "EMPTY OBJECT" in words:
            message = "JSON_QUERY cannot return an empty object as ARRAY<STRING>"
            raise SqlValidationError(message, at=node.at, hint="write EMPTY ARRAY, NULL or ERROR")
        symbols: list[Expression] = [Sym(t.SymbolType(null=False), word) for word in words]
        function = "$JSON_QUERY_ARRAY" if returns_array else "JSON_QUERY"
        return self.apply(function, [self._bind_document(document), self.bind(path), *symbols], node.at)

    def _bind_json_constructor(self, node: s.Call) -> Expression:
        """Bind JSON_OBJECT and JSON_ARRAY; JSON of nested constructors is not quoted."""
        args: list[Expression] = []
        for arg in node.args:
            bound = self.bind(arg)
            if isinstance(bound, Apply) and bound.function in ("JSON_OBJECT", "JSON_ARRAY"):
                bound = Apply(t.JsonTextType(null=bound.type.null), "JSON", (bound,))
            args.append(bound)
        return self.apply(node.name, args, node.at)

    def _bind_json_exists(self, node: s.Call) -> Expression:
        document, path, *rest = node.args
        how = next(
            (e.value.word for e in rest if isinstance(e, s.NamedArgument) and isinstance(e.value, s.Symbol)), "FALSE"
        )
        symbol = Sym(t.SymbolType(null=False), how)
        return self.apply("JSON_EXISTS", [self._bind_document(document), self.bind(path), symbol], node.at)


_SPECIAL: dict[str, Any] = {
    "+": ExpressionBinder._sum,
    "$PLUS": ExpressionBinder._bind_plus,
    "-": ExpressionBinder._sum,
    "*": ExpressionBinder._bind_product,
    "/": ExpressionBinder._bind_product,
    "BETWEEN": ExpressionBinder._bind_between,
    "BETWEEN SYMMETRIC": ExpressionBinder._bind_between,
    "DATE LITERAL": ExpressionBinder._bind_temporal_literal,
    "TIME LITERAL": ExpressionBinder._bind_temporal_literal,
    "TIMESTAMP LITERAL": ExpressionBinder._bind_temporal_literal,
    "TIMESTAMP_LTZ LITERAL": ExpressionBinder._bind_temporal_literal,
    "IF": ExpressionBinder._bind_if,
    "ROUND": ExpressionBinder._round,
    "TO_TIMESTAMP_LTZ": ExpressionBinder._to_timestamp_ltz,
    "DATE_FORMAT": ExpressionBinder._read_date_pattern,
    "FROM_UNIXTIME": ExpressionBinder._read_date_pattern,
    "UNIX_TIMESTAMP": ExpressionBinder._read_date_pattern,
    "TO_DATE": ExpressionBinder._read_date_pattern,
    "TRUNCATE": ExpressionBinder._round,
    "TIMESTAMPADD": ExpressionBinder._bind_timestampadd,
    "ARRAY VALUE": ExpressionBinder._bind_array,
    "MAP VALUE": ExpressionBinder._bind_array,
    "OBJECT_OF": ExpressionBinder._bind_object,
    "OBJECT_UPDATE": ExpressionBinder._bind_object,
    "CURRENT_DATABASE": ExpressionBinder._bind_current_database,
    "JSON_VALUE": ExpressionBinder._bind_json_value,
    "JSON_QUERY": ExpressionBinder._bind_json_query,
    "JSON_EXISTS": ExpressionBinder._bind_json_exists,
    "JSON_OBJECT": ExpressionBinder._bind_json_constructor,
    "JSON_ARRAY": ExpressionBinder._bind_json_constructor,
}


def coerce(expression: Expression, data_type: t.DataType) -> Expression:
    """Cast an expression to a type, unless it has the type already."""
    source_type = expression.type
    if isinstance(data_type, t.SymbolType) or source_type.same(data_type):
        return expression
    if (
        t.is_text(source_type)
        and t.is_text(data_type)
        and (not isinstance(data_type, t.CharType) or data_type.length <= 0)
    ):
        return expression  # both are strings: no value changes
    if isinstance(expression, Lit) and expression.value is None:
        return Lit(data_type.nullable(), None)
    return Convert(data_type.with_null(source_type.null), expression)


def find_user_options(user: UserFunction, args: Sequence[Expression], zone: str) -> tuple[object, ...]:
    """Return the options of a call of an aggregate function: the time zone if a pandas function needs it."""
    data_types = [user.result_type, *(arg.type for arg in args)]
    needs_zone = user.pandas and any("TIMESTAMP_LTZ" in str(data_type) for data_type in data_types)
    return (zone,) if needs_zone else ()


def find_user_arguments(user: UserFunction, args: list[Expression], at: int | None) -> list[Expression]:
    """Coerce arguments to the types that a user-defined function declares, and check their number."""
    if user.input_types is None:
        expected = describe_mismatch(user, len(args))
        if expected is not None:
            message = f"'{user.name}' takes {expected}, but is called with {len(args)}"
            raise SqlValidationError(message, at=at)
        return args
    if len(user.input_types) != len(args):
        message = f"'{user.name}' takes {len(user.input_types)} arguments, not {len(args)}"
        raise SqlValidationError(message, at=at)
    for arg, data_type in zip(args, user.input_types, strict=True):
        if not can_cast(arg.type, data_type):
            message = f"'{user.name}' takes {data_type}, not {arg.type}"
            raise SqlValidationError(message, at=at)
    return [coerce(arg, data_type) for arg, data_type in zip(args, user.input_types, strict=True)]

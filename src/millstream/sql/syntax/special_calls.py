"""Grammar of functions with a syntax of their own: EXTRACT(unit FROM ...), TRIM(BOTH ... FROM ...), JSON_VALUE(...).

Promises: each of them becomes a call with plain arguments; keywords among the arguments become symbols.
Does not know: other calls, and how an expression is parsed."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.cursor import Cursor
from millstream.sql.syntax.type_names import TypeParser

TIME_UNITS = frozenset(
    (
        *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
        *("MILLISECOND", "MICROSECOND", "NANOSECOND"),
        *("DOW", "DOY", "ISODOW", "ISOYEAR", "EPOCH", "DECADE", "CENTURY", "MILLENNIUM"),
    )
)
TSI_UNITS = {f"SQLTSI_{unit}": unit for unit in TIME_UNITS}  # the names of units in the JDBC standard
_PLURAL_UNITS = {f"{unit}S": unit for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "QUARTER")}
_JDBC_AND_PLURAL_UNITS = TSI_UNITS | _PLURAL_UNITS


class SpecialCallParser:
    """Parses the arguments of functions that have a syntax of their own."""

    __slots__ = ("_cursor", "_parse_expression", "_parse_operand", "_types")

    def __init__(
        self,
        cursor: Cursor,
        types: TypeParser,
        parse_expression: Callable[[], s.Expr],
        parse_operand: Callable[[], s.Expr],
    ) -> None:
        self._cursor = cursor
        self._types = types
        self._parse_expression = parse_expression
        self._parse_operand = parse_operand

    def parse_arguments(self, name: str, at: int) -> s.Call | None:
        """Parse the arguments of a function; return None if the function has no syntax of its own."""
        parse = _SPECIAL_CALLS.get(name)
        return None if parse is None else parse(self, at)

    def parse_unit(self) -> str:
        """Parse a unit of time, in singular or plural."""
        return self._parse_unit_of(_PLURAL_UNITS)

    def _parse_unit_of(self, synonyms: dict[str, str]) -> str:
        token = self._cursor.token
        unit = synonyms.get(token.key, token.key)
        if unit not in TIME_UNITS:
            self._cursor.reject("a unit of time, such as MINUTE")
        self._cursor.advance()
        return unit

    # -------------------------------------------------------------------------------------------------- units of time

    def _parse_extract(self, at: int) -> s.Call:
        unit = s.Symbol(self._cursor.at, self.parse_unit())
        self._cursor.expect("FROM")
        return s.Call(at, "EXTRACT", (unit, self._parse_expression()))

    def _parse_floor(self, at: int) -> s.Call:
        return self._parse_rounding(at, "FLOOR")

    def _parse_ceil(self, at: int) -> s.Call:
        return self._parse_rounding(at, "CEIL")

    def _parse_rounding(self, at: int, name: str) -> s.Call:
        """FLOOR(number) or FLOOR(time TO unit)."""
        args = self._cursor.parse_list(self._parse_expression)
        if self._cursor.accept("TO"):
            args = (*args, s.Symbol(self._cursor.at, self.parse_unit()))
        return s.Call(at, name, args)

    def _parse_timestampadd(self, at: int) -> s.Call:
        return self._parse_call_with_unit(at, "TIMESTAMPADD")

    def _parse_timestampdiff(self, at: int) -> s.Call:
        return self._parse_call_with_unit(at, "TIMESTAMPDIFF")

    def _parse_call_with_unit(self, at: int, name: str) -> s.Call:
        unit = self._parse_unit_of(_JDBC_AND_PLURAL_UNITS)
        symbol = s.Symbol(self._cursor.at, unit)
        self._cursor.expect(",")
        return s.Call(at, name, (symbol, *self._cursor.parse_list(self._parse_expression)))

    # -------------------------------------------------------------------------------------------------------- strings

    def _parse_trim(self, at: int) -> s.Call:
        cursor = self._cursor
        side = s.Symbol(at, cursor.accept_any("BOTH", "LEADING", "TRAILING") or "BOTH")
        characters: s.Expr = s.Literal(at, " ")
        text = None if cursor.is_next("FROM") else self._parse_expression()
        if cursor.accept("FROM"):
            characters, text = text or characters, self._parse_expression()
        assert text is not None
        return s.Call(at, "TRIM", (side, characters, text))

    def _parse_substring(self, at: int) -> s.Call:
        cursor = self._cursor
        args = [self._parse_expression()]
        if cursor.accept("FROM"):
            args.append(self._parse_expression())
            if cursor.accept("FOR"):
                args.append(self._parse_expression())
        else:
            args += self._parse_further_arguments()
        return s.Call(at, "SUBSTRING", tuple(args))

    def _parse_position(self, at: int) -> s.Call:
        needle = self._parse_operand()
        self._cursor.expect("IN")
        return s.Call(at, "POSITION", (needle, self._parse_operand()))

    def _parse_overlay(self, at: int) -> s.Call:
        cursor = self._cursor
        args = [self._parse_expression()]
        if cursor.accept("PLACING"):
            args.append(self._parse_expression())
            cursor.expect("FROM")
            args.append(self._parse_expression())
            if cursor.accept("FOR"):
                args.append(self._parse_expression())
        else:
            args += self._parse_further_arguments()
        return s.Call(at, "OVERLAY", tuple(args))

    def _parse_further_arguments(self) -> list[s.Expr]:
        args: list[s.Expr] = []
        while self._cursor.accept(","):
            args.append(self._parse_expression())
        return args

    # ----------------------------------------------------------------------------------------------------------- JSON

    def _parse_json_value(self, at: int) -> s.Call:
        return self._parse_json_path_call(at, "JSON_VALUE")

    def _parse_json_query(self, at: int) -> s.Call:
        return self._parse_json_path_call(at, "JSON_QUERY")

    def _parse_json_exists(self, at: int) -> s.Call:
        return self._parse_json_path_call(at, "JSON_EXISTS")

    def _parse_json_path_call(self, at: int, name: str) -> s.Call:
        """JSON_VALUE(text, path RETURNING type ... WRAPPER ... ON EMPTY ... ON ERROR)."""
        cursor = self._cursor
        args = [self._parse_expression()]
        cursor.expect(",")
        args.append(self._parse_expression())
        if cursor.accept("RETURNING"):
            args.append(s.Cast(cursor.at, s.Literal(cursor.at, None), self._types.parse_type()))
        for wrapper in (("WITHOUT",), ("WITH", "CONDITIONAL"), ("WITH", "UNCONDITIONAL"), ("WITH",)):
            if cursor.accept(*wrapper):
                cursor.accept("ARRAY")
                cursor.expect("WRAPPER")
                args.append(s.Symbol(at, " ".join((*wrapper, "WRAPPER"))))
                break
        while cursor.is_any("NULL", "ERROR", "DEFAULT", "EMPTY", "TRUE", "FALSE", "UNKNOWN"):
            behavior = cursor.advance().key
            if behavior == "EMPTY":
                behavior = f"EMPTY {cursor.expect_any('ARRAY', 'OBJECT')}"
            value = self._parse_expression() if behavior == "DEFAULT" else s.Symbol(at, behavior)
            cursor.expect("ON")
            event = cursor.expect_any("EMPTY", "ERROR")
            args.append(s.NamedArgument(at, f"ON {event}", value))
        return s.Call(at, name, tuple(args))

    def _parse_json_object(self, at: int) -> s.Call:
        pairs: tuple[tuple[s.Expr, s.Expr], ...] = ()
        if not self._is_at_end_of_items():
            pairs = self._cursor.parse_list(self._parse_json_pair)
        on_null = self._parse_on_null("NULL")
        return s.Call(at, "JSON_OBJECT", (on_null, *(part for pair in pairs for part in pair)))

    def _parse_json_objectagg(self, at: int) -> s.Call:
        pair = self._parse_json_pair()
        return s.Call(at, "JSON_OBJECTAGG", (*pair, self._parse_on_null("NULL")))

    def _parse_json_array(self, at: int) -> s.Call:
        items: tuple[s.Expr, ...] = ()
        if not self._is_at_end_of_items():
            items = self._cursor.parse_list(self._parse_expression)
        return s.Call(at, "JSON_ARRAY", (self._parse_on_null("ABSENT"), *items))

    def _parse_json_arrayagg(self, at: int) -> s.Call:
        item = self._parse_expression()
        return s.Call(at, "JSON_ARRAYAGG", (item, self._parse_on_null("ABSENT")))

    def _parse_json_pair(self) -> tuple[s.Expr, s.Expr]:
        """KEY k VALUE v, k VALUE v, k : v or k, v."""
        cursor = self._cursor
        if cursor.is_next("KEY") and cursor.peek().key not in (",", ")", ":"):
            cursor.advance()
        key = self._parse_expression()
        if cursor.accept_any("VALUE", ":") is None:
            cursor.expect(",")
        return key, self._parse_expression()

    def _is_at_end_of_items(self) -> bool:
        cursor = self._cursor
        return cursor.is_next(")") or cursor.is_next("NULL", "ON") or cursor.is_next("ABSENT", "ON")

    def _parse_on_null(self, default: str) -> s.Symbol:
        for behavior in ("NULL", "ABSENT"):
            if self._cursor.accept(behavior, "ON", "NULL"):
                return s.Symbol(self._cursor.at, behavior)
        return s.Symbol(self._cursor.at, default)

    # ----------------------------------------------------------------------------------------------------- aggregates

    def _parse_percentile_cont(self, at: int) -> s.Call:
        return s.Call(at, "PERCENTILE_CONT", self._cursor.parse_list(self._parse_expression))


_SPECIAL_CALLS: dict[str, Callable[[SpecialCallParser, int], s.Call]] = {
    "EXTRACT": SpecialCallParser._parse_extract,
    "FLOOR": SpecialCallParser._parse_floor,
    "CEIL": SpecialCallParser._parse_ceil,
    "CEILING": SpecialCallParser._parse_ceil,
    "TIMESTAMPADD": SpecialCallParser._parse_timestampadd,
    "TIMESTAMPDIFF": SpecialCallParser._parse_timestampdiff,
    "TRIM": SpecialCallParser._parse_trim,
    "SUBSTRING": SpecialCallParser._parse_substring,
    "POSITION": SpecialCallParser._parse_position,
    "OVERLAY": SpecialCallParser._parse_overlay,
    "JSON_VALUE": SpecialCallParser._parse_json_value,
    "JSON_QUERY": SpecialCallParser._parse_json_query,
    "JSON_EXISTS": SpecialCallParser._parse_json_exists,
    "JSON_OBJECT": SpecialCallParser._parse_json_object,
    "JSON_OBJECTAGG": SpecialCallParser._parse_json_objectagg,
    "JSON_ARRAY": SpecialCallParser._parse_json_array,
    "JSON_ARRAYAGG": SpecialCallParser._parse_json_arrayagg,
    "PERCENTILE_CONT": SpecialCallParser._parse_percentile_cont,
}

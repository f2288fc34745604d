"""The grammar of functions that have one of their own: EXTRACT(unit FROM ...), TRIM(BOTH ... FROM ...), JSON_VALUE.

Promises: each becomes a call with plain arguments; words among them become symbols.
Does not know: expressions beyond that there are some."""

from __future__ import annotations

from abc import ABC, abstractmethod

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.type_names import TypeGrammar

UNITS = (
    *(
        "YEAR",
        "QUARTER",
        "MONTH",
        "WEEK",
        "DAY",
        "HOUR",
        "MINUTE",
        "SECOND",
        "MILLISECOND",
        "MICROSECOND",
        "NANOSECOND",
    ),
    *("DOW", "DOY", "ISODOW", "ISOYEAR", "EPOCH", "DECADE", "CENTURY", "MILLENNIUM"),
)
PLURALS = {f"{unit}S": unit for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "QUARTER")}
TSI = {f"SQLTSI_{unit}": unit for unit in UNITS}


class SpecialCallGrammar(TypeGrammar, ABC):
    """What stands between the parentheses of such functions: a method for each, by its name."""

    @abstractmethod
    def expression(self) -> s.Expr:
        """Any expression; the grammar of expressions says how."""

    @abstractmethod
    def _sum(self) -> s.Expr:
        """An expression that binds closer than IN."""

    def _unit(self) -> str:
        token = self.token
        unit = PLURALS.get(token.key, token.key)
        if token.kind != "word" or unit not in UNITS:
            self.fail("a unit of time, such as MINUTE")
        self.advance()
        return unit

    def _call_extract(self, at: int) -> s.Call:
        unit = s.Symbol(self.at, self._unit())
        self.expect("FROM")
        return s.Call(at, "EXTRACT", (unit, self.expression()))

    def _to_unit(self, at: int, name: str) -> s.Call:
        args: list[s.Expr] = list(self.many(self.expression))
        if self.take("TO"):
            args.append(s.Symbol(self.at, self._unit()))
        return s.Call(at, name, tuple(args))

    def _call_floor(self, at: int) -> s.Call:
        return self._to_unit(at, "FLOOR")

    def _call_ceil(self, at: int) -> s.Call:
        return self._to_unit(at, "CEIL")

    _call_ceiling = _call_ceil

    def _call_trim(self, at: int) -> s.Call:
        side = self.take_any("BOTH", "LEADING", "TRAILING")
        where = s.Symbol(at, side or "BOTH")
        first = None if self.is_word("FROM") else self.expression()
        if self.take("FROM"):
            text = self.expression()
            return s.Call(at, "TRIM", (where, first or s.Constant(at, " "), text))
        assert first is not None
        return s.Call(at, "TRIM", (where, s.Constant(at, " "), first))

    def _call_substring(self, at: int) -> s.Call:
        args: list[s.Expr] = [self.expression()]
        if self.take("FROM"):
            args.append(self.expression())
            if self.take("FOR"):
                args.append(self.expression())
        else:
            while self.take_op(","):
                args.append(self.expression())
        return s.Call(at, "SUBSTRING", tuple(args))

    def _call_position(self, at: int) -> s.Call:
        needle = self._sum()
        self.expect("IN")
        return s.Call(at, "POSITION", (needle, self._sum()))

    def _call_overlay(self, at: int) -> s.Call:
        args: list[s.Expr] = [self.expression()]
        if self.take("PLACING"):
            args.append(self.expression())
            self.expect("FROM")
            args.append(self.expression())
            if self.take("FOR"):
                args.append(self.expression())
        else:
            while self.take_op(","):
                args.append(self.expression())
        return s.Call(at, "OVERLAY", tuple(args))

    def _unit_call(self, at: int, name: str) -> s.Call:
        key = self.token.key
        if self.token.kind != "word" or TSI.get(key, PLURALS.get(key, key)) not in UNITS:
            self.fail("a unit of time, such as MINUTE")
        self.advance()
        unit = s.Symbol(self.at, TSI.get(key, PLURALS.get(key, key)))
        self.expect_op(",")
        return s.Call(at, name, (unit, *self.many(self.expression)))

    def _call_timestampadd(self, at: int) -> s.Call:
        return self._unit_call(at, "TIMESTAMPADD")

    def _call_timestampdiff(self, at: int) -> s.Call:
        return self._unit_call(at, "TIMESTAMPDIFF")

    def _json_path_call(self, at: int, name: str) -> s.Call:
        args: list[s.Expr] = [self.expression()]
        self.expect_op(",")
        args.append(self.expression())
        if self.take("RETURNING"):
            args.append(s.Cast(self.at, s.Constant(self.at, None), self.data_type()))
        for wrapper in (("WITHOUT",), ("WITH", "CONDITIONAL"), ("WITH", "UNCONDITIONAL"), ("WITH",)):
            if self.take(*wrapper):
                self.take("ARRAY")
                self.expect("WRAPPER")
                args.append(s.Symbol(at, " ".join((*wrapper, "WRAPPER"))))
                break
        while self.is_any("NULL", "ERROR", "DEFAULT", "EMPTY", "TRUE", "FALSE", "UNKNOWN"):
            how = self.advance().key
            if how == "EMPTY":
                how = f"EMPTY {self.take_any('ARRAY', 'OBJECT') or self.fail('ARRAY or OBJECT')}"
            value = self.expression() if how == "DEFAULT" else None
            self.expect("ON")
            event = self.take_any("EMPTY", "ERROR") or self.fail("EMPTY or ERROR")
            args.append(s.NamedArgument(at, f"ON {event}", value or s.Symbol(at, how)))
        return s.Call(at, name, tuple(args))

    def _call_json_value(self, at: int) -> s.Call:
        return self._json_path_call(at, "JSON_VALUE")

    def _call_json_query(self, at: int) -> s.Call:
        return self._json_path_call(at, "JSON_QUERY")

    def _call_json_exists(self, at: int) -> s.Call:
        return self._json_path_call(at, "JSON_EXISTS")

    def _on_null(self, default: str) -> s.Symbol:
        for word in ("NULL", "ABSENT"):
            if self.take(word, "ON", "NULL"):
                return s.Symbol(self.at, word)
        return s.Symbol(self.at, default)

    def _json_pair(self) -> tuple[s.Expr, s.Expr]:
        keyed = self.is_word("KEY") and self.ahead().text not in (",", ")", ":")
        if keyed:
            self.advance()
        key = self.expression()
        if not self.take("VALUE") and self.take_op(":") is None:
            self.expect_op(",")
        return key, self.expression()

    def _call_json_object(self, at: int) -> s.Call:
        pairs: tuple[tuple[s.Expr, s.Expr], ...] = ()
        if not self.is_op(")") and not self.is_word("NULL", "ON") and not self.is_word("ABSENT", "ON"):
            pairs = self.many(self._json_pair)
        how = self._on_null("NULL")
        return s.Call(at, "JSON_OBJECT", (how, *(each for pair in pairs for each in pair)))

    def _call_json_objectagg(self, at: int) -> s.Call:
        pair = self._json_pair()
        return s.Call(at, "JSON_OBJECTAGG", (*pair, self._on_null("NULL")))

    def _call_json_array(self, at: int) -> s.Call:
        items: tuple[s.Expr, ...] = ()
        if not self.is_op(")") and not self.is_word("NULL", "ON") and not self.is_word("ABSENT", "ON"):
            items = self.many(self.expression)
        return s.Call(at, "JSON_ARRAY", (self._on_null("ABSENT"), *items))

    def _call_json_arrayagg(self, at: int) -> s.Call:
        item = self.expression()
        return s.Call(at, "JSON_ARRAYAGG", (item, self._on_null("ABSENT")))

    def _call_percentile_cont(self, at: int) -> s.Call:
        return s.Call(at, "PERCENTILE_CONT", self.many(self.expression))

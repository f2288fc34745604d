"""The grammar of expressions, with Flink's precedence.

Promises: OR, AND, NOT, comparisons, sums, products, signs, accesses, in this order of binding; operators become calls
of functions with their sign as name.
Does not know: what names mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from decimal import Decimal

from millstream.sql import syntax as s
from millstream.sql import types as t
from millstream.sql.parser.base import RESERVED
from millstream.sql.parser.type_names import TypeGrammar

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
_PLURALS = {f"{unit}S": unit for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "QUARTER")}
_TSI = {f"SQL_TSI_{unit}": unit for unit in UNITS}
_NO_PARENTHESES = (
    *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_ROW_TIMESTAMP"),
    "CURRENT_DATABASE",
)
_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")


class ExpressionGrammar(TypeGrammar, ABC):
    """Expressions."""

    @abstractmethod
    def query(self) -> s.Query:
        """A query; the grammar of queries says how."""

    def is_query(self) -> bool:
        """Whether a query begins here."""
        depth = 0
        while self.ahead(depth).kind == "op" and self.ahead(depth).text == "(":
            depth += 1
        token = self.ahead(depth)
        return token.kind == "word" and token.key in ("SELECT", "WITH", "VALUES")

    def expression(self) -> s.Expr:
        """Any expression."""
        return self.deeper(self._or)

    def _or(self) -> s.Expr:
        return self._chain("OR", self._and)

    def _and(self) -> s.Expr:
        return self._chain("AND", self._not)

    def _chain(self, word: str, parse: Callable[[], s.Expr]) -> s.Expr:
        """Any number of operands, as a tree that is no deeper than it must be."""
        operands, places = [parse()], []
        while self.is_word(word):
            places.append(self.advance().start)
            operands.append(parse())

        def combined(first: int, last: int) -> s.Expr:
            if first == last:
                return operands[first]
            middle = (first + last) // 2
            return s.Call(places[middle], word, (combined(first, middle), combined(middle + 1, last)))

        return combined(0, len(operands) - 1)

    def _not(self) -> s.Expr:
        if self.is_word("NOT") and self.ahead().key != "EXISTS":
            at = self.advance().start
            return s.Call(at, "NOT", (self.deeper(self._not),))
        return self._predicate()

    def _predicate(self) -> s.Expr:
        left = self._sum()
        while True:
            at = self.at
            sign = self.take_op(*_COMPARISONS)
            if sign is not None:
                left = self._compared(at, "<>" if sign == "!=" else sign, left)
            elif self.is_word("IS"):
                left = self._is(left)
            elif self.is_any("BETWEEN", "IN", "LIKE", "SIMILAR", "OVERLAPS") or (
                self.is_word("NOT") and self.ahead().key in ("BETWEEN", "IN", "LIKE", "SIMILAR")
            ):
                left = self._range(left)
            else:
                return left

    def _compared(self, at: int, sign: str, left: s.Expr) -> s.Expr:
        if self.is_any("ANY", "SOME", "ALL") and self.ahead().text == "(":
            every = self.advance().key == "ALL"
            self.expect_op("(")
            query = self.query()
            self.expect_op(")")
            if not every and sign == "=":
                return s.In(at, left, (), query, negated=False)
            if every and sign == "<>":
                return s.In(at, left, (), query, negated=True)
            self.fail(None, hint="only = ANY and <> ALL can be used with a query", at=at)
        return s.Call(at, sign, (left, self._sum()))

    def _is(self, left: s.Expr) -> s.Expr:
        at = self.advance().start
        negated = self.take("NOT")
        if self.take("DISTINCT", "FROM"):
            name = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
            return s.Call(at, name, (left, self._sum()))
        word = self.take_any("NULL", "TRUE", "FALSE", "UNKNOWN", "JSON")
        if word is None:
            self.fail("NULL, TRUE, FALSE, UNKNOWN, JSON or DISTINCT FROM")
        args: tuple[s.Expr, ...] = (left,)
        if word == "JSON":
            kind = self.take_any("VALUE", "OBJECT", "ARRAY", "SCALAR") or "VALUE"
            args = (left, s.Symbol(at, kind))
        return s.Call(at, f"IS NOT {word}" if negated else f"IS {word}", args)

    def _range(self, left: s.Expr) -> s.Expr:
        at = self.at
        negated = self.take("NOT")
        word = self.advance().key
        found: s.Expr
        if word == "IN":
            return self._in(at, left, negated)
        if word == "BETWEEN":
            symmetric = self.take_any("SYMMETRIC", "ASYMMETRIC") == "SYMMETRIC"
            low = self._sum()
            self.expect("AND")
            found = s.Call(at, "BETWEEN SYMMETRIC" if symmetric else "BETWEEN", (left, low, self._sum()))
        elif word == "OVERLAPS":
            found = s.Call(at, "OVERLAPS", (left, self._sum()))
        else:
            if word == "SIMILAR":
                self.expect("TO")
            args = [left, self._sum()]
            if self.take("ESCAPE"):
                args.append(self._sum())
            found = s.Call(at, "SIMILAR TO" if word == "SIMILAR" else "LIKE", tuple(args))
        return s.Call(at, "NOT", (found,)) if negated else found

    def _in(self, at: int, left: s.Expr, negated: bool) -> s.Expr:
        self.expect_op("(")
        if self.is_query():
            query = self.query()
            self.expect_op(")")
            return s.In(at, left, (), query, negated)
        items = self.many(self.expression)
        self.expect_op(")")
        return s.In(at, left, items, None, negated)

    def _sum(self) -> s.Expr:
        left = self._product()
        while self.is_op("+", "-"):
            token = self.advance()
            left = s.Call(token.start, token.text, (left, self._product()))
        return left

    def _product(self) -> s.Expr:
        left = self._signed()
        while self.is_op("*", "/", "%", "||"):
            token = self.advance()
            left = s.Call(token.start, token.text, (left, self._signed()))
        return left

    def _signed(self) -> s.Expr:
        if self.is_op("-", "+"):
            token = self.advance()
            operand = self.deeper(self._signed)
            if token.text == "+":
                return operand
            if isinstance(operand, s.Constant) and isinstance(operand.value, int | float | Decimal):
                return s.Constant(token.start, -operand.value, operand.type)
            return s.Call(token.start, "NEGATE", (operand,))
        return self._postfix()

    def _postfix(self) -> s.Expr:
        left = self._primary()
        while True:
            at = self.at
            if self.is_op("["):
                self.advance()
                index = self.expression()
                self.expect_op("]")
                left = s.Access(at, left, index)
            elif self.is_op(".") and not isinstance(left, s.Name | s.Star):
                self.advance()
                left = s.FieldOf(at, left, self.name(any_word=True))
            else:
                return left

    def _primary(self) -> s.Expr:
        token = self.token
        match token.kind:
            case "number":
                self.advance()
                return s.Constant(token.start, _number(token.text))
            case "string":
                self.advance()
                text = token.text
                while self.token.kind == "string":  # adjacent literals are one
                    text += self.advance().text
                return s.Constant(token.start, text)
            case "bytes":
                self.advance()
                return s.Constant(token.start, bytes.fromhex(token.text))
            case "op" if token.text == "(":
                return self._parenthesis()
            case "op" if token.text == "*":
                self.advance()
                return s.Star(token.start)
            case "word":
                return self._word()
            case "quoted":
                return self._named()
        self.fail("an expression")

    def _parenthesis(self) -> s.Expr:
        at = self.at
        if self.is_query():
            self.advance()
            query = self.query()
            self.expect_op(")")
            return s.Subquery(at, query)
        self.advance()
        items = self.many(self.expression)
        self.expect_op(")")
        return items[0] if len(items) == 1 else s.Call(at, "ROW", items)

    def _word(self) -> s.Expr:
        token = self.token
        word, following = token.key, self.ahead()
        opens = following.kind == "op" and following.text == "("
        literal = following.kind == "string"
        match word:
            case "NULL":
                self.advance()
                return s.Constant(token.start, None)
            case "TRUE" | "FALSE":
                self.advance()
                return s.Constant(token.start, word == "TRUE")
            case "UNKNOWN" if not opens:
                self.advance()
                return s.Cast(token.start, s.Constant(token.start, None), t.BOOLEAN)
            case "CASE":
                return self._case()
            case "EXISTS":
                return self._exists()
            case "NOT":
                self.advance()
                return s.Call(token.start, "NOT", (self.deeper(self._not),))
            case "CAST" | "TRY_CAST" if opens:
                return self._cast()
            case "INTERVAL" if not opens:
                return self._interval()
            case "DATE" | "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ" if literal:
                self.advance()
                return s.Call(token.start, f"{word} LITERAL", (s.Constant(self.at, self.string()),))
            case "ARRAY" | "MAP" | "MULTISET" if following.text == "[" and following.kind == "op":
                return self._collection(word)
            case "ROW" if opens:
                self.advance()
                self.expect_op("(")
                items = () if self.is_op(")") else self.many(self.expression)
                self.expect_op(")")
                return s.Call(token.start, "ROW", items)
            case "DESCRIPTOR" if opens:
                self.advance()
                return s.Descriptor(token.start, self.wrapped(self.name))
            case _ if word in _NO_PARENTHESES and not opens:
                self.advance()
                return s.Call(token.start, word, ())
        if word in RESERVED and not (opens and word in ("LEFT", "RIGHT", "IN", "SET")):
            self.fail("an expression")
        return self._named()

    def _case(self) -> s.Expr:
        at = self.advance().start
        operand = None if self.is_word("WHEN") else self.expression()
        whens: list[tuple[s.Expr, s.Expr]] = []
        while self.take("WHEN"):
            condition = self.expression()
            self.expect("THEN")
            whens.append((condition, self.expression()))
        if not whens:
            self.fail("WHEN")
        otherwise = self.expression() if self.take("ELSE") else None
        self.expect("END")
        return s.Case(at, operand, tuple(whens), otherwise)

    def _exists(self) -> s.Expr:
        at = self.advance().start
        self.expect_op("(")
        query = self.query()
        self.expect_op(")")
        return s.Exists(at, query)

    def _cast(self) -> s.Expr:
        token = self.advance()
        self.expect_op("(")
        operand = self.expression()
        self.expect("AS")
        kind = self.data_type()
        self.expect_op(")")
        return s.Cast(token.start, operand, kind, safe=token.key == "TRY_CAST")

    def _interval(self) -> s.Expr:
        at = self.advance().start
        negative = False
        while (sign := self.take_op("-", "+")) is not None:
            negative = negative != (sign == "-")
        if self.token.kind not in ("string", "number"):
            self.fail("the length of the interval in quotes")
        value = self.advance().text
        unit = self._unit()
        precision = self._size(1, 10, 0) or None
        to = self._unit() if self.take("TO") else None
        if to is not None:
            self._size(0, 9, 6)
        return s.IntervalLiteral(at, value, unit, to, negative, precision)

    def _unit(self) -> str:
        token = self.token
        unit = _PLURALS.get(token.key, token.key)
        if token.kind != "word" or unit not in UNITS:
            self.fail("a unit of time, such as MINUTE")
        self.advance()
        return unit

    def _collection(self, word: str) -> s.Expr:
        at = self.advance().start
        self.expect_op("[")
        items = () if self.is_op("]") else self.many(self.expression)
        self.expect_op("]")
        return s.Call(at, f"{word} VALUE", items)

    # ------------------------------------------------------------------------------------------- names and calls

    def _named(self) -> s.Expr:
        at = self.at
        parts = [self.name(any_word=True)]
        while self.is_op("."):
            self.advance()
            if self.take_op("*"):
                return s.Star(at, tuple(parts))
            parts.append(self.name(any_word=True))
        if self.is_op("("):
            return self._called(at, tuple(parts))
        return s.Name(at, tuple(parts))

    def _called(self, at: int, path: tuple[str, ...]) -> s.Expr:
        name = path[-1].upper() if len(path) == 1 else path[-1]
        self.expect_op("(")
        special: Callable[[int], s.Call] | None = None
        if len(path) == 1:
            special = getattr(self, f"_call_{name.lower()}", None)
        if special is not None:
            call = special(at)
            self.expect_op(")")
            return self._after(call)
        distinct = self.take("DISTINCT")
        self.take("ALL")
        if self.is_op("*") and self.ahead().text == ")":
            self.advance()
            self.expect_op(")")
            return self._after(s.Call(at, name, (), distinct, star=True))
        args = () if self.is_op(")") else self.many(self._argument)
        order = self._order_by() if self.is_word("ORDER") else ()
        nulls = self._nulls()
        self.expect_op(")")
        return self._after(
            s.Call(at, name, args, distinct, order=order, nulls=nulls, path=path if len(path) > 1 else ())
        )

    def _argument(self) -> s.Expr:
        following = self.ahead()
        if self.token.kind in ("word", "quoted") and following.kind == "op" and following.text == "=>":
            at, name = self.at, self.name(any_word=True)
            self.advance()
            return s.NamedArgument(at, name, self._argument())
        if self.is_word("TABLE"):
            return self._table_argument()
        if self.is_query() and self.token.kind == "word":
            at = self.at
            return s.TableArgument(at, s.Derived(at, self.query()))
        if self.is_any(*UNITS, *_TSI) and following.kind == "op" and following.text in (",", ")"):
            at = self.at
            return self.expression() if following.text == ")" else s.Symbol(at, self._symbol())
        return self.expression()

    def _symbol(self) -> str:
        key = self.advance().key
        return _TSI.get(key, key)

    def _table_argument(self) -> s.Expr:
        at = self.advance().start
        if self.is_op("("):
            self.advance()
            table: s.TableName | s.Derived = s.Derived(at, self.query())
            self.expect_op(")")
        else:
            table = s.TableName(self.at, self.path())
        partition: tuple[s.Expr, ...] = ()
        if self.take("PARTITION", "BY"):
            partition = self.wrapped(self.expression) if self.is_op("(") else (self.expression(),)
        return s.TableArgument(at, table, partition)

    def _nulls(self) -> str | None:
        for word in ("IGNORE", "RESPECT"):
            if self.take(word, "NULLS"):
                return word
        return None

    def _after(self, call: s.Call) -> s.Expr:
        """What may stand behind a call: WITHIN GROUP, FILTER, OVER."""
        order, condition, over, nulls = call.order, None, None, call.nulls or self._nulls()
        if self.take("WITHIN", "GROUP"):
            self.expect_op("(")
            order = self._order_by()
            self.expect_op(")")
        if self.is_word("FILTER") and self.ahead().text == "(":
            self.advance()
            self.expect_op("(")
            self.expect("WHERE")
            condition = self.expression()
            self.expect_op(")")
        if self.take("OVER"):
            over = self.window_spec() if self.is_op("(") else s.WindowSpec(self.at, self.name())
        return s.Call(call.at, call.name, call.args, call.distinct, condition, over, order, nulls, call.star, call.path)

    def _order_by(self) -> tuple[s.OrderItem, ...]:
        self.expect("ORDER", "BY")
        return self.many(self._order_item)

    def _order_item(self) -> s.OrderItem:
        at, expr = self.at, self.expression()
        ascending = not self.take("DESC")
        if ascending:
            self.take("ASC")
        nulls: bool | None = None
        if self.take("NULLS"):
            nulls = (self.take_any("FIRST", "LAST") or self.fail("FIRST or LAST")) == "FIRST"
        return s.OrderItem(at, expr, ascending, nulls)

    def window_spec(self) -> s.WindowSpec:
        """( [name] PARTITION BY ... ORDER BY ... ROWS | RANGE ... )."""
        at = self.at
        self.expect_op("(")
        name = None
        if self.token.kind in ("word", "quoted") and not self.is_any("PARTITION", "ORDER", "ROWS", "RANGE"):
            name = self.name()
        partition: tuple[s.Expr, ...] = ()
        if self.take("PARTITION", "BY"):
            partition = self.many(self.expression)
        order = self._order_by() if self.is_word("ORDER") else ()
        rows, lower, upper = False, None, None
        if self.is_any("ROWS", "RANGE"):
            rows = self.advance().key == "ROWS"
            if self.take("BETWEEN"):
                lower = self._bound()
                self.expect("AND")
                upper = self._bound()
            else:
                lower = self._bound()
        self.expect_op(")")
        return s.WindowSpec(at, name, partition, order, rows, lower, upper)

    def _bound(self) -> s.Bound:
        at = self.at
        if self.take("CURRENT", "ROW"):
            return s.Bound(at, "CURRENT")
        offset = None if self.take("UNBOUNDED") else self._sum()
        side = self.take_any("PRECEDING", "FOLLOWING") or self.fail("PRECEDING or FOLLOWING")
        return s.Bound(at, "UNBOUNDED" if offset is None else "OFFSET", -1 if side == "PRECEDING" else 1, offset)

    # ------------------------------------------------------------------------- functions with a grammar of their own

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
        if self.token.kind != "word" or _TSI.get(key, _PLURALS.get(key, key)) not in UNITS:
            self.fail("a unit of time, such as MINUTE")
        self.advance()
        unit = s.Symbol(self.at, _TSI.get(key, _PLURALS.get(key, key)))
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


def _number(text: str) -> int | Decimal | float:
    if "e" in text or "E" in text:
        return float(text)
    return int(text) if text.isdigit() else Decimal(text)

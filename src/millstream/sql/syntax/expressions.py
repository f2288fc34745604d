"""The grammar of expressions, with Flink's precedence.

Promises: OR, AND, NOT, comparisons, sums, products, signs, accesses, in this order of binding; operators become calls
of functions with their sign as name.
Does not know: what names mean."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.calls import CallGrammar
from millstream.sql.syntax.cursor import RESERVED
from millstream.sql.types import data_types as t

_NO_PARENTHESES = (
    *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_ROW_TIMESTAMP"),
    "CURRENT_DATABASE",
)
_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")


class ExpressionGrammar(CallGrammar):
    """Expressions."""

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

    def _collection(self, word: str) -> s.Expr:
        at = self.advance().start
        self.expect_op("[")
        items = () if self.is_op("]") else self.many(self.expression)
        self.expect_op("]")
        return s.Call(at, f"{word} VALUE", items)

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


def _number(text: str) -> int | Decimal | float:
    if "e" in text or "E" in text:
        return float(text)
    return int(text) if text.isdigit() else Decimal(text)

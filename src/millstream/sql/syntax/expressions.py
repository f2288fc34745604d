"""Grammar of expressions, with Flink's operator precedence.

Promises: operators bind in this order, the weakest first: OR, AND, NOT, comparisons and other predicates, sums,
products, signs, element and field access. An operator becomes a call whose name is the operator.
Does not know: what names refer to."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.calls import CallParser
from millstream.sql.syntax.cursor import RESERVED, Cursor
from millstream.sql.syntax.lexer import Token
from millstream.sql.syntax.type_names import TypeParser
from millstream.sql.types import data_types as t

_COMPARISONS = frozenset(("=", "<>", "!=", "<", "<=", ">", ">="))
_RESERVED_FUNCTIONS = ("LEFT", "RIGHT", "IN", "SET")  # reserved words that are functions in front of a parenthesis


class ExpressionParser:
    """Parses expressions."""

    __slots__ = ("_cursor", "_parse_query", "_types", "calls")

    def __init__(self, cursor: Cursor, types: TypeParser, parse_query: Callable[[], s.Query]) -> None:
        self.calls = CallParser(cursor, types, self.parse_expression, self.parse_operand, parse_query)
        self._cursor = cursor
        self._types = types
        self._parse_query = parse_query

    def parse_expression(self) -> s.Expr:
        """Parse any expression."""
        return self._cursor.parse_nested(self._parse_or)

    # ------------------------------------------------------------------------------------------- logic and predicates

    def _parse_or(self) -> s.Expr:
        return self._parse_chain("OR", self._parse_and)

    def _parse_and(self) -> s.Expr:
        return self._parse_chain("AND", self._parse_not)

    def _parse_chain(self, keyword: str, parse_operand: Callable[[], s.Expr]) -> s.Expr:
        """Parse operands with a keyword between them into a balanced tree, so that long chains do not nest deep."""
        cursor = self._cursor
        first = parse_operand()
        if not cursor.is_next(keyword):
            return first
        operands, offsets = [first], []
        while cursor.is_next(keyword):
            offsets.append(cursor.advance().start)
            operands.append(parse_operand())

        def combine(first: int, last: int) -> s.Expr:
            if first == last:
                return operands[first]
            middle = (first + last) // 2
            return s.Call(offsets[middle], keyword, (combine(first, middle), combine(middle + 1, last)))

        return combine(0, len(operands) - 1)

    def _parse_not(self) -> s.Expr:
        cursor = self._cursor
        if cursor.is_next("NOT") and cursor.peek().key != "EXISTS":
            return self._parse_negation()
        return self._parse_predicate()

    def _parse_negation(self) -> s.Expr:
        at = self._cursor.advance().start
        return s.Call(at, "NOT", (self._cursor.parse_nested(self._parse_not),))

    def _parse_predicate(self) -> s.Expr:
        cursor = self._cursor
        left = self.parse_operand()
        while True:
            key = cursor.token.key
            if key in _COMPARISONS:
                left = self._parse_comparison(left)
            elif key == "IS":
                left = self._parse_is(left)
            elif key in _PREDICATES:
                left = _PREDICATES[key](self, left, cursor.advance().start)
            elif key == "NOT" and cursor.peek().key in _NEGATED_PREDICATES:
                at = cursor.advance().start
                left = self._parse_negated_predicate(left, at)
            else:
                return left

    def _parse_comparison(self, left: s.Expr) -> s.Expr:
        cursor = self._cursor
        token = cursor.advance()
        at, operator = token.start, "<>" if token.key == "!=" else token.key
        if not (cursor.is_any("ANY", "SOME", "ALL") and cursor.peek().key == "("):
            return s.Call(at, operator, (left, self.parse_operand()))
        is_all = cursor.advance().key == "ALL"
        query = self._parse_subquery()
        if not is_all and operator == "=":
            return s.In(at, left, (), query, negated=False)
        if is_all and operator == "<>":
            return s.In(at, left, (), query, negated=True)
        cursor.fail(
            f"{operator} {'ALL' if is_all else 'ANY'} is not supported",
            hint="only = ANY and <> ALL can be used with a query",
            at=at,
        )

    def _parse_is(self, left: s.Expr) -> s.Expr:
        cursor = self._cursor
        at = cursor.advance().start
        prefix = "IS NOT" if cursor.accept("NOT") else "IS"
        if cursor.accept("DISTINCT", "FROM"):
            return s.Call(at, f"{prefix} DISTINCT FROM", (left, self.parse_operand()))
        word = cursor.accept_any("NULL", "TRUE", "FALSE", "UNKNOWN", "JSON")
        if word is None:
            cursor.reject("NULL, TRUE, FALSE, UNKNOWN, JSON or DISTINCT FROM")
        args: tuple[s.Expr, ...] = (left,)
        if word == "JSON":
            args = (left, s.Symbol(at, cursor.accept_any("VALUE", "OBJECT", "ARRAY", "SCALAR") or "VALUE"))
        return s.Call(at, f"{prefix} {word}", args)

    def _parse_negated_predicate(self, left: s.Expr, at: int) -> s.Expr:
        key = self._cursor.advance().key
        if key == "IN":
            return self._parse_in(left, at, negated=True)
        return s.Call(at, "NOT", (_PREDICATES[key](self, left, at),))

    def _parse_in(self, left: s.Expr, at: int, *, negated: bool = False) -> s.Expr:
        cursor = self._cursor
        cursor.expect("(")
        query: s.Query | None = None
        items: tuple[s.Expr, ...] = ()
        if cursor.is_query_next():
            query = self._parse_query()
        else:
            items = cursor.parse_list(self.parse_expression)
        cursor.expect(")")
        return s.In(at, left, items, query, negated)

    def _parse_between(self, left: s.Expr, at: int) -> s.Expr:
        symmetric = self._cursor.accept_any("SYMMETRIC", "ASYMMETRIC") == "SYMMETRIC"
        low = self.parse_operand()
        self._cursor.expect("AND")
        return s.Call(at, "BETWEEN SYMMETRIC" if symmetric else "BETWEEN", (left, low, self.parse_operand()))

    def _parse_overlaps(self, left: s.Expr, at: int) -> s.Expr:
        return s.Call(at, "OVERLAPS", (left, self.parse_operand()))

    def _parse_like(self, left: s.Expr, at: int) -> s.Expr:
        return s.Call(at, "LIKE", (left, *self._parse_pattern()))

    def _parse_similar(self, left: s.Expr, at: int) -> s.Expr:
        self._cursor.expect("TO")
        return s.Call(at, "SIMILAR TO", (left, *self._parse_pattern()))

    def _parse_pattern(self) -> tuple[s.Expr, ...]:
        """pattern [ESCAPE character]."""
        pattern = self.parse_operand()
        return (pattern, self.parse_operand()) if self._cursor.accept("ESCAPE") else (pattern,)

    # ----------------------------------------------------------------------------------------------------- arithmetic

    def parse_operand(self) -> s.Expr:
        """Parse an operand of a predicate: a sum, or anything that binds stronger."""
        cursor = self._cursor
        left = self._parse_product()
        while cursor.is_any("+", "-"):
            token = cursor.advance()
            left = s.Call(token.start, token.key, (left, self._parse_product()))
        return left

    def _parse_product(self) -> s.Expr:
        cursor = self._cursor
        left = self._parse_signed()
        while cursor.is_any("*", "/", "%", "||"):
            token = cursor.advance()
            left = s.Call(token.start, token.key, (left, self._parse_signed()))
        return left

    def _parse_signed(self) -> s.Expr:
        cursor = self._cursor
        if not cursor.is_any("-", "+"):
            return self._parse_access()
        token = cursor.advance()
        operand = cursor.parse_nested(self._parse_signed)
        if token.key == "+":
            return operand
        if isinstance(operand, s.Literal) and isinstance(operand.value, int | float | Decimal):
            return s.Literal(token.start, -operand.value, operand.type)
        return s.Call(token.start, "NEGATE", (operand,))

    def _parse_access(self) -> s.Expr:
        """Parse array[index], map[key] and (expression).field."""
        cursor = self._cursor
        left = self._parse_primary()
        while True:
            at = cursor.at
            if cursor.accept("["):
                index = self.parse_expression()
                cursor.expect("]")
                left = s.ElementAccess(at, left, index)
            elif cursor.is_next(".") and not isinstance(left, s.Name | s.Star):
                cursor.advance()
                left = s.FieldAccess(at, left, cursor.parse_name(any_word=True))
            else:
                return left

    # -------------------------------------------------------------------------------------------------------- primary

    def _parse_primary(self) -> s.Expr:
        cursor = self._cursor
        token = cursor.token
        match token.type:
            case "word":
                return self._parse_word()
            case "quoted":
                return self._parse_named()
            case "number":
                cursor.advance()
                return s.Literal(token.start, _read_number(token.text))
            case "string":
                cursor.advance()
                text = token.text
                while cursor.token.type == "string":  # adjacent literals are one
                    text += cursor.advance().text
                return s.Literal(token.start, text)
            case "bytes":
                cursor.advance()
                return s.Literal(token.start, bytes.fromhex(token.text))
            case "op" if token.key == "(":
                return self._parse_parenthesis()
            case "op" if token.key == "*":
                cursor.advance()
                return s.Star(token.start)
        cursor.reject("an expression")

    def _parse_parenthesis(self) -> s.Expr:
        cursor = self._cursor
        at = cursor.at
        if cursor.is_query_next():
            return s.Subquery(at, self._parse_subquery())
        items = cursor.parse_parenthesized(self.parse_expression)
        return items[0] if len(items) == 1 else s.Call(at, "ROW", items)

    def _parse_subquery(self) -> s.Query:
        """Parse a query in parentheses."""
        self._cursor.expect("(")
        query = self._parse_query()
        self._cursor.expect(")")
        return query

    def _parse_named(self) -> s.Expr:
        """Parse a column, a call, or the columns of a table: a.b, a.f(x), a.*."""
        cursor = self._cursor
        at = cursor.at
        path = [cursor.parse_name(any_word=True)]
        while cursor.accept("."):
            if cursor.accept("*"):
                return s.Star(at, tuple(path))
            path.append(cursor.parse_name(any_word=True))
        if cursor.is_next("("):
            return self.calls.parse_call(at, tuple(path))
        return s.Name(at, tuple(path))

    def _parse_word(self) -> s.Expr:
        cursor = self._cursor
        key, following = cursor.token.key, cursor.peek()
        rule = _KEYWORD_EXPRESSIONS.get(key)
        if rule is not None:
            applies, parse = rule
            if applies(following):
                return parse(self)
        if key in RESERVED and not (following.key == "(" and key in _RESERVED_FUNCTIONS):
            cursor.reject("an expression")
        return self._parse_named()

    # --------------------------------------------------------------------------- expressions that begin with a keyword

    def _parse_null(self) -> s.Expr:
        return s.Literal(self._cursor.advance().start, None)

    def _parse_boolean(self) -> s.Expr:
        token = self._cursor.advance()
        return s.Literal(token.start, token.key == "TRUE")

    def _parse_unknown(self) -> s.Expr:
        at = self._cursor.advance().start
        return s.Cast(at, s.Literal(at, None), t.BOOLEAN)

    def _parse_call_without_parentheses(self) -> s.Expr:
        token = self._cursor.advance()
        return s.Call(token.start, token.key, ())

    def _parse_case(self) -> s.Expr:
        cursor = self._cursor
        at = cursor.advance().start
        operand = None if cursor.is_next("WHEN") else self.parse_expression()
        whens: list[tuple[s.Expr, s.Expr]] = []
        while cursor.accept("WHEN"):
            condition = self.parse_expression()
            cursor.expect("THEN")
            whens.append((condition, self.parse_expression()))
        if not whens:
            cursor.reject("WHEN")
        otherwise = self.parse_expression() if cursor.accept("ELSE") else None
        cursor.expect("END")
        return s.Case(at, operand, tuple(whens), otherwise)

    def _parse_exists(self) -> s.Expr:
        at = self._cursor.advance().start
        return s.Exists(at, self._parse_subquery())

    def _parse_cast(self) -> s.Expr:
        cursor = self._cursor
        token = cursor.advance()
        cursor.expect("(")
        operand = self.parse_expression()
        cursor.expect("AS")
        data_type = self._types.parse_type()
        cursor.expect(")")
        return s.Cast(token.start, operand, data_type, safe=token.key == "TRY_CAST")

    def _parse_interval(self) -> s.Expr:
        """INTERVAL [+ | -] 'value' unit[(precision)] [TO unit]."""
        cursor = self._cursor
        at = cursor.advance().start
        negative = False
        while (sign := cursor.accept_any("-", "+")) is not None:
            negative = negative != (sign == "-")
        if cursor.token.type not in ("string", "number"):
            cursor.reject("the length of the interval in quotes")
        value = cursor.advance().text
        unit = self.calls.special.parse_unit()
        precision = self._types.parse_size(1, 10, 0) or None
        end_unit = self.calls.special.parse_unit() if cursor.accept("TO") else None
        if end_unit is not None:
            self._types.parse_size(0, 9, 6)
        return s.IntervalLiteral(at, value, unit, end_unit, negative, precision)

    def _parse_time_literal(self) -> s.Expr:
        """DATE '2020-01-01', TIME '10:00:00' and TIMESTAMP '2020-01-01 10:00:00'."""
        token = self._cursor.advance()
        value = s.Literal(self._cursor.at, self._cursor.parse_string())
        return s.Call(token.start, f"{token.key} LITERAL", (value,))

    def _parse_collection(self) -> s.Expr:
        """ARRAY[...], MAP[...] and MULTISET[...]."""
        cursor = self._cursor
        token = cursor.advance()
        cursor.expect("[")
        items = () if cursor.is_next("]") else cursor.parse_list(self.parse_expression)
        cursor.expect("]")
        return s.Call(token.start, f"{token.key} VALUE", items)

    def _parse_row(self) -> s.Expr:
        cursor = self._cursor
        at = cursor.advance().start
        cursor.expect("(")
        items = () if cursor.is_next(")") else cursor.parse_list(self.parse_expression)
        cursor.expect(")")
        return s.Call(at, "ROW", items)

    def _parse_descriptor(self) -> s.Expr:
        at = self._cursor.advance().start
        return s.Descriptor(at, self._cursor.parse_parenthesized(self._cursor.parse_name))


def _read_number(text: str) -> int | Decimal | float:
    if "e" in text or "E" in text:
        return float(text)
    return int(text) if text.isdigit() else Decimal(text)


def _accept_any_token(_following: Token) -> bool:
    return True


def _is_parenthesis(following: Token) -> bool:
    return following.key == "("


def _is_not_parenthesis(following: Token) -> bool:
    return following.key != "("


def _is_bracket(following: Token) -> bool:
    return following.key == "["


def _is_string(following: Token) -> bool:
    return following.type == "string"


_NEGATED_PREDICATES = ("BETWEEN", "IN", "LIKE", "SIMILAR")
_PREDICATES: dict[str, Callable[[ExpressionParser, s.Expr, int], s.Expr]] = {
    "BETWEEN": ExpressionParser._parse_between,
    "IN": ExpressionParser._parse_in,
    "LIKE": ExpressionParser._parse_like,
    "SIMILAR": ExpressionParser._parse_similar,
    "OVERLAPS": ExpressionParser._parse_overlaps,
}

# Keywords that begin an expression, with a condition for the next token. If it is not met, the word is a name.
_KEYWORD_EXPRESSIONS: dict[str, tuple[Callable[[Token], bool], Callable[[ExpressionParser], s.Expr]]] = {
    "NULL": (_accept_any_token, ExpressionParser._parse_null),
    "TRUE": (_accept_any_token, ExpressionParser._parse_boolean),
    "FALSE": (_accept_any_token, ExpressionParser._parse_boolean),
    "UNKNOWN": (_is_not_parenthesis, ExpressionParser._parse_unknown),
    "CASE": (_accept_any_token, ExpressionParser._parse_case),
    "EXISTS": (_accept_any_token, ExpressionParser._parse_exists),
    "NOT": (_accept_any_token, ExpressionParser._parse_negation),
    "CAST": (_is_parenthesis, ExpressionParser._parse_cast),
    "TRY_CAST": (_is_parenthesis, ExpressionParser._parse_cast),
    "INTERVAL": (_is_not_parenthesis, ExpressionParser._parse_interval),
    "DATE": (_is_string, ExpressionParser._parse_time_literal),
    "TIME": (_is_string, ExpressionParser._parse_time_literal),
    "TIMESTAMP": (_is_string, ExpressionParser._parse_time_literal),
    "TIMESTAMP_LTZ": (_is_string, ExpressionParser._parse_time_literal),
    "ARRAY": (_is_bracket, ExpressionParser._parse_collection),
    "MAP": (_is_bracket, ExpressionParser._parse_collection),
    "MULTISET": (_is_bracket, ExpressionParser._parse_collection),
    "ROW": (_is_parenthesis, ExpressionParser._parse_row),
    "DESCRIPTOR": (_is_parenthesis, ExpressionParser._parse_descriptor),
    "CURRENT_DATE": (_is_not_parenthesis, ExpressionParser._parse_call_without_parentheses),
    "CURRENT_TIME": (_is_not_parenthesis, ExpressionParser._parse_call_without_parentheses),
    "CURRENT_TIMESTAMP": (_is_not_parenthesis, ExpressionParser._parse_call_without_parentheses),
    "LOCALTIME": (_is_not_parenthesis, ExpressionParser._parse_call_without_parentheses),
    "LOCALTIMESTAMP": (_is_not_parenthesis, ExpressionParser._parse_call_without_parentheses),
    "CURRENT_ROW_TIMESTAMP": (_is_not_parenthesis, ExpressionParser._parse_call_without_parentheses),
    "CURRENT_DATABASE": (_is_not_parenthesis, ExpressionParser._parse_call_without_parentheses),
}

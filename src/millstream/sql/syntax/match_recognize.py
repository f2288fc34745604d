"""Grammar of MATCH_RECOGNIZE: measures, row patterns and their definitions.

Promises: a row pattern becomes a tree of variables, sequences, choices and quantifiers.
Does not know: whether a variable is defined."""

from __future__ import annotations

from typing import NamedTuple

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.cursor import Cursor
from millstream.sql.syntax.expressions import ExpressionParser


class MatchParser:
    """Parses MATCH_RECOGNIZE (...)."""

    __slots__ = ("_cursor", "_expressions")

    def __init__(self, cursor: Cursor, expressions: ExpressionParser) -> None:
        self._cursor = cursor
        self._expressions = expressions

    def parse_match(self, source: s.Source) -> s.MatchRecognize:
        """Parse the clause from its keyword to its closing parenthesis, without an alias."""
        cursor = self._cursor
        at = cursor.advance().start
        cursor.expect("(")
        partition: tuple[s.Expr, ...] = ()
        if cursor.accept("PARTITION", "BY"):
            partition = cursor.parse_list(self._expressions.parse_expression)
        order = self._expressions.calls.parse_order_by() if cursor.is_next("ORDER") else ()
        measures = cursor.parse_list(self._parse_measure) if cursor.accept("MEASURES") else ()
        all_rows = False
        if not cursor.accept("ONE", "ROW", "PER", "MATCH"):
            all_rows = cursor.accept("ALL", "ROWS", "PER", "MATCH")
        skip = self._parse_skip() if cursor.accept("AFTER", "MATCH", "SKIP") else ("PAST LAST ROW", None)
        cursor.expect("PATTERN", "(")
        pattern = self._parse_choice()
        cursor.expect(")")
        within = self._expressions.parse_expression() if cursor.accept("WITHIN") else None
        subsets = cursor.parse_list(self._parse_subset) if cursor.accept("SUBSET") else ()
        definitions = cursor.parse_list(self._parse_definition) if cursor.accept("DEFINE") else ()
        cursor.expect(")")
        return s.MatchRecognize(
            at, source, partition, order, measures, all_rows, skip, pattern, within, definitions, subsets
        )

    def _parse_measure(self) -> tuple[s.Expr, str]:
        expr = self._expressions.parse_expression()
        self._cursor.expect("AS")
        return expr, self._cursor.parse_name(any_word=True)

    def _parse_subset(self) -> tuple[str, tuple[str, ...]]:
        name = self._cursor.parse_name()
        self._cursor.expect("=")
        return name, self._cursor.parse_parenthesized(self._cursor.parse_name)

    def _parse_definition(self) -> tuple[str, s.Expr]:
        name = self._cursor.parse_name()
        self._cursor.expect("AS")
        return name, self._expressions.parse_expression()

    def _parse_skip(self) -> tuple[str, str | None]:
        """Parse the AFTER MATCH strategy: where matching continues."""
        cursor = self._cursor
        if cursor.accept("PAST", "LAST", "ROW"):
            return "PAST LAST ROW", None
        cursor.expect("TO")
        if cursor.accept("NEXT", "ROW"):
            return "TO NEXT ROW", None
        if cursor.accept("FIRST"):
            return "TO FIRST", cursor.parse_name()
        cursor.accept("LAST")
        return "TO LAST", cursor.parse_name()

    # ---------------------------------------------------------------------------------------------------- row patterns

    def _parse_choice(self) -> s.PatternNode:
        at = self._cursor.at
        choices = [self._parse_sequence()]
        while self._cursor.accept("|"):
            choices.append(self._parse_sequence())
        return choices[0] if len(choices) == 1 else s.PatternNode(at, "choice", parts=tuple(choices))

    def _parse_sequence(self) -> s.PatternNode:
        cursor = self._cursor
        at = cursor.at
        parts: list[s.PatternNode] = []
        while not cursor.is_any(")", "|") and cursor.token.type != "end":
            parts.append(self._parse_quantified())
        if not parts:
            cursor.reject("a pattern variable")
        return parts[0] if len(parts) == 1 else s.PatternNode(at, "sequence", parts=tuple(parts))

    def _parse_quantified(self) -> s.PatternNode:
        cursor = self._cursor
        at = cursor.at
        if cursor.accept("("):
            pattern = self._parse_choice()
            cursor.expect(")")
        else:
            pattern = s.PatternNode(at, "variable", cursor.parse_name())
        quantifier = self._parse_quantifier()
        if quantifier is None:
            return pattern
        greedy = not cursor.accept("?")
        least, most = quantifier
        return s.PatternNode(at, "quantified", parts=(pattern,), least=least, most=most, greedy=greedy)

    def _parse_quantifier(self) -> _Quantifier | None:
        cursor = self._cursor
        match cursor.accept_any("*", "+", "?", "{"):
            case "*":
                return _Quantifier(0, None)
            case "+":
                return _Quantifier(1, None)
            case "?":
                return _Quantifier(0, 1)
            case "{":
                quantifier = self._parse_counts()
                cursor.expect("}")
                return quantifier
        return None

    def _parse_counts(self) -> _Quantifier:
        """Parse the part of a quantifier between its braces: n, n followed by a comma, n,m or a comma followed by m."""
        cursor = self._cursor
        if cursor.accept(","):
            return _Quantifier(0, cursor.parse_integer())
        least = cursor.parse_integer()
        if not cursor.accept(","):
            return _Quantifier(least, least)
        return _Quantifier(least, cursor.parse_integer() if cursor.token.type == "number" else None)


class _Quantifier(NamedTuple):
    """How often a pattern can match; `most` is None if there is no limit."""

    least: int
    most: int | None

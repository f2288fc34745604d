"""Grammar of FROM: tables, joins, table functions and derived tables.

Promises: joins are left-associative; an alias and the hints of a table belong to the table.
Does not know: what names refer to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.sql.errors import SqlNotSupported
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.cursor import RESERVED, Cursor
from millstream.sql.syntax.expressions import ExpressionParser
from millstream.sql.syntax.hints import parse_hints
from millstream.sql.syntax.match_recognize import MatchParser

_JOIN_KEYWORDS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")
_UNSUPPORTED_FUNCTIONS = {"VECTOR_SEARCH": "searches in vector stores"}


def parse_alias(cursor: Cursor) -> str | None:
    """Parse [AS] name, if there is one."""
    token = cursor.token
    if token.key == "AS":
        cursor.advance()
        return cursor.parse_name(any_word=not cursor.is_any("FROM", "WHERE", "SELECT"))
    if token.type == "quoted" or (token.type == "word" and token.key not in RESERVED):
        return cursor.advance().text
    return None


class SourceParser:
    """Parses the FROM clause."""

    __slots__ = ("_cursor", "_expressions", "_match", "_parse_query")

    def __init__(self, cursor: Cursor, expressions: ExpressionParser, parse_query: Callable[[], s.Query]) -> None:
        self._cursor = cursor
        self._expressions = expressions
        self._parse_query = parse_query
        self._match = MatchParser(cursor, expressions)

    def parse_sources(self) -> s.Source:
        """Parse tables with commas between them, which is a cross join."""
        left = self._parse_joins()
        while self._cursor.is_next(","):
            at = self._cursor.advance().start
            left = s.Join(at, "CROSS", left, self._parse_joins())
        return left

    def _parse_joins(self) -> s.Source:
        cursor = self._cursor
        left = self._parse_source()
        while cursor.is_any(*_JOIN_KEYWORDS):
            at = cursor.at
            natural = cursor.accept("NATURAL")
            join_type = cursor.accept_any("INNER", "LEFT", "RIGHT", "FULL", "CROSS") or "INNER"
            if join_type in ("LEFT", "RIGHT", "FULL"):
                cursor.accept("OUTER")
            cursor.expect("JOIN")
            right = self._parse_source()
            condition: s.Expr | None = None
            using: tuple[str, ...] = ()
            if cursor.accept("ON"):
                condition = self._expressions.parse_expression()
            elif cursor.accept("USING"):
                using = cursor.parse_parenthesized(cursor.parse_name)
            elif join_type not in ("CROSS", "INNER") and not natural:
                cursor.reject("ON or USING")
            left = s.Join(at, join_type, left, right, condition, using, natural)
        return left

    def _parse_source(self) -> s.Source:
        source = self._parse_table()
        if self._cursor.is_next("MATCH_RECOGNIZE"):
            match = self._match.parse_match(source)
            alias, columns = self._parse_alias_and_columns()
            source = replace(match, alias=alias, columns=columns)
        if self._cursor.is_next("TABLESAMPLE"):
            self._cursor.reject(hint="samples are not supported")
        return source

    def _parse_alias_and_columns(self) -> tuple[str | None, tuple[str, ...]]:
        """[AS] name [(column, ...)]."""
        cursor = self._cursor
        alias = parse_alias(cursor)
        columns = cursor.parse_parenthesized(cursor.parse_name) if alias is not None and cursor.is_next("(") else ()
        return alias, columns

    # --------------------------------------------------------------------------------------------------------- tables

    def _parse_table(self) -> s.Source:
        cursor = self._cursor
        at = cursor.at
        lateral = cursor.accept("LATERAL")
        if cursor.accept("UNNEST"):
            return self._parse_unnest(at)
        if cursor.accept("TABLE", "("):
            call = self._parse_table_function(cursor.at, cursor.parse_path())
            cursor.expect(")")
            return s.TableFunctionCall(at, call, *self._parse_alias_and_columns())
        if cursor.is_next("("):
            return self._parse_parenthesized(at, lateral)
        cursor.accept("TABLE")
        if cursor.is_next("VALUES"):
            return s.DerivedTable(at, self._parse_query(), *self._parse_alias_and_columns(), lateral)
        if lateral and cursor.peek().key != "(":
            cursor.reject("TABLE( or a query in parentheses")
        path = cursor.parse_path()
        if cursor.is_next("("):
            call = self._parse_table_function(at, path)
            return s.TableFunctionCall(at, call, *self._parse_alias_and_columns())
        return self._parse_named_table(at, path)

    def _parse_unnest(self, at: int) -> s.Source:
        cursor = self._cursor
        cursor.expect("(")
        call = s.Call(at, "UNNEST", (self._expressions.parse_expression(),))
        cursor.expect(")")
        ordinality = cursor.accept("WITH", "ORDINALITY")
        return s.TableFunctionCall(at, call, *self._parse_alias_and_columns(), ordinality)

    def _parse_parenthesized(self, at: int, lateral: bool) -> s.Source:
        """Parse a query in parentheses, or else tables in parentheses."""
        cursor = self._cursor
        if cursor.is_query_next():
            mark = cursor.mark()
            cursor.advance()
            query = self._parse_query()
            if cursor.accept(")"):
                return s.DerivedTable(at, query, *self._parse_alias_and_columns(), lateral)
            cursor.rewind(mark)  # the query was the first of several tables: ((SELECT ...) AS a JOIN b ...)
        cursor.expect("(")
        source = self.parse_sources()
        cursor.expect(")")
        return source

    def _parse_named_table(self, at: int, path: tuple[str, ...]) -> s.Source:
        """name [hints] [FOR SYSTEM_TIME AS OF ...] [alias] [hints]; the alias can also be before FOR."""
        hints = parse_hints(self._cursor)
        as_of = self._parse_as_of()
        alias, columns = self._parse_alias_and_columns()
        if as_of is None and alias is not None:
            as_of = self._parse_as_of()
        hints = hints or parse_hints(self._cursor)
        return s.TableName(at, path, alias, columns, hints, as_of)

    def _parse_as_of(self) -> s.Expr | None:
        if not self._cursor.accept("FOR", "SYSTEM_TIME"):
            return None
        self._cursor.expect("AS", "OF")
        return self._expressions.parse_expression()

    def _parse_table_function(self, at: int, path: tuple[str, ...]) -> s.Call:
        name = path[-1].upper()
        if name in _UNSUPPORTED_FUNCTIONS:
            message = f"{name} is not supported: {_UNSUPPORTED_FUNCTIONS[name]} are not supported"
            raise SqlNotSupported(message, at=at, text=self._cursor.text, hint="call them from a Python function")
        return self._expressions.calls.parse_call(at, path)

"""Grammar of DELETE, UPDATE and TRUNCATE TABLE.

Promises: the target is one table, with an alias or without.
Does not know: which tables can be changed."""

from __future__ import annotations

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.cursor import Cursor
from millstream.sql.syntax.queries import QueryParser


def parse_delete(cursor: Cursor, queries: QueryParser) -> s.Delete:
    """DELETE FROM table [[AS] alias] [WHERE condition]."""
    at = cursor.advance().start
    cursor.expect("FROM")
    table_at, table = cursor.at, cursor.parse_path()
    alias = _parse_alias(cursor)
    return s.Delete(at, table, _parse_condition(cursor, queries), alias, table_at)


def parse_update(cursor: Cursor, queries: QueryParser) -> s.Update:
    """UPDATE table [[AS] alias] SET column = expression, ... [WHERE condition]."""
    at = cursor.advance().start
    table_at, table = cursor.at, cursor.parse_path()
    alias = _parse_alias(cursor)
    cursor.expect("SET")

    def parse_assignment() -> tuple[str, s.Expr]:
        column = cursor.parse_name()
        cursor.expect("=")
        return column, queries.expressions.parse_expression()

    assignments = cursor.parse_list(parse_assignment)
    return s.Update(at, table, assignments, _parse_condition(cursor, queries), alias, table_at)


def parse_truncate(cursor: Cursor) -> s.Truncate:
    """TRUNCATE TABLE table."""
    at = cursor.advance().start
    cursor.expect("TABLE")
    table_at = cursor.at
    return s.Truncate(at, cursor.parse_path(), table_at)


def _parse_alias(cursor: Cursor) -> str | None:
    if cursor.accept("AS") or (not cursor.is_at_end and not cursor.is_any("SET", "WHERE")):
        return cursor.parse_name()
    return None


def _parse_condition(cursor: Cursor, queries: QueryParser) -> s.Expr | None:
    return queries.expressions.parse_expression() if cursor.accept("WHERE") else None

"""Grammar of queries: SELECT, VALUES, set operations and WITH.

Promises: INTERSECT binds stronger than UNION and EXCEPT; ORDER BY and LIMIT belong to the whole query.
Does not know: what names refer to."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.cursor import Cursor
from millstream.sql.syntax.expressions import ExpressionParser
from millstream.sql.syntax.hints import parse_hints
from millstream.sql.syntax.sources import SourceParser, parse_alias
from millstream.sql.syntax.type_names import TypeParser


class QueryParser:
    """Parses queries. It creates the parser of expressions, because the two call each other."""

    __slots__ = ("_cursor", "_sources", "expressions")

    def __init__(self, cursor: Cursor, types: TypeParser) -> None:
        self.expressions = ExpressionParser(cursor, types, self.parse_query)
        self._cursor = cursor
        self._sources = SourceParser(cursor, self.expressions, self.parse_query)

    def parse_query(self) -> s.Query:
        """Parse a whole query, with WITH, ORDER BY and LIMIT."""
        return self._cursor.parse_nested(self._parse_query)

    def _parse_query(self) -> s.Query:
        cursor = self._cursor
        at = cursor.at
        ctes: tuple[tuple[str, tuple[str, ...], s.Query], ...] = ()
        if cursor.accept("WITH"):
            if cursor.is_next("RECURSIVE"):
                cursor.reject(hint="recursive queries are not supported")
            ctes = cursor.parse_list(self._parse_cte)
        body = self._parse_union()
        order = self.expressions.calls.parse_order_by() if cursor.is_next("ORDER") else ()
        limit, offset = self._parse_limit()
        if not isinstance(body, s.Query):
            return s.Query(at, body, ctes, order, limit, offset)
        if not ctes and not order and limit is None and offset is None:
            return body
        if body.order or body.limit is not None or body.offset is not None or body.ctes:
            select = s.Select(body.at, ((s.Star(body.at), None),), s.DerivedTable(body.at, body))
            return s.Query(at, select, ctes, order, limit, offset)
        return s.Query(at, body.body, ctes, order, limit, offset)

    def _parse_cte(self) -> tuple[str, tuple[str, ...], s.Query]:
        """name [(column, ...)] AS (query)."""
        cursor = self._cursor
        name = cursor.parse_name()
        columns = cursor.parse_parenthesized(cursor.parse_name) if cursor.is_next("(") else ()
        cursor.expect("AS", "(")
        query = self.parse_query()
        cursor.expect(")")
        return name, columns, query

    def _parse_limit(self) -> tuple[int | None, int | None]:
        """Parse LIMIT, OFFSET and FETCH, in any order."""
        cursor = self._cursor
        limit: int | None = None
        offset: int | None = None
        while (keyword := cursor.accept_any("LIMIT", "OFFSET", "FETCH")) is not None:
            if keyword == "OFFSET":
                offset = cursor.parse_integer()
                cursor.accept_any("ROW", "ROWS")
            elif keyword == "FETCH":
                cursor.expect_any("FIRST", "NEXT")
                limit = cursor.parse_integer() if cursor.token.type == "number" else 1
                cursor.expect_any("ROW", "ROWS")
                cursor.expect("ONLY")
            elif not cursor.accept("ALL"):
                limit = cursor.parse_integer()
                if cursor.accept(","):  # LIMIT offset, count
                    offset, limit = limit, cursor.parse_integer()
        return limit, offset

    # ------------------------------------------------------------------------------------------------- set operations

    def _parse_union(self) -> s.QueryBody | s.Query:
        cursor = self._cursor
        left = self._parse_intersect()
        while cursor.is_any("UNION", "EXCEPT", "MINUS"):
            token = cursor.advance()
            operator = "EXCEPT" if token.key == "MINUS" else token.key
            left = self._parse_right_side(token.start, operator, left, self._parse_intersect)
        return left

    def _parse_intersect(self) -> s.QueryBody | s.Query:
        left = self._parse_simple_query()
        while self._cursor.is_next("INTERSECT"):
            at = self._cursor.advance().start
            left = self._parse_right_side(at, "INTERSECT", left, self._parse_simple_query)
        return left

    def _parse_right_side(
        self, at: int, operator: str, left: s.QueryBody | s.Query, parse: Callable[[], s.QueryBody | s.Query]
    ) -> s.SetOperation:
        keeps_duplicates = self._cursor.accept_any("ALL", "DISTINCT") == "ALL"
        return s.SetOperation(at, operator, keeps_duplicates, _as_query(left), _as_query(parse()))

    def _parse_simple_query(self) -> s.QueryBody | s.Query:
        cursor = self._cursor
        at = cursor.at
        if cursor.accept("("):
            query = self.parse_query()
            cursor.expect(")")
            return query
        if cursor.accept("VALUES"):
            return s.Values(at, cursor.parse_list(self._parse_values_row))
        if cursor.is_next("TABLE") and cursor.peek().type in ("word", "quoted"):
            cursor.advance()
            return s.Select(at, ((s.Star(at), None),), s.TableName(cursor.at, cursor.parse_path()))
        if not cursor.is_next("SELECT"):
            cursor.reject("SELECT, VALUES or WITH")
        return cursor.parse_nested(self._parse_select)

    def _parse_values_row(self) -> tuple[s.Expr, ...]:
        self._cursor.accept("ROW")
        if self._cursor.is_next("("):
            return self._cursor.parse_parenthesized(self.expressions.parse_expression)
        return (self.expressions.parse_expression(),)

    # --------------------------------------------------------------------------------------------------------- SELECT

    def _parse_select(self) -> s.Select:
        cursor = self._cursor
        at = cursor.advance().start
        hints = parse_hints(cursor)
        distinct = cursor.accept_any("DISTINCT", "ALL") == "DISTINCT"
        items = cursor.parse_list(self._parse_select_item)
        source = where = group = having = qualify = None
        windows: tuple[tuple[str, s.WindowSpec], ...] = ()
        if cursor.accept("FROM"):
            source = self._sources.parse_sources()
        if cursor.accept("WHERE"):
            where = self.expressions.parse_expression()
        if cursor.accept("GROUP"):
            cursor.expect("BY")
            group = cursor.parse_list(self._parse_group_item)
        if cursor.accept("HAVING"):
            having = self.expressions.parse_expression()
        if cursor.accept("WINDOW"):
            windows = cursor.parse_list(self._parse_named_window)
        if cursor.accept("QUALIFY"):
            qualify = self.expressions.parse_expression()
        return s.Select(at, items, source, where, group, having, windows, qualify, distinct, hints)

    def _parse_select_item(self) -> tuple[s.Expr, str | None]:
        cursor = self._cursor
        if cursor.is_next("FROM") and cursor.peek(-1).key == ",":
            cursor.reject("an expression", hint="remove the comma before FROM")
        expr = self.expressions.parse_expression()
        return expr, parse_alias(cursor)

    def _parse_named_window(self) -> tuple[str, s.WindowSpec]:
        name = self._cursor.parse_name()
        self._cursor.expect("AS")
        return name, self.expressions.calls.parse_window()

    def _parse_group_item(self) -> s.GroupItem:
        cursor = self._cursor
        at = cursor.at
        if cursor.accept("GROUPING", "SETS"):
            return s.GroupItem(at, "SETS", cursor.parse_parenthesized(self._parse_grouping_set))
        if cursor.is_any("ROLLUP", "CUBE") and cursor.peek().key == "(":
            item_type = cursor.advance().key
            return s.GroupItem(at, item_type, cursor.parse_parenthesized(self._parse_grouping_set))
        if cursor.accept("(", ")"):
            return s.GroupItem(at, "SETS", ((),))
        return s.GroupItem(at, "PLAIN", ((self.expressions.parse_expression(),),))

    def _parse_grouping_set(self) -> tuple[s.Expr, ...]:
        if self._cursor.accept("(", ")"):
            return ()
        expr = self.expressions.parse_expression()
        return expr.args if isinstance(expr, s.Call) and expr.name == "ROW" else (expr,)


def _as_query(body: s.QueryBody | s.Query) -> s.Query:
    return body if isinstance(body, s.Query) else s.Query(body.at, body)

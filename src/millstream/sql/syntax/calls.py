"""Grammar of function calls: arguments and the clauses after them, such as FILTER and OVER.

Promises: WITHIN GROUP, FILTER and OVER belong to the call before them; tables and queries can be arguments.
Does not know: which functions exist."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.errors import SqlNotSupported
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.cursor import QUERY_STARTS, Cursor
from millstream.sql.syntax.special_calls import TIME_UNITS, TSI_UNITS, SpecialCallParser
from millstream.sql.syntax.type_names import TypeParser


class CallParser:
    """Parses calls, ORDER BY and window specifications."""

    __slots__ = ("_cursor", "_parse_expression", "_parse_operand", "_parse_query", "special")

    def __init__(
        self,
        cursor: Cursor,
        types: TypeParser,
        parse_expression: Callable[[], s.Expr],
        parse_operand: Callable[[], s.Expr],
        parse_query: Callable[[], s.Query],
    ) -> None:
        self.special = SpecialCallParser(cursor, types, parse_expression, parse_operand)
        self._cursor = cursor
        self._parse_expression = parse_expression
        self._parse_operand = parse_operand
        self._parse_query = parse_query

    def parse_call(self, at: int, path: tuple[str, ...]) -> s.Call:
        """Parse a call of the function at `path`, from its opening parenthesis on."""
        cursor = self._cursor
        name = path[-1].upper() if len(path) == 1 else path[-1]
        cursor.expect("(")
        special = self.special.parse_arguments(name, at) if len(path) == 1 else None
        if special is not None:
            cursor.expect(")")
            return self._parse_suffixes(special)
        distinct = cursor.accept("DISTINCT")
        cursor.accept("ALL")
        if cursor.accept("*", ")"):
            return self._parse_suffixes(s.Call(at, name, (), distinct, star=True))
        args = () if cursor.is_next(")") else cursor.parse_list(self._parse_argument)
        order = self.parse_order_by() if cursor.is_next("ORDER") else ()
        nulls = self._parse_null_treatment()
        cursor.expect(")")
        qualified = path if len(path) > 1 else ()
        return self._parse_suffixes(s.Call(at, name, args, distinct, order=order, nulls=nulls, path=qualified))

    # ------------------------------------------------------------------------------------------------------ arguments

    def _parse_argument(self) -> s.Expr:
        cursor = self._cursor
        token, following = cursor.token, cursor.peek()
        if token.type in ("word", "quoted") and following.key == "=>":
            name = cursor.parse_name(any_word=True)
            cursor.advance()
            return s.NamedArgument(token.start, name, self._parse_argument())
        if token.key == "TABLE":
            return self._parse_table_argument()
        if token.key == "MODEL" and following.type in ("word", "quoted"):
            cursor.advance()
            return s.ModelArgument(token.start, cursor.parse_path())
        if token.key in QUERY_STARTS:
            return s.TableArgument(token.start, s.DerivedTable(token.start, self._parse_query()))
        if token.key == "DEFAULT" and following.key in (",", ")"):
            cursor.advance()
            return s.Symbol(token.start, "DEFAULT")
        if following.key == "," and (token.key in TIME_UNITS or token.key in TSI_UNITS):
            cursor.advance()
            return s.Symbol(token.start, TSI_UNITS.get(token.key, token.key))
        return self._parse_expression()

    def _parse_table_argument(self) -> s.Expr:
        cursor = self._cursor
        at = cursor.advance().start
        table: s.TableName | s.DerivedTable
        if cursor.accept("("):
            table = s.DerivedTable(at, self._parse_query())
            cursor.expect(")")
        else:
            table = s.TableName(cursor.at, cursor.parse_path())
        partition: tuple[s.Expr, ...] = ()
        if cursor.accept("PARTITION", "BY"):
            if cursor.is_next("("):
                partition = cursor.parse_parenthesized(self._parse_expression)
            else:
                partition = (self._parse_expression(),)
        if cursor.is_next("ORDER"):
            message = "ORDER BY of a table argument is not supported"
            hint = "keep rows in the state of the function, and read them in order when a timer fires"
            raise SqlNotSupported(message, at=cursor.at, text=cursor.text, hint=hint)
        return s.TableArgument(at, table, partition)

    # --------------------------------------------------------------------------------------------- clauses after calls

    def _parse_suffixes(self, call: s.Call) -> s.Call:
        """Parse IGNORE NULLS, WITHIN GROUP, FILTER and OVER."""
        cursor = self._cursor
        order, condition, over, nulls = call.order, None, None, call.nulls or self._parse_null_treatment()
        if cursor.accept("WITHIN", "GROUP"):
            cursor.expect("(")
            order = self.parse_order_by()
            cursor.expect(")")
        if cursor.accept("FILTER", "("):
            cursor.expect("WHERE")
            condition = self._parse_expression()
            cursor.expect(")")
        if cursor.accept("OVER"):
            over = self.parse_window() if cursor.is_next("(") else s.WindowSpec(cursor.at, cursor.parse_name())
        return s.Call(call.at, call.name, call.args, call.distinct, condition, over, order, nulls, call.star, call.path)

    def _parse_null_treatment(self) -> str | None:
        for treatment in ("IGNORE", "RESPECT"):
            if self._cursor.accept(treatment, "NULLS"):
                return treatment
        return None

    def parse_order_by(self) -> tuple[s.OrderItem, ...]:
        """ORDER BY expression [ASC | DESC] [NULLS FIRST | LAST], ..."""
        self._cursor.expect("ORDER", "BY")
        return self._cursor.parse_list(self._parse_order_item)

    def _parse_order_item(self) -> s.OrderItem:
        cursor = self._cursor
        at, expr = cursor.at, self._parse_expression()
        ascending = cursor.accept_any("ASC", "DESC") != "DESC"
        nulls_first = cursor.expect_any("FIRST", "LAST") == "FIRST" if cursor.accept("NULLS") else None
        return s.OrderItem(at, expr, ascending, nulls_first)

    def parse_window(self) -> s.WindowSpec:
        """( [name] [PARTITION BY ...] [ORDER BY ...] [ROWS | RANGE ...] )."""
        cursor = self._cursor
        at = cursor.at
        cursor.expect("(")
        name = None
        if cursor.token.type in ("word", "quoted") and not cursor.is_any("PARTITION", "ORDER", "ROWS", "RANGE"):
            name = cursor.parse_name()
        partition: tuple[s.Expr, ...] = ()
        if cursor.accept("PARTITION", "BY"):
            partition = cursor.parse_list(self._parse_expression)
        order = self.parse_order_by() if cursor.is_next("ORDER") else ()
        rows, lower, upper = False, None, None
        if cursor.is_any("ROWS", "RANGE"):
            rows = cursor.advance().key == "ROWS"
            if cursor.accept("BETWEEN"):
                lower = self._parse_bound()
                cursor.expect("AND")
                upper = self._parse_bound()
            else:
                lower = self._parse_bound()
        cursor.expect(")")
        return s.WindowSpec(at, name, partition, order, rows, lower, upper)

    def _parse_bound(self) -> s.FrameBound:
        cursor = self._cursor
        at = cursor.at
        if cursor.accept("CURRENT", "ROW"):
            return s.FrameBound(at, "CURRENT")
        offset = None if cursor.accept("UNBOUNDED") else self._parse_operand()
        side = -1 if cursor.expect_any("PRECEDING", "FOLLOWING") == "PRECEDING" else 1
        return s.FrameBound(at, "UNBOUNDED" if offset is None else "OFFSET", side, offset)

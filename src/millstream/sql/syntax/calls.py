"""The grammar of calls: arguments, and what may stand behind them.

Promises: FILTER, WITHIN GROUP and OVER belong to their call; tables and queries can be arguments.
Does not know: which functions there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.special_calls import TSI, UNITS, SpecialCallGrammar


class CallGrammar(SpecialCallGrammar, ABC):
    """Calls."""

    @abstractmethod
    def query(self) -> s.Query:
        """A query; the grammar of queries says how."""

    @abstractmethod
    def is_query(self) -> bool:
        """Whether a query begins here."""

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
        if self.is_any(*UNITS, *TSI) and following.kind == "op" and following.text in (",", ")"):
            at = self.at
            return self.expression() if following.text == ")" else s.Symbol(at, self._symbol())
        return self.expression()

    def _symbol(self) -> str:
        key = self.advance().key
        return TSI.get(key, key)

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

"""Expression: a value computed from columns.

Promises: PyFlink's operators, methods and properties. An expression is a syntax tree that is bound when a table uses
it, so it has the semantics of the same SQL.
Does not know: tables."""

from __future__ import annotations

from typing import Any

from millstream.errors import InvalidArgumentType
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression.aggregates import Aggregates
from millstream.table.expression.bitmaps import Bitmaps
from millstream.table.expression.collections import Collections
from millstream.table.expression.conditions import Conditions
from millstream.table.expression.json import Json
from millstream.table.expression.numbers import Numbers
from millstream.table.expression.strings import Strings
from millstream.table.expression.terms import call, format_expression
from millstream.table.expression.times import Times


class Expression(Conditions, Aggregates, Numbers, Strings, Times, Collections, Bitmaps, Json):
    """A value that is computed from columns, literals and function calls.

    Expressions support Python's operators: arithmetic, comparison, and `&`, `|` and `~` for AND, OR and NOT. They are
    created by the functions of `millstream.table.expressions`.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> (col("price") * col("quantity")).alias("total")
        (price * quantity)
        >>> col("name").upper_case
        UPPER(name)

    """

    __slots__ = ()

    def _of(self, tree: s.Expr) -> Expression:
        return Expression(tree)

    # ---------------------------------------------------------------------------------------------------- operators

    def __abs__(self) -> Expression:
        return self._call("ABS", self)

    def __add__(self, other: Any) -> Expression:
        return self._call("$PLUS", self, other)

    def __radd__(self, other: Any) -> Expression:
        return self._call("$PLUS", other, self)

    def __sub__(self, other: Any) -> Expression:
        return self._call("-", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return self._call("-", other, self)

    def __mul__(self, other: Any) -> Expression:
        return self._call("*", self, other)

    def __rmul__(self, other: Any) -> Expression:
        return self._call("*", other, self)

    def __truediv__(self, other: Any) -> Expression:
        return self._call("/", self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return self._call("/", other, self)

    def __mod__(self, other: Any) -> Expression:
        return self._call("%", self, other)

    def __rmod__(self, other: Any) -> Expression:
        return self._call("%", other, self)

    def __pow__(self, other: Any) -> Expression:
        return self._call("POWER", self, other)

    def __rpow__(self, other: Any) -> Expression:
        return self._call("POWER", other, self)

    def __neg__(self, *args: Any) -> Expression:
        return self._call("NEGATE", self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._call("=", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._call("<>", self, other)

    def __lt__(self, other: Any) -> Expression:
        return self._call("<", self, other)

    def __le__(self, other: Any) -> Expression:
        return self._call("<=", self, other)

    def __gt__(self, other: Any) -> Expression:
        return self._call(">", self, other)

    def __ge__(self, other: Any) -> Expression:
        return self._call(">=", self, other)

    def __and__(self, other: Any) -> Expression:
        return self._call("AND", self, other)

    def __rand__(self, other: Any) -> Expression:
        return self._call("AND", other, self)

    def __or__(self, other: Any) -> Expression:
        return self._call("OR", self, other)

    def __ror__(self, other: Any) -> Expression:
        return self._call("OR", other, self)

    def __invert__(self) -> Expression:
        return self._call("NOT", self)

    def __getitem__(self, index: Any) -> Expression:
        return self.get(index)

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        msg = "an expression has no truth value in Python"
        raise InvalidArgumentType(msg, hint="combine conditions with & | ~, not with and, or, not")

    def __str__(self) -> str:
        return format_expression(self._node)

    def __repr__(self) -> str:
        return str(self)

    # ------------------------------------------------------------------------------------------ names, order, types

    def alias(self, name: str, *extra_names: str) -> Expression:
        """Name the result.

        Args:
            name: The name of the column.
            *extra_names: The names of further columns, if the expression has several.

        """
        renamed = Expression(self._node)
        renamed._aliases = (name, *extra_names)
        return renamed

    def as_argument(self, name: str) -> Expression:
        """Pass the expression to a function as a named argument.

        Args:
            name: The name of the parameter.

        """
        return self._of(s.NamedArgument(0, name, self._node))

    def _with_order(self, ascending: bool) -> Expression:
        sort_key = Expression(self._node)
        sort_key._order = ascending
        return sort_key

    asc = property(lambda self: self._with_order(True), doc="Ascending order, for `Table.order_by`.")
    desc = property(lambda self: self._with_order(False), doc="Descending order, for `Table.order_by`.")

    def cast(self, data_type: t.DataType) -> Expression:
        """Convert the value to another data type, like CAST; the query fails if a value cannot be converted.

        Args:
            data_type: The type of the result.

        """
        return self._of(s.Cast(0, self._node, data_type))

    def try_cast(self, data_type: t.DataType) -> Expression:
        """Convert the value to another data type, like TRY_CAST; the result is NULL if a value cannot be converted.

        Args:
            data_type: The type of the result.

        """
        return self._of(s.Cast(0, self._node, data_type, True))


def call_function(name: str, *args: Any) -> Expression:
    """Return the call of a built-in function."""
    return Expression(call(name, *args))

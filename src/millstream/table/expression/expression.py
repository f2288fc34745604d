"""Expression: a value computed from columns, written in Python.

Promises: PyFlink's operators, methods and properties; an expression is a piece of syntax tree, bound when a table uses
it, so it has the meaning of the same SQL.
Does not know: tables."""

from __future__ import annotations

from typing import Any

from millstream.errors import UserError
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression.aggregates import Aggregates
from millstream.table.expression.bitmaps import Bitmaps
from millstream.table.expression.collections import Collections
from millstream.table.expression.conditions import Conditions
from millstream.table.expression.json import Json
from millstream.table.expression.numbers import Numbers
from millstream.table.expression.strings import Strings
from millstream.table.expression.terms import call, text_of
from millstream.table.expression.times import Times


class Expression(Conditions, Aggregates, Numbers, Strings, Times, Collections, Bitmaps, Json):
    """A value computed from columns."""

    __slots__ = ()

    def _of(self, piece: s.Expr) -> Expression:
        return Expression(piece)

    # ---------------------------------------------------------------------------------------------------- operators

    def __abs__(self) -> Expression:
        return self._call("ABS", self)

    def __add__(self, other: Any) -> Expression:
        return self._call("+", self, other)

    def __radd__(self, other: Any) -> Expression:
        return self._call("+", other, self)

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
        msg = "an expression is neither true nor false"
        raise UserError(msg, hint="combine conditions with & | ~, not with and, or, not")

    def __str__(self) -> str:
        return text_of(self._node)

    def __repr__(self) -> str:
        return str(self)

    # ------------------------------------------------------------------------------------------ names, order, types

    def alias(self, name: str, *extra_names: str) -> Expression:
        """The same value under another name."""
        renamed = Expression(self._node)
        renamed._aliases = (name, *extra_names)
        return renamed

    def as_argument(self, name: str) -> Expression:
        """The value as a named argument."""
        return self._of(s.NamedArgument(0, name, self._node))

    def _ordered(self, ascending: bool) -> Expression:
        turned = Expression(self._node)
        turned._order = ascending
        return turned

    asc = property(lambda self: self._ordered(True), doc="In ascending order.")
    desc = property(lambda self: self._ordered(False), doc="In descending order.")

    def cast(self, data_type: t.DataType) -> Expression:
        """The value in another type."""
        return self._of(s.Cast(0, self._node, data_type))

    def try_cast(self, data_type: t.DataType) -> Expression:
        """The value in another type, NULL where it cannot be."""
        return self._of(s.Cast(0, self._node, data_type, True))


def made(name: str, *args: Any) -> Expression:
    """A function applied to values."""
    return Expression(call(name, *args))

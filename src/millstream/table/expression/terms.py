"""Terms: pieces of syntax tree in the hands of Python programs.

Promises: a value of Python becomes the literal that SQL has for it, or is refused; a term as text.
Does not know: which methods expressions have."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from millstream.errors import UserError
from millstream.sql.syntax import tree as s

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Term(ABC):
    """A piece of syntax tree, with the names and the order it was given; what every group of methods stands on."""

    __slots__ = ("_aliases", "_node", "_order")

    def __init__(self, j_expr_or_property_name: Any) -> None:
        given = j_expr_or_property_name
        self._node: s.Expr = s.Name(0, (given,)) if isinstance(given, str) else given
        self._aliases: tuple[str, ...] = ()
        self._order: bool | None = None

    @abstractmethod
    def _of(self, piece: s.Expr) -> Expression:
        """Another piece of syntax tree as an expression."""

    def _call(self, name: str, *args: Any) -> Expression:
        """A function applied to values."""
        return self._of(call(name, *args))


def node(value: Any) -> s.Expr:
    """A Python value or an expression as a piece of syntax tree."""
    if isinstance(value, Term):
        return value._node
    match value:
        case None | bool() | int() | float() | str() | bytes() | Decimal():
            return s.Literal(0, value)
        case datetime.datetime():
            shown = value.replace(tzinfo=None).isoformat(
                " ", "milliseconds" if value.microsecond % 1000 == 0 else "microseconds"
            )
            return s.Call(0, "TIMESTAMP LITERAL", (s.Literal(0, shown),))
        case datetime.date():
            return s.Call(0, "DATE LITERAL", (s.Literal(0, value.isoformat()),))
        case datetime.time():
            return s.Call(0, "TIME LITERAL", (s.Literal(0, value.isoformat()),))
        case datetime.timedelta():
            millis = value // datetime.timedelta(milliseconds=1)
            return s.IntervalLiteral(0, str(abs(millis) / 1000), "SECOND", None, millis < 0)
        case list() | tuple():
            return s.Call(0, "ARRAY VALUE", tuple(map(node, value)))
        case dict():
            return s.Call(0, "MAP VALUE", tuple(node(each) for pair in value.items() for each in pair))
    msg = f"{value!r} cannot be part of an expression"
    raise UserError(msg, hint="use col('name'), lit(value), or a value that SQL has a literal for")


def call(name: str, *args: Any) -> s.Call:
    """A function applied to values, or to pieces of syntax tree."""
    return s.Call(0, name, tuple(arg if isinstance(arg, s.Expr) else node(arg) for arg in args))


def symbol(word: str) -> s.Symbol:
    """A word that only a function understands."""
    return s.Symbol(0, word)


def applied(name: str, doc: str) -> property:
    """A property that applies a function to the term."""
    return property(lambda self: self._call(name, self), doc=doc)


def text_of(expression: s.Expr) -> str:
    """An expression as SQL, roughly."""
    match expression:
        case s.Name(parts=parts):
            return ".".join(parts)
        case s.Literal(value=value):
            return f"'{value}'" if isinstance(value, str) else str(value)
        case s.Call(name=name, args=args):
            inside = [text_of(arg) for arg in args]
            if len(inside) == 2 and not name.replace("_", "").replace("$", "").isalnum():
                return f"({inside[0]} {name} {inside[1]})"
            return f"{name}({', '.join(inside)})"
        case s.Cast(operand=operand, type=kind):
            return f"CAST({text_of(operand)} AS {kind})"
    return type(expression).__name__

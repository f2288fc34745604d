"""Terms: syntax trees that Python programs build.

Promises: a Python value becomes the SQL literal for it, or is refused. A term can be formatted as text.
Does not know: which methods expressions have."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from millstream.errors import InvalidArgumentType
from millstream.sql.syntax import tree as s
from millstream.times import MILLISECOND
from millstream.types.row import Row

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Term(ABC):
    """A syntax tree with aliases and a sort order: the base class of the method groups of `Expression`."""

    __slots__ = ("_aliases", "_node", "_order")

    def __init__(self, j_expr_or_property_name: Any) -> None:
        tree = j_expr_or_property_name
        self._node: s.Expr = s.Name(0, (tree,)) if isinstance(tree, str) else tree
        self._aliases: tuple[str, ...] = ()
        self._order: bool | None = None

    @abstractmethod
    def _of(self, tree: s.Expr) -> Expression:
        """Return an expression for a syntax tree."""

    def _call(self, name: str, *args: Any) -> Expression:
        """Return the call of a function."""
        return self._of(call(name, *args))


def to_node(value: Any) -> s.Expr:
    """Return the syntax tree of an expression or of a Python value."""
    if isinstance(value, Term):
        return value._node
    match value:
        case None | bool() | int() | float() | str() | bytes() | Decimal():
            return s.Literal(0, value)
        case datetime.datetime():
            precision = "milliseconds" if value.microsecond % 1000 == 0 else "microseconds"
            text = value.replace(tzinfo=None).isoformat(" ", precision)
            return s.Call(0, "TIMESTAMP LITERAL", (s.Literal(0, text),))
        case datetime.date():
            return s.Call(0, "DATE LITERAL", (s.Literal(0, value.isoformat()),))
        case datetime.time():
            return s.Call(0, "TIME LITERAL", (s.Literal(0, value.isoformat()),))
        case datetime.timedelta():
            millis = value // MILLISECOND
            return s.IntervalLiteral(0, str(abs(millis) / 1000), "SECOND", None, millis < 0)
        case list() | tuple():
            return s.Call(0, "ARRAY VALUE", tuple(map(to_node, value)))
        case dict():
            return s.Call(0, "MAP VALUE", tuple(to_node(item) for entry in value.items() for item in entry))
    msg = f"{value!r} ({type(value).__name__}) cannot be converted to an expression"
    raise InvalidArgumentType(msg, hint="use col('name') for a column, or a value that SQL has a literal for")


def fields_of_row(value: Any) -> tuple[s.Expr, ...]:
    """Return the syntax trees of the fields of a row, which is a call of ROW or a Python value."""
    node = to_node(value) if isinstance(value, Term) else None
    if isinstance(node, s.Call) and node.name == "ROW":
        return node.args
    if node is not None:
        return (node,)
    return tuple(map(to_node, value)) if isinstance(value, Row | tuple | list) else (to_node(value),)


def call(name: str, *args: Any) -> s.Call:
    """Return the call of a function with Python values or syntax trees as arguments."""
    return s.Call(0, name, tuple(arg if isinstance(arg, s.Expr) else to_node(arg) for arg in args))


def symbol(word: str) -> s.Symbol:
    """Create a keyword argument of a function, such as LEADING."""
    return s.Symbol(0, word)


def function_property(name: str, doc: str) -> property:
    """Return a property that calls a function with the term as its only argument."""
    return property(lambda self: self._call(name, self), doc=doc)


def format_expression(expression: s.Expr) -> str:
    """Format an expression similar to SQL, for people."""
    match expression:
        case s.Name(parts=parts):
            return ".".join(parts)
        case s.Literal(value=str(text)):
            return f"""'{text.replace("'", "''")}'"""
        case s.Literal(value=None):
            return "null"
        case s.Literal(value=bool(value)):
            return str(value).lower()
        case s.Literal(value=value):
            return str(value)
        case s.Call(name=name, args=args):
            arguments = [format_expression(arg) for arg in args]
            name = "+" if name == "$PLUS" else name
            is_operator = not name.replace("_", "").replace("$", "").isalnum()
            if len(arguments) == 2 and is_operator:
                return f"({arguments[0]} {name} {arguments[1]})"
            return f"{name}({', '.join(arguments)})"
        case s.Cast(operand=operand, type=data_type):
            return f"CAST({format_expression(operand)} AS {data_type})"
    return type(expression).__name__

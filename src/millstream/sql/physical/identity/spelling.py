"""Expressions, calls and columns in words that stay the same from release to release.

Promises: equal expressions over equal columns have equal words, and words never change: operators are found by them in
savepoints. What people read is spelled elsewhere.
Does not know: plans."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from millstream.sql.expressions.fields import FieldRef
from millstream.sql.expressions.nodes import AggregateCall, Apply, Choose, Convert, Expression, Lit, Ref, Sym, UserCall
from millstream.sql.types import data_types as t

_MOST = 160


def spelled(expression: Expression, columns: Sequence[str]) -> str:
    """An expression, with the words of columns in place of their positions."""
    match expression:
        case Ref(index=index):
            return columns[index]
        case Lit(value=value, type=kind):
            return (
                f"'{value}'" if isinstance(value, str) else f"{value}" if value is not None else f"NULL {kind_of(kind)}"
            )
        case Sym(word=word):
            return word
        case Convert(operand=operand, type=kind, safe=safe):
            return bounded(f"{'TRY_' if safe else ''}CAST({spelled(operand, columns)} AS {kind_of(kind)})")
        case FieldRef(operand=operand, index=index):
            return bounded(f"{spelled(operand, columns)}[{index}]")
        case Apply(function=name):
            head = name
        case UserCall(name=name):
            head = name
        case Choose():
            head = "CASE"
        case _:
            head = type(expression).__name__
    parts = [spelled(each, columns) for each in expression.children()]
    if len(parts) == 2 and not any(map(str.isalnum, head)):
        return bounded(f"({parts[0]} {head} {parts[1]})")
    return bounded(f"{head}({', '.join(parts)})")


def called(call: AggregateCall, columns: Sequence[str]) -> str:
    """An aggregate call with the types of what it is given and of what it gives."""
    inside = ", ".join(f"{columns[i]} {kind_of(k)}" for i, k in zip(call.args, call.arg_types, strict=False)) or "*"
    tail = "" if call.filter is None else f" FILTER {columns[call.filter]}"
    tail += f" ORDER BY {ordered(call.order, columns)}" if call.order else ""
    tail += f" WITH {call.options}" if call.options else ""
    return bounded(f"{call.function}({'DISTINCT ' if call.distinct else ''}{inside}){tail} {kind_of(call.type)}")


def ordered(order: Iterable[tuple[int, bool, bool]], columns: Sequence[str]) -> str:
    """An order of rows."""
    return ", ".join(
        f"{columns[i]} {'ASC' if up else 'DESC'}{' NULLS FIRST' if first else ''}" for i, up, first in order
    )


def typed(places: Iterable[int], columns: Sequence[str], schema: t.RowType) -> str:
    """Some columns with their types."""
    return ", ".join(f"{columns[i]} {kind_of(schema.types[i])}" for i in places)


def kind_of(kind: t.DataType) -> str:
    """A type; whether it has NULL, and whether it is a time attribute, is all the same to state."""
    return str(t.plain(kind).nullable())


def bounded(text: str) -> str:
    """The text, or its beginning and a number that stands for all of it."""
    return text if len(text) <= _MOST else f"{text[: _MOST - 20]}... {digest(text)}"


def digest(text: str) -> str:
    """A number that stands for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def short(name: Sequence[str]) -> str:
    """A table's name, without the catalog and database that every session begins with."""
    parts = list(name)
    return ".".join(parts[2:] if parts[:2] == ["default_catalog", "default_database"] else parts)

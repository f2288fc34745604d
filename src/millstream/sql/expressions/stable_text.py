"""Texts of expressions, aggregate calls and columns that stay the same in all releases.

Promises: equal expressions over equal columns have the same text in every release: savepoints find operators by it.
Does not know: plans, or the output of EXPLAIN."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from millstream.sql.expressions.nodes import (
    AggregateCall,
    Apply,
    Choose,
    Convert,
    Expression,
    FieldRef,
    Lit,
    Ref,
    Sym,
    UserCall,
)
from millstream.sql.types import data_types as t

_MAX_LENGTH = 160


def format_expression(expression: Expression, columns: Sequence[str]) -> str:
    """Return an expression as text, with the texts of columns in place of their indexes."""
    match expression:
        case Ref(index=index):
            return columns[index]
        case Lit(value=value, type=data_type):
            if value is None:
                return f"NULL {format_type(data_type)}"
            return f"'{value}'" if isinstance(value, str) else f"{value}"
        case Sym(word=word):
            return word
        case Convert(operand=operand, type=data_type, safe=safe):
            return shorten(
                f"{'TRY_' if safe else ''}CAST({format_expression(operand, columns)} AS {format_type(data_type)})"
            )
        case FieldRef(operand=operand, index=index):
            return shorten(f"{format_expression(operand, columns)}[{index}]")
        case Apply(function=name):
            head = name
        case UserCall(name=name):
            head = name
        case Choose():
            head = "CASE"
        case _:
            head = type(expression).__name__
    parts = [format_expression(child, columns) for child in expression.children()]
    if len(parts) == 2 and not any(map(str.isalnum, head)):
        return shorten(f"({parts[0]} {head} {parts[1]})")
    return shorten(f"{head}({', '.join(parts)})")


def format_call(call: AggregateCall, columns: Sequence[str]) -> str:
    """Return an aggregate call as text, with the types of its arguments and its result."""
    inside = (
        ", ".join(
            f"{columns[i]} {format_type(data_type)}" for i, data_type in zip(call.args, call.arg_types, strict=False)
        )
        or "*"
    )
    tail = "" if call.filter is None else f" FILTER {columns[call.filter]}"
    tail += f" ORDER BY {format_order(call.order, columns)}" if call.order else ""
    tail += f" WITH {call.options}" if call.options else ""
    return shorten(f"{call.function}({'DISTINCT ' if call.distinct else ''}{inside}){tail} {format_type(call.type)}")


def format_order(order: Iterable[tuple[int, bool, bool]], columns: Sequence[str]) -> str:
    """Return a sort order as text."""
    return ", ".join(
        f"{columns[i]} {'ASC' if up else 'DESC'}{' NULLS FIRST' if first else ''}" for i, up, first in order
    )


def format_columns(indexes: Iterable[int], columns: Sequence[str], schema: t.RowType) -> str:
    """Return some columns with their types as text."""
    return ", ".join(f"{columns[i]} {format_type(schema.types[i])}" for i in indexes)


def format_type(data_type: t.DataType) -> str:
    """Return a type as text, without nullability and time attribute, which state does not depend on."""
    return str(t.strip_time_attribute(data_type).nullable())


def shorten(text: str) -> str:
    """Return the text, or its beginning and a digest if it is long."""
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 20]}... {compute_digest(text)}"


def compute_digest(text: str) -> str:
    """Return the first digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def shorten_table_name(name: Sequence[str]) -> str:
    """Return the name of a table without the default catalog and database."""
    parts = list(name)
    return ".".join(parts[2:] if parts[:2] == ["default_catalog", "default_database"] else parts)

"""Columns of a table that are chosen from the fields of a stream, as in `from_data_stream(stream, col("a"))`.

Promises: as in Flink, the columns refer to fields by name if one of them is the name of a field or has an alias; then
fields can be reordered, left out and renamed. Otherwise they are new names for the fields, by position.
Does not know: streams, or how the columns are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.sql.errors import SqlValidationError
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression import Expression

_ATTRIBUTES = {"rowtime": t.ROWTIME, "proctime": t.PROCTIME}


@dataclass(frozen=True)
class StreamColumn:
    """A column: the field of the stream at `field`, or, if that is None, the time attribute `attribute`."""

    name: str
    field: int | None = None
    attribute: str | None = None


@dataclass(frozen=True)
class _Reference:
    """What an expression says: a name, perhaps an alias, and perhaps that it is a time attribute."""

    name: str
    alias: str | None
    attribute: str | None


def choose_columns(field_names: Sequence[str], is_atomic: bool, expressions: Sequence[Any]) -> list[StreamColumn]:
    """Return the columns that expressions choose from the fields of a stream.

    Raises:
        SqlValidationError: If an expression is no reference, if a field is missing, or if there are several rowtime or
            processing-time attributes.

    """
    references = [_read_reference(expression) for expression in expressions]
    for attribute in _ATTRIBUTES.values():
        if sum(reference.attribute == attribute for reference in references) > 1:
            message = f"a table has one {attribute.lower()} attribute at most"
            raise SqlValidationError(message)
    is_by_name = not is_atomic and any(
        reference.attribute is None and (reference.alias is not None or reference.name in field_names)
        for reference in references
    )
    if is_by_name:
        columns = _choose_by_name(field_names, references)
    else:
        columns = _choose_by_position(field_names, is_atomic, references)
    repeated = [name for name, count in Counter(column.name for column in columns).items() if count > 1]
    if repeated:
        message = f"the table would have several columns '{repeated[0]}'"
        raise SqlValidationError(message)
    return columns


def _read_reference(expression: Any) -> _Reference:
    if not isinstance(expression, Expression):
        return _Reference(str(expression), None, None)
    alias = expression._aliases[0] if expression._aliases else None
    match expression._node:
        case s.Name(parts=(name,)):
            return _Reference(name, alias, None)
        case s.FieldAccess(operand=s.Name(parts=(name,)), name=str(kind)) if kind in _ATTRIBUTES:
            return _Reference(name, alias, _ATTRIBUTES[kind])
    message = f"{expression} is no field of a stream"
    raise SqlValidationError(message, hint="use col(name), col(name).alias(new), col(name).rowtime, col(name).proctime")


def _choose_by_name(field_names: Sequence[str], references: Sequence[_Reference]) -> list[StreamColumn]:
    columns = []
    for reference in references:
        if reference.attribute is None and reference.name not in field_names:
            message = f"the stream has no field '{reference.name}'"
            raise SqlValidationError(message, hint=f"it has {', '.join(field_names)}")
        if reference.attribute == t.PROCTIME and reference.name in field_names:
            message = f"processing time cannot replace the field '{reference.name}'"
            raise SqlValidationError(message, hint="give the attribute another name")
        field = field_names.index(reference.name) if reference.attribute is None else None
        columns.append(StreamColumn(reference.alias or reference.name, field, reference.attribute))
    return columns


def _choose_by_position(
    field_names: Sequence[str], is_atomic: bool, references: Sequence[_Reference]
) -> list[StreamColumn]:
    """Return the columns: a rowtime attribute replaces the field at its position, or is appended to the fields."""
    fields_left = iter(range(len(field_names)))
    columns = []
    for position, reference in enumerate(references):
        field = None if reference.attribute == t.PROCTIME else next(fields_left, None)
        if reference.attribute == t.PROCTIME and position < len(field_names) and not is_atomic:
            message = f"processing time '{reference.name}' is at the position of a field of the stream"
            raise SqlValidationError(message, hint="move it after the names of all fields")
        if reference.attribute is None and field is None:
            names = sum(other.attribute is None for other in references)
            message = f"there are {names} names, but the stream has only {len(field_names)} fields"
            raise SqlValidationError(message)
        name = reference.alias or reference.name
        columns.append(StreamColumn(name, field if reference.attribute is None else None, reference.attribute))
    return columns

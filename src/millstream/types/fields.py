"""A field of a record, whatever the record is.

Promises: one rule for rows, dicts, tuples, named tuples, dataclasses and objects: by name or by position.
Does not know: column batches; vectorised operators read the name themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.errors import UserError
from millstream.types.row import Row


class NoSuchField(UserError, KeyError):
    """A record was asked for a field that it does not have."""

    def __init__(self, field: str | int, record: object) -> None:
        self.field, self.record = field, record
        super().__init__(f"no field {field!r} in the record {record!r}")

    __str__ = UserError.__str__


def field_of(record: Any, field: str | int) -> Any:
    """The value of a field, by name or by position."""
    try:
        if isinstance(field, int) or isinstance(record, (Row, Mapping)):
            return record[field]
        return getattr(record, field)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise NoSuchField(field, record) from error

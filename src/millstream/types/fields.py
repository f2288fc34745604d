"""Access to a field of a record, independent of the class of the record.

Promises: one rule for rows, dicts, tuples, named tuples, dataclasses and other objects: by name or by index.
Does not know: column batches. Vectorized operators read columns by name themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.errors import UserError
from millstream.types.row import Row


class NoSuchField(UserError, KeyError):
    """A record does not have the requested field."""

    def __init__(self, field: str | int, record: object) -> None:
        self.field, self.record = field, record
        super().__init__(f"the record {record!r} has no field {field!r}")

    __str__ = UserError.__str__


def read_field(record: Any, field: str | int) -> Any:
    """Return the value of a field, by name or by index.

    Raises:
        NoSuchField: If the record has no such field.

    """
    try:
        if isinstance(field, int) or isinstance(record, (Row, Mapping)):
            return record[field]
        return getattr(record, field)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise NoSuchField(field, record) from error

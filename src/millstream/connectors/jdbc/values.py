"""Conversion of records to the parameters of a statement.

Promises: every record has as many values as the statement has placeholders, in types that psycopg and COPY accept.
Does not know: statements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from millstream.errors import UserError
from millstream.times import Instant, to_utc_datetime
from millstream.types.row import Row, RowKind

_SINGLE = (str, bytes, int, float, bool)


class WrongWidth(UserError):
    """A record with more or fewer fields than the statement has placeholders."""

    def __init__(self, record: object, expected: int, actual: int) -> None:
        self.record, self.expected, self.actual = record, expected, actual
        super().__init__(
            f"the record {record!r} has {actual} fields, the statement has {expected} placeholders",
            hint="map the stream to rows with one field for each placeholder or column, in order",
        )


class NeedsKeys(UserError):
    """An update or deletion reached a sink that can only insert."""

    hint = "set the key fields of the table, so that the sink can update and delete"

    def __init__(self, record: object, row_kind: RowKind) -> None:
        self.record, self.row_kind = record, row_kind
        super().__init__(f"the record {record!r} is a {row_kind}, and the sink can only insert")


def parameters(records: Sequence[Any], width: int) -> list[Sequence[Any]]:
    """Return the values of each record."""
    rows: list[Sequence[Any]] = []
    for record in records:
        values: Sequence[Any]
        if isinstance(record, Row):
            values = record._values
        elif isinstance(record, _SINGLE) or record is None:
            values = (record,)
        else:
            values = tuple(record)
        if len(values) != width:
            raise WrongWidth(record, width, len(values))
        rows.append(values)
    special = {type(value) for values in rows for value in values} & _CONVERTERS.keys()
    if not special:
        return rows
    return [[_CONVERTERS[type(v)](v) if type(v) in special else v for v in values] for values in rows]


def deletions(records: Sequence[Any]) -> list[bool]:
    """Return a mask of the records that delete the row of their key: deletions, and the old rows of updates."""
    return [
        isinstance(record, Row) and record._row_kind in (RowKind.DELETE, RowKind.UPDATE_BEFORE) for record in records
    ]


def check_insert_only(records: Sequence[Any]) -> None:
    """Raise `NeedsKeys` for a record that is not an insertion."""
    for record in records:
        if isinstance(record, Row) and record._row_kind is not RowKind.INSERT:
            raise NeedsKeys(record, record._row_kind)


def _json(value: Any) -> str:
    return json.dumps(value.as_dict(True) if isinstance(value, Row) else value, default=str)


_CONVERTERS = {Instant: to_utc_datetime, dict: _json, Row: _json}

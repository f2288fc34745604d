"""Changelog messages of Maxwell for MySQL tables: a row, and the old values of changed columns.

Promises: the results of Flink's maxwell-json.
Does not know: Maxwell's other outputs."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.formats.changelog import (
    INSTANT,
    SHARED_OPTIONS,
    TEXT,
    TEXTS,
    BadEnvelope,
    Change,
    ChangelogFormat,
    Metadata,
    object_of,
)
from millstream.types.row import RowKind

OPTIONS: tuple[ConfigOption[Any], ...] = SHARED_OPTIONS


class MaxwellJson(ChangelogFormat):
    """The format `maxwell-json`: data, old and type."""

    name = "maxwell-json"
    options = OPTIONS
    readable = MappingProxyType(
        {
            "database": Metadata(("database",), TEXT),
            "table": Metadata(("table",), TEXT),
            "primary-key-columns": Metadata(("primary_key_columns",), TEXTS),
            "ingestion-timestamp": Metadata(("ts",), INSTANT),
        }
    )

    def _changes(self, message: dict[str, Any]) -> Iterator[Change]:
        operation, data = message.get("type"), message.get("data")
        if operation == "insert":
            yield RowKind.INSERT, self._row(data)
        elif operation == "update":
            after = self._row(data)
            yield RowKind.UPDATE_BEFORE, self._old_row(object_of(message.get("old")), after)
            yield RowKind.UPDATE_AFTER, after
        elif operation == "delete":
            yield RowKind.DELETE, self._row(data)
        else:
            message_ = f'unknown "type" value {operation!r}'
            raise BadEnvelope(message_)

    def _message(self, row: str, added: bool) -> str:
        return f'{{"data":{row},"type":"{"insert" if added else "delete"}"}}'

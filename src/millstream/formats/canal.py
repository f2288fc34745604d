"""Changelog messages of Canal for MySQL tables: rows, and the old values of changed columns.

Promises: the results of Flink's canal-json.
Does not know: Canal's other encodings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
    array_of,
    object_of,
)
from millstream.formats.format_types import FormatType, TypeRoot
from millstream.types.row import RowKind

DATABASE_INCLUDE = ConfigOption(
    "database.include", None, "A regular expression of the databases whose changes are read.", str
)
TABLE_INCLUDE = ConfigOption("table.include", None, "A regular expression of the tables whose changes are read.", str)
OPTIONS: tuple[ConfigOption[Any], ...] = (DATABASE_INCLUDE, TABLE_INCLUDE, *SHARED_OPTIONS)


class CanalJson(ChangelogFormat):
    """The format `canal-json`: data, old and type; one message can change several rows."""

    name = "canal-json"
    options = OPTIONS
    readable = MappingProxyType(
        {
            "database": Metadata(("database",), TEXT),
            "table": Metadata(("table",), TEXT),
            "sql-type": Metadata(("sqlType",), FormatType(TypeRoot.MAP, children=(TEXT, FormatType(TypeRoot.INT)))),
            "pk-names": Metadata(("pkNames",), TEXTS),
            "ingestion-timestamp": Metadata(("ts",), INSTANT),
            "event-timestamp": Metadata(("es",), INSTANT),
        }
    )

    def __init__(self, data_type: FormatType, options: Mapping[str, Any], metadata: Sequence[str] = ()) -> None:
        super().__init__(data_type, options, metadata)
        database, table = self._settings.get(DATABASE_INCLUDE), self._settings.get(TABLE_INCLUDE)
        self._database = None if database is None else re.compile(database)
        self._table = None if table is None else re.compile(table)

    def _changes(self, message: dict[str, Any]) -> Iterator[Change]:
        for pattern, name in ((self._database, "database"), (self._table, "table")):
            if pattern is not None and not isinstance(message.get(name), str):
                message_ = f"the message does not name its {name}"
                raise BadEnvelope(message_)
            if pattern is not None and not pattern.fullmatch(message[name]):
                return
        operation, data = message.get("type"), message.get("data")
        if operation == "INSERT":
            yield from ((RowKind.INSERT, self._row(row)) for row in array_of(data))
        elif operation == "UPDATE":
            for new, old in zip(array_of(data), array_of(message.get("old")), strict=True):
                after = self._row(new)
                yield RowKind.UPDATE_BEFORE, self._old_row(object_of(old), after)
                yield RowKind.UPDATE_AFTER, after
        elif operation == "DELETE":
            yield from ((RowKind.DELETE, self._row(row)) for row in array_of(data))
        elif operation != "CREATE":
            message_ = f'unknown "type" value {operation!r}'
            raise BadEnvelope(message_)

    def _message(self, row: str, added: bool) -> str:
        return f'{{"data":[{row}],"type":"{"INSERT" if added else "DELETE"}"}}'

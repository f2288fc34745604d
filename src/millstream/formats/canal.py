"""Canal's messages about changes of MySQL tables: rows, and the old values of what changed.

Promises: what Flink's canal-json reads and writes.
Does not know: Canal's other encodings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.formats.changelog import (
    MOMENT,
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
from millstream.formats.shapes import Kind, Shape
from millstream.types.row import RowKind

DATABASE_INCLUDE = ConfigOption("database.include", None, "A pattern of the databases whose changes are read.", str)
TABLE_INCLUDE = ConfigOption("table.include", None, "A pattern of the tables whose changes are read.", str)
OPTIONS: tuple[ConfigOption[Any], ...] = (DATABASE_INCLUDE, TABLE_INCLUDE, *SHARED_OPTIONS)


class CanalJson(ChangelogFormat):
    """Flink's `canal-json`: data, old and type; one message may change several rows."""

    name = "canal-json"
    options = OPTIONS
    readable = MappingProxyType(
        {
            "database": Metadata(("database",), TEXT),
            "table": Metadata(("table",), TEXT),
            "sql-type": Metadata(("sqlType",), Shape(Kind.MAP, children=(TEXT, Shape(Kind.INT)))),
            "pk-names": Metadata(("pkNames",), TEXTS),
            "ingestion-timestamp": Metadata(("ts",), MOMENT),
            "event-timestamp": Metadata(("es",), MOMENT),
        }
    )

    def __init__(self, shape: Shape, options: Mapping[str, Any], metadata: Sequence[str] = ()) -> None:
        super().__init__(shape, options, metadata)
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
        kind, data = message.get("type"), message.get("data")
        if kind == "INSERT":
            yield from ((RowKind.INSERT, self._row(row)) for row in array_of(data))
        elif kind == "UPDATE":
            for new, old in zip(array_of(data), array_of(message.get("old")), strict=True):
                after = self._row(new)
                yield RowKind.UPDATE_BEFORE, self._old_row(object_of(old), after)
                yield RowKind.UPDATE_AFTER, after
        elif kind == "DELETE":
            yield from ((RowKind.DELETE, self._row(row)) for row in array_of(data))
        elif kind != "CREATE":
            message_ = f'unknown "type" value {kind!r}'
            raise BadEnvelope(message_)

    def _message(self, row: str, added: bool) -> str:
        return f'{{"data":[{row}],"type":"{"INSERT" if added else "DELETE"}"}}'

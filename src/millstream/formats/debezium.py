"""Changelog messages of Debezium: the row before, the row after, and the operation.

Promises: the results of Flink's debezium-json.
Does not know: Debezium's other encodings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.formats.changelog import (
    INSTANT,
    SHARED_OPTIONS,
    TEXT,
    BadEnvelope,
    Change,
    ChangelogFormat,
    Metadata,
    object_of,
)
from millstream.formats.format_types import FormatType, TypeRoot
from millstream.types.row import Row, RowKind

SCHEMA_INCLUDE = ConfigOption(
    "schema-include", False, "Whether messages contain the Debezium schema beside the payload.", bool
)
OPTIONS: tuple[ConfigOption[Any], ...] = (SCHEMA_INCLUDE, *SHARED_OPTIONS)


class DebeziumJson(ChangelogFormat):
    """The format `debezium-json`: before, after and op."""

    name = "debezium-json"
    options = OPTIONS
    readable = MappingProxyType(
        {
            "schema": Metadata(("schema",), TEXT),
            "ingestion-timestamp": Metadata(("ts_ms",), INSTANT),
            "source.timestamp": Metadata(("source", "ts_ms"), INSTANT),
            "source.database": Metadata(("source", "db"), TEXT),
            "source.schema": Metadata(("source", "schema"), TEXT),
            "source.table": Metadata(("source", "table"), TEXT),
            "source.properties": Metadata(("source",), FormatType(TypeRoot.MAP, children=(TEXT, TEXT))),
        }
    )

    def _with_metadata(self, rows: Sequence[Row], message: dict[str, Any]) -> list[Row]:
        """Unwrap the payload of a message with a schema."""
        if self._settings.get(SCHEMA_INCLUDE):
            message = {**object_of(message.get("payload")), "schema": message.get("schema")}
        return super()._with_metadata(rows, message)

    def _changes(self, message: dict[str, Any]) -> Iterator[Change]:
        payload = object_of(message.get("payload")) if self._settings.get(SCHEMA_INCLUDE) else message
        before, after, op = payload.get("before"), payload.get("after"), payload.get("op")
        if op in ("c", "r"):
            yield RowKind.INSERT, self._image(after, "after", op)
        elif op == "u":
            yield RowKind.UPDATE_BEFORE, self._image(before, "before", op)
            yield RowKind.UPDATE_AFTER, self._image(after, "after", op)
        elif op == "d":
            yield RowKind.DELETE, self._image(before, "before", op)
        else:
            message_ = f'unknown "op" value {op!r}'
            raise BadEnvelope(message_)

    def _image(self, data: Any, name: str, op: str) -> Row:
        if data is None:
            message = (
                f'the "{name}" field of a message with op {op!r} is null (for Postgres: is REPLICA IDENTITY FULL?)'
            )
            raise BadEnvelope(message)
        return self._row(data)

    def _message(self, row: str, added: bool) -> str:
        before, after, op = ("null", row, "c") if added else (row, "null", "d")
        if self._drops_nulls:
            return f'{{"after":{after},"op":"{op}"}}' if added else f'{{"before":{before},"op":"{op}"}}'
        return f'{{"before":{before},"after":{after},"op":"{op}"}}'

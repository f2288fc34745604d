"""Messages of Kafka as rows of a table, and rows as messages.

Promises: columns come from the value, the key, what the format tells beside its records, and the message itself; with
`upserts`, a message without a value takes the row of its key away. What is written has the key's and the value's
columns, and the timestamp and headers that columns hold.
Does not know: options, brokers."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from millstream.connector.sink import SinkWriter, WriterContext
from millstream.connectors.kafka.messages import Messages
from millstream.connectors.kafka.records import FormattedMessages, KafkaRecord
from millstream.connectors.kafka.serializer import KafkaRecordSerializationSchema
from millstream.connectors.kafka.sink import KafkaSink
from millstream.formats import BadRecord, Decoded, Format
from millstream.sql.columns import row_type_info
from millstream.sql.types import data_types as t
from millstream.types.row import Row, RowKind
from millstream.types.type_information import TypeInformation

_MILLISECOND = datetime.timedelta(milliseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

METADATA: Mapping[str, t.DataType] = {
    "topic": t.STRING,
    "partition": t.INT,
    "headers": t.MapType(t.STRING, t.BYTES),
    "leader-epoch": t.INT,
    "offset": t.BIGINT,
    "timestamp": t.LocalZonedTimestampType(3),
    "timestamp-type": t.STRING,
}
WRITABLE = ("headers", "timestamp")

_TOLD: dict[str, Callable[[KafkaRecord], Any]] = {
    "topic": lambda record: record.topic,
    "partition": lambda record: record.partition,
    "headers": lambda record: dict(record.headers),
    "leader-epoch": lambda record: record.leader_epoch,
    "offset": lambda record: record.offset,
    "timestamp": lambda record: record.timestamp,
    "timestamp-type": lambda record: record.timestamp_type,
}


class TableMessages(FormattedMessages):
    """Rows of `schema`. `key` and `value` pair a format with the places its fields have in a row; `told` are places of
    what messages tell beside key and value."""

    def __init__(
        self,
        schema: t.RowType,
        value: tuple[Format, tuple[int, ...]],
        key: tuple[Format, tuple[int, ...]] | None,
        told: tuple[tuple[str, int], ...],
        *,
        upserts: bool = False,
    ) -> None:
        self._schema, self._value, self._key, self._told, self._upserts = schema, value, key, told, upserts
        self.format = value[0]
        self._names = list(schema.names)

    def get_produced_type(self) -> TypeInformation:
        """Rows of the table."""
        return row_type_info(self._schema)

    def decode(self, records: Sequence[KafkaRecord]) -> Decoded:
        """As FormattedMessages promises."""
        form, places = self._value
        decoded = form.decode([record.value for record in records])
        errors = {bad.index: bad for bad in decoded.errors}
        found: list[tuple[int, RowKind, Sequence[Any]]] = [
            (decoded.origin_of(number), row._row_kind, row._values)
            for number, row in enumerate(decoded.rows(form.type_info))
        ]
        if self._upserts:
            gone = [(index, RowKind.DELETE, ()) for index, record in enumerate(records) if record.value is None]
            found = sorted([*found, *gone], key=lambda entry: entry[0])
        keys = self._keys(records, errors)
        told = [(_TOLD[name], place) for name, place in self._told]
        width, own = len(self._schema), () if self._key is None else self._key[1]
        values: list[Row] = []
        origins: list[int] = []
        for index, kind, cells in found:
            if index in errors:
                continue
            row: list[Any] = [None] * width
            for place, cell in zip(own, keys.get(index, ()), strict=False):
                row[place] = cell
            for place, cell in zip(places, cells, strict=False):
                row[place] = cell
            for tell, place in told:
                row[place] = tell(records[index])
            values.append(Row._from(self._names, row, kind))
            origins.append(index)
        return Decoded(values, origins, tuple(errors[index] for index in sorted(errors)))

    def _keys(self, records: Sequence[KafkaRecord], errors: dict[int, BadRecord]) -> dict[int, Sequence[Any]]:
        """The fields of the keys that could be read."""
        if self._key is None:
            return {}
        form = self._key[0]
        decoded = form.decode([record.key for record in records])
        errors.update({bad.index: bad for bad in decoded.errors if bad.index not in errors})
        found = {decoded.origin_of(n): row._values for n, row in enumerate(decoded.rows(form.type_info))}
        if self._upserts:
            for index, record in enumerate(records):
                if index not in found and index not in errors:
                    errors[index] = BadRecord(index, record.value or b"", "the message has no key")
        return found


# ----------------------------------------------------------------------------------------------------------- writing


@dataclass(frozen=True)
class HeadersAt:
    """The headers that a column holds."""

    place: int

    def __call__(self, row: Row) -> list[tuple[str, bytes | None]]:
        """Pairs of name and bytes."""
        found = row._values[self.place]
        return [] if found is None else list(found.items())


@dataclass(frozen=True)
class TableSerializer(KafkaRecordSerializationSchema):
    """Rows as messages. `spread` is default, fixed (a subtask has one partition) or round-robin; with `last_of`, only
    the last row of each key of a block is sent."""

    time_at: int | None = None
    spread: str = "default"
    last_of: tuple[int, ...] = ()
    subtask: int = 0

    @property
    def columnar(self) -> bool:
        """Rows are written one by one."""
        return False

    def messages(
        self,
        values: Any,
        timestamps: Sequence[int | None] | np.ndarray | None,
        partitions_of: Callable[[str], list[int]],
    ) -> list[Messages]:
        """As the serializer promises; the timestamp is the column's, or that of sending."""
        if self.last_of:
            last = {tuple(row._values[i] for i in self.last_of): n for n, row in enumerate(values)}
            values = [values[n] for n in sorted(last.values())]
        times = None
        if self.time_at is not None:
            times = [_millis(row._values[self.time_at]) for row in values]
        made = super().messages(values, times, partitions_of)
        return made if self.spread == "default" else [self._spread(each, partitions_of) for each in made]

    def _spread(self, made: Messages, partitions_of: Callable[[str], list[int]]) -> Messages:
        known = np.array(partitions_of(made.topic), np.int32)
        steps = np.arange(len(made)) if self.spread == "round-robin" else np.zeros(len(made), np.int64)
        return replace(made, partitions=known[(self.subtask + steps) % len(known)])


def _millis(value: datetime.datetime | None) -> int:
    return 0 if value is None else (value - _EPOCH) // _MILLISECOND


@dataclass(frozen=True)
class TableKafkaSink(KafkaSink):
    """A Kafka sink whose serializer knows which subtask it serves."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """As KafkaSink promises."""
        serializer = self.serializer
        if isinstance(serializer, TableSerializer):
            serializer = replace(serializer, subtask=context.subtask)
        plain = KafkaSink(self.servers, serializer, self.delivery, self.prefix, self.staging, self.properties)
        return plain.create_writer(context)

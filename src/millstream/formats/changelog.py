"""Changelogs as JSON: what debezium, canal and maxwell have in common. One message can contain several changes.

Promises: a message is decoded as a whole or is a bad record; rows have their row kind; tombstones have no rows.
Does not know: the envelopes; each format has its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.formats import texts
from millstream.formats.contract import BadFormat, BadRecord, Decoded, Format, UnencodableRecord, reason_of
from millstream.formats.format_types import FormatType, TypeRoot
from millstream.formats.json import FAIL_ON_MISSING_FIELD, reader_of, writer_of
from millstream.formats.json_reader import REFUSED, JsonReader, parse
from millstream.formats.options import (
    DECIMAL_AS_PLAIN_NUMBER,
    IGNORE_NULL_FIELDS,
    IGNORE_PARSE_ERRORS,
    MAP_NULL_KEY_LITERAL,
    MAP_NULL_KEY_MODE,
    TIMESTAMP_FORMAT,
    Settings,
)
from millstream.times import Instant
from millstream.types.factory import RowTypeInfo
from millstream.types.row import Row, RowKind

SHARED_OPTIONS: tuple[ConfigOption[Any], ...] = (
    IGNORE_PARSE_ERRORS,
    TIMESTAMP_FORMAT,
    MAP_NULL_KEY_MODE,
    MAP_NULL_KEY_LITERAL,
    DECIMAL_AS_PLAIN_NUMBER,
    IGNORE_NULL_FIELDS,
)

Change = tuple[RowKind, Any]


class BadEnvelope(ValueError):
    """A message does not describe a change."""


@dataclass(frozen=True)
class Metadata:
    """A metadata field: its path in the message, and its type."""

    path: tuple[str, ...]
    data_type: FormatType

    def reader(self) -> Callable[[Any], Any]:
        """Return the converter of the field; timestamps are milliseconds since 1970."""
        if self.data_type.root is TypeRoot.TIMESTAMP_LTZ:
            return lambda value: None if value is None else Instant.of_epoch_milli(int(value))
        return JsonReader(
            FormatType(TypeRoot.ROW), style=texts.SQL, ignores_errors=False, fail_on_missing=False
        ).reader(self.data_type)


TEXT, INSTANT = FormatType(TypeRoot.STRING), FormatType(TypeRoot.TIMESTAMP_LTZ, 3)
TEXTS = FormatType(TypeRoot.ARRAY, children=(TEXT,))


def _member(message: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        message = message.get(name) if isinstance(message, dict) else None
    return message


class ChangelogFormat(Format):
    """Base of the changelog formats: a message is an object and contains changes."""

    changelog = True
    options: tuple[ConfigOption[Any], ...] = ()
    #: The metadata fields of a message, by Flink's names.
    readable: Mapping[str, Metadata] = MappingProxyType({})

    def __init__(self, data_type: FormatType, options: Mapping[str, Any], metadata: Sequence[str] = ()) -> None:
        self._options, self._metadata = dict(options), tuple(metadata)
        self._settings = Settings(self.name, self.options, options)
        super().__init__(data_type, self._settings.on_error())
        if not isinstance(self.type_info, RowTypeInfo):
            message = f"the format {self.name} needs a row type, not {self.type_info}"
            raise BadFormat(message, hint="declare Types.ROW_NAMED([...], [...])")
        self._metadata_readers = [
            (self._metadata_field(name).path, self._metadata_field(name).reader()) for name in metadata
        ]
        if metadata:
            types = [self._metadata_field(name).data_type.type_info() for name in metadata]
            self._names = [*data_type.names, *metadata]
            self.type_info = RowTypeInfo([*self.type_info.field_types, *types], self._names)
        self._reader = reader_of(data_type, _Lenient(self._settings))
        self._writer = writer_of(data_type, self._settings)
        self._drops_nulls = bool(self._settings.get(IGNORE_NULL_FIELDS))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data_type, self._options, self._metadata)

    def _metadata_field(self, name: str) -> Metadata:
        if name not in self.readable:
            message = f"messages of {self.name} have no metadata field {name!r}"
            raise BadFormat(message, hint=f"they have {', '.join(self.readable)}")
        return self.readable[name]

    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """Decode messages to rows; a message of which a part cannot be decoded is a bad record."""
        values: list[Any] = []
        origins: list[int] = []
        errors: list[BadRecord] = []
        for index, data in enumerate(records):
            if not data:  # a tombstone
                continue
            try:
                message = object_of(parse(data))
                changes = [_with_row_kind(row_kind, row) for row_kind, row in self._changes(message)]
                if self._metadata_readers:
                    changes = self._with_metadata(changes, message)
            except REFUSED as problem:
                errors.append(BadRecord(index, bytes(data), reason_of(problem)))
                continue
            values += changes
            origins += [index] * len(changes)
        return Decoded(values, origins, tuple(errors))

    def _with_metadata(self, rows: Sequence[Row], message: dict[str, Any]) -> list[Row]:
        metadata = [read(_member(message, path)) for path, read in self._metadata_readers]
        return [Row._from(self._names, [*row, *metadata], row.get_row_kind()) for row in rows]

    @abstractmethod
    def _changes(self, message: dict[str, Any]) -> Iterator[Change]:
        """Return the changes of a message."""

    def _old_row(self, old: dict[str, Any], new: Row) -> Row:
        """Return the row before an update: fields that are not among the old values have not changed."""
        row = self._row(old)
        values = [new[index] if name not in old else row[index] for index, name in enumerate(self.data_type.names)]
        return Row._from(list(self.data_type.names), values)

    def _row(self, data: Any) -> Row:
        row: Row = self._reader.row(data)
        return row

    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """Encode rows as messages: UPDATE_BEFORE as a delete, UPDATE_AFTER as an insert."""
        encoded = []
        for value in values:
            row_kind = value.get_row_kind() if isinstance(value, Row) else RowKind.INSERT
            try:
                row = self._writer.row(value)
            except (*REFUSED, AttributeError) as problem:
                raise UnencodableRecord(self.name, value, str(problem)) from None
            added = row_kind in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            encoded.append(self._message(row, added).encode("utf-8", "replace"))
        return encoded

    @abstractmethod
    def _message(self, row: str, added: bool) -> str:
        """Return the message that inserts or deletes a row."""


class _Lenient(Settings):
    """The options of the envelope, for its rows: a missing field is null."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def get(self, option: ConfigOption[Any]) -> Any:
        """Return the value of the envelope's option, except for missing fields."""
        return False if option is FAIL_ON_MISSING_FIELD else self._settings.get(option)


def _with_row_kind(row_kind: RowKind, row: Any) -> Any:
    if not isinstance(row, Row):
        message = "the message contains no row"
        raise BadEnvelope(message)
    row.set_row_kind(row_kind)
    return row


def object_of(value: Any) -> dict[str, Any]:
    """Return the value if it is an object; else raise."""
    if not isinstance(value, dict):
        message = f"expected an object, got {value!r:.100}"
        raise BadEnvelope(message)
    return value


def array_of(value: Any) -> list[Any]:
    """Return the value if it is an array; else raise."""
    if not isinstance(value, list):
        message = f"expected an array of rows, got {value!r:.100}"
        raise BadEnvelope(message)
    return value

"""JSON: one object per record.

Promises: the results of Flink's json format, for every type and option. Batches of plain records without arrays and
maps are parsed by Arrow, with the same results.
Does not know: changelogs; the envelopes of debezium, canal and maxwell are formats of their own around this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as arrow_json

from millstream.config.configuration import ConfigOption
from millstream.formats.contract import BadRecord, Decoded, Format, UnencodableRecord, reason_of
from millstream.formats.format_types import FieldSelection, FormatType, TypeRoot
from millstream.formats.json_lines import JsonLinesParser
from millstream.formats.json_reader import REFUSED, JsonReader, NoObject, parse
from millstream.formats.json_writer import JsonWriter
from millstream.formats.options import (
    DECIMAL_AS_PLAIN_NUMBER,
    IGNORE_NULL_FIELDS,
    IGNORE_PARSE_ERRORS,
    MAP_NULL_KEY_LITERAL,
    MAP_NULL_KEY_MODE,
    TIMESTAMP_FORMAT,
    Settings,
)
from millstream.formats.vectors import array_of_texts, arrow_leaf, decode_in_pieces
from millstream.types.row import Row, RowKind

_OPENING, _CLOSING, _FEED = b"{}\n"

FAIL_ON_MISSING_FIELD = ConfigOption(
    "fail-on-missing-field",
    False,
    "Whether a record without one of the fields cannot be decoded. If false, the field is NULL.",
    bool,
)
JSON_PARSER_ENABLED = ConfigOption("decode.json-parser.enabled", True, "Ignored: there is only one decoder.", bool)
OPTIONS: tuple[ConfigOption[Any], ...] = (
    FAIL_ON_MISSING_FIELD,
    IGNORE_PARSE_ERRORS,
    TIMESTAMP_FORMAT,
    MAP_NULL_KEY_MODE,
    MAP_NULL_KEY_LITERAL,
    DECIMAL_AS_PLAIN_NUMBER,
    IGNORE_NULL_FIELDS,
    JSON_PARSER_ENABLED,
)


def reader_of(data_type: FormatType, settings: Settings) -> JsonReader:
    """Create a reader from the options."""
    return JsonReader(
        data_type,
        style=settings.get(TIMESTAMP_FORMAT),
        ignores_errors=bool(settings.get(IGNORE_PARSE_ERRORS)),
        fail_on_missing=bool(settings.get(FAIL_ON_MISSING_FIELD)),
    )


def writer_of(data_type: FormatType, settings: Settings) -> JsonWriter:
    """Create a writer from the options."""
    return JsonWriter(
        data_type,
        style=settings.get(TIMESTAMP_FORMAT),
        null_key_mode=settings.get(MAP_NULL_KEY_MODE),
        null_key=settings.get(MAP_NULL_KEY_LITERAL),
        plain_decimals=bool(settings.get(DECIMAL_AS_PLAIN_NUMBER)),
        drop_nulls=bool(settings.get(IGNORE_NULL_FIELDS)),
    )


class JsonFormat(Format):
    """The format `json`."""

    name = "json"

    def __init__(self, data_type: FormatType, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self._settings = Settings(self.name, OPTIONS, options)
        self._settings.without_effect(JSON_PARSER_ENABLED)
        super().__init__(data_type, self._settings.on_error())
        self._reader = reader_of(data_type, self._settings)
        self._writer = writer_of(data_type, self._settings)
        self._columns = _columns(data_type) if not self._settings.get(FAIL_ON_MISSING_FIELD) else None
        self._lines = JsonLinesParser(data_type, self._of_texts)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data_type, self._options)

    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """Decode objects, and arrays of objects, with Arrow where it has the same results."""
        if self._columns is None:
            return self._decode_singly(records)
        return decode_in_pieces(records, self._decode_together, self._decode_singly, self.type_info)

    def _decode_singly(self, records: Sequence[bytes | None]) -> Decoded:
        values: list[Any] = []
        origins: list[int] = []
        errors: list[BadRecord] = []
        for index, data in enumerate(records):
            if not data:
                continue
            try:
                rows = self._rows(parse(data))
            except REFUSED as problem:
                errors.append(BadRecord(index, bytes(data), reason_of(problem)))
                continue
            values += rows
            origins += [index] * len(rows)
        return Decoded(values, origins if len(values) != len(records) else None, tuple(errors))

    def _rows(self, value: Any) -> list[Any]:
        """Return the rows of a message: an array contains several, any other value is one."""
        members = value if type(value) is list else [value]
        rows = [self._reader.row(member) for member in members]
        if None in rows:
            raise NoObject(None)
        return rows

    def _decode_together(self, records: Sequence[bytes | None]) -> pa.Array | None:
        """Parse all records with Arrow; None if the row parser, which has Flink's rules, must parse some record."""
        # records that begin with {, end with } and have no line feeds, so there are as many lines as records
        if not all([data is not None and data[:1] == b"{" and data[-1:] == b"}" for data in records]):
            return None
        joined = b"\n".join(records)  # type: ignore[arg-type]
        feeds = np.flatnonzero(np.frombuffer(joined, dtype=np.uint8) == _FEED)
        return self._decode_text(joined, feeds) if len(feeds) == len(records) - 1 else None

    def decode_lines(self, text: bytes) -> pa.Array | None:
        """Decode text in which every line is one object."""
        if self._columns is None:
            return None
        characters = np.frombuffer(text, dtype=np.uint8)
        if text.endswith(b"\n"):
            characters = characters[:-1]
        feeds = np.flatnonzero(characters == _FEED)
        if (
            not len(characters)
            or characters[0] != _OPENING
            or characters[-1] != _CLOSING
            or not _between_objects(characters, feeds)
        ):
            return None
        return self._decode_text(text, feeds)

    def only(self, selection: FieldSelection) -> JsonFormat | None:
        """Return a format of some fields, if Arrow parses the records."""
        if self.data_type.declared is not None or self._columns is None or not selection:
            return None
        return JsonFormat(self.data_type.only(selection), self._options)

    def _decode_text(self, text: bytes, feeds: np.ndarray) -> pa.Array | None:
        """Decode text with one object per line; None if the row parser must decode it."""
        try:
            if not text.isascii():
                text.decode("utf-8")
            columns = self._lines.columns(text, feeds) or self._parse_lines(text, len(feeds) + 1)
            if columns is None:
                return None
            arrays = [
                self._column(child, column) for child, column in zip(self.data_type.children, columns, strict=True)
            ]
            return self.data_type.array_of(arrays, len(feeds) + 1)
        except (pa.ArrowException, *REFUSED):
            return None

    def _parse_lines(self, text: bytes, count: int) -> list[pa.Array] | None:
        """Parse lines with Arrow."""
        if (_has(text, b"aN") and b"NaN" in text) or (_has(text, b"In") and b"Inf" in text):
            return None
        options = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        table = arrow_json.read_json(pa.BufferReader(text), options, self._columns)
        return [column.combine_chunks() for column in table.columns] if table.num_rows == count else None

    def _of_texts(self, data_type: FormatType, read: pa.Array) -> pa.Array:
        """Convert strings to a type that Arrow does not parse."""
        return array_of_texts(data_type, read, self._reader.reader(data_type), self._settings.get(TIMESTAMP_FORMAT))

    def _column(self, data_type: FormatType, read: pa.Array) -> pa.Array:
        """Return columns as an array of the record type."""
        if data_type.root is not TypeRoot.ROW:
            return self._of_texts(data_type, read) if read.type == pa.string() and not arrow_leaf(data_type) else read
        columns = [self._column(child, read.field(index)) for index, child in enumerate(data_type.children)]
        fields = list(data_type.type_info().arrow_type)
        # the row kind follows the fields: null for an insert
        columns += [pa.nulls(len(read), field.type) for field in fields[len(columns) :]]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=read.is_null() if read.null_count else None)

    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """Encode each record as one object."""
        write, name = self._writer.row, self.name
        encoded = []
        for value in values:
            if isinstance(value, Row) and value.get_row_kind() is not RowKind.INSERT:
                raise UnencodableRecord(
                    name, value, "it is not an insert-only row", hint="use debezium-json, canal-json or maxwell-json"
                )
            try:
                encoded.append(write(value).encode("utf-8", "replace"))
            except (*REFUSED, AttributeError) as problem:
                raise UnencodableRecord(name, value, str(problem)) from None
        return encoded


def _between_objects(characters: np.ndarray, ends: np.ndarray) -> bool:
    """Whether an object ends before each line feed and another starts after it."""
    return bool((characters[ends - 1] == _CLOSING).all() and (characters[ends + 1] == _OPENING).all())


def _has(text: bytes, pair: bytes) -> bool:
    """Whether two bytes occur next to each other; ten times faster than a search for three bytes."""
    pair_value = np.frombuffer(pair, dtype=np.uint16)
    return any(
        bool((np.frombuffer(text, np.uint16, (len(text) - start) // 2, start) == pair_value).any()) for start in (0, 1)
    )


def _columns(data_type: FormatType) -> arrow_json.ParseOptions | None:
    """Return the Arrow type with which Arrow parses a field: scalars and rows by their types, all else as text; None if
    it cannot."""
    if data_type.root is not TypeRoot.ROW or not _is_without_collections(data_type):
        return None
    fields = [(name, _arrow_type(child)) for name, child in data_type.fields()]
    return arrow_json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")


def _is_without_collections(data_type: FormatType) -> bool:
    if data_type.root is TypeRoot.ROW:
        return bool(data_type.names) and all(map(_is_without_collections, data_type.children))
    return data_type.root not in (TypeRoot.ARRAY, TypeRoot.MAP, TypeRoot.ANY)


def _arrow_type(data_type: FormatType) -> pa.DataType:
    if data_type.root is TypeRoot.ROW:
        return pa.struct([(name, _arrow_type(child)) for name, child in data_type.fields()])
    return arrow_leaf(data_type) or pa.string()

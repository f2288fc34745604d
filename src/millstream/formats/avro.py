"""Avro: records without their schema, and container files.

Promises: binary or JSON encoding with the schema that Flink derives from the row type; container files can be read from
any offset, block by block.
Does not know: schema registries."""

from __future__ import annotations

import importlib
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from millstream.config.configuration import ConfigOption
from millstream.formats import avro_schemas
from millstream.formats.contract import BadFormat, Decoded, Format, MissingLibrary, UnencodableRecord, decode_each
from millstream.formats.format_types import FormatType
from millstream.formats.options import Settings

ENCODING = ConfigOption(
    "encoding", "binary", "The encoding of records: binary or json.", str, choices=("binary", "json")
)
CODEC = ConfigOption(
    "codec", "deflate", "The compression of container files: null, deflate, snappy, bzip2, xz or zstandard.", str
)
TIMESTAMP_MAPPING = ConfigOption(
    "timestamp_mapping.legacy",
    True,
    "Whether TIMESTAMP is mapped to Avro's timestamp type, as older versions of Flink do. If false, it "
    "is mapped to Avro's local-timestamp type.",
    bool,
)
OPTIONS: tuple[ConfigOption[Any], ...] = (ENCODING, TIMESTAMP_MAPPING)
FILE_OPTIONS: tuple[ConfigOption[Any], ...] = (CODEC,)
#: The exceptions for data that is not valid Avro: fastavro lets most of Python's own exceptions through.
REFUSED = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    OverflowError,
    AttributeError,
    StopIteration,
    ArithmeticError,
    RecursionError,
    MemoryError,
    AssertionError,
)
_MAGIC = b"Obj\x01"
_CHUNK = 1 << 16
_MAX_ENTRY = 1 << 26
_MAX_EMPTY = 1 << 17


def library() -> Any:
    """Import fastavro."""
    try:
        return importlib.import_module("fastavro")
    except ImportError:
        raise MissingLibrary(AvroFormat.name, "fastavro", "avro") from None


def parse_schema(schema: Any) -> Any:
    """Parse and check a schema."""
    fastavro = library()
    try:
        return fastavro.parse_schema(schema)
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, *REFUSED) as problem:
        message = f"the avro schema is not valid: {problem}"
        raise BadFormat(message) from None


class AvroFormat(Format):
    """The format `avro`."""

    name = "avro"

    def __init__(self, data_type: FormatType, options: Mapping[str, Any], schema: Any = None) -> None:
        self._options, self._declared_schema = dict(options), schema
        settings = Settings(self.name, OPTIONS, options)
        super().__init__(data_type, settings.on_error())
        self._json = settings.get(ENCODING) == "json"
        self.schema: Any = avro_schemas.record_schema(data_type) if schema is None else avro_schemas.load_schema(schema)
        if not settings.get(TIMESTAMP_MAPPING):
            self.schema = _with_local_timestamps(self.schema, data_type)
        self._parsed_schema = parse_schema(self.schema)
        self._to_avro, self._from_avro = avro_schemas.to_avro(data_type), avro_schemas.from_avro(data_type)
        self._library = library()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data_type, self._options, self._declared_schema)

    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """Decode records in the binary or JSON encoding."""
        return decode_each(records, self._decode_json if self._json else self._decode_binary, REFUSED)

    def _decode_binary(self, data: bytes) -> Any:
        stream = io.BytesIO(data)
        return self._from_avro(self._library.schemaless_reader(stream, self._parsed_schema, None))

    def _decode_json(self, data: bytes) -> Any:
        text = io.StringIO(bytes(data).decode("utf-8"))
        for value in self._library.json_reader(text, self._parsed_schema):
            return self._from_avro(value)
        return None

    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """Encode records in the binary or JSON encoding."""
        return [self._encode_one(value) for value in values]

    def _encode_one(self, value: Any) -> bytes:
        try:
            if self._json:
                text = io.StringIO()
                self._library.json_writer(text, self._parsed_schema, [self._to_avro(value)])
                return json.dumps(json.loads(text.getvalue()), ensure_ascii=False, separators=(",", ":")).encode()
            stream = io.BytesIO()
            self._library.schemaless_writer(stream, self._parsed_schema, self._to_avro(value))
            return stream.getvalue()
        except REFUSED as problem:
            raise UnencodableRecord(self.name, value, str(problem) or type(problem).__name__) from None


def _with_local_timestamps(schema: Any, data_type: FormatType) -> Any:
    """Return the schema with Avro's local timestamps for TIMESTAMP without a time zone."""
    fields = []
    for field, child in zip(schema["fields"], data_type.children, strict=True):
        text = json.dumps(field["type"])
        if child.root.value == "TIMESTAMP":
            text = text.replace('"timestamp-', '"local-timestamp-')
        fields.append({**field, "type": json.loads(text)})
    return {**schema, "fields": fields}


class ContainerFile:
    """A container file that can be read from any offset, block by block."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._size = stream, size
        stream.seek(0)
        self._head = _read_header(stream)
        self.schema: Any = avro_schemas.load_schema(self._head[1].get("avro.schema", b"null").decode("utf-8"))
        self._first_block = stream.tell()

    def records(self, start: int, end: int) -> Iterator[list[Any]]:
        """Return the records of the blocks that start in the range from `start` to `end`, block by block.

        A block belongs to the range in which the sync marker before it begins, as in Avro's own library."""
        prefix, meta, sync = self._head
        is_compressed = meta.get("avro.codec", b"null") != b"null"
        at = self._first_block if start <= self._first_block - len(sync) else self._after_sync(start, sync)
        fastavro = library()
        while at is not None and at - len(sync) < end and at < self._size:
            self._stream.seek(at)
            count, length = _read_long(self._stream), _read_long(self._stream)
            if length < 0 or count < 0:
                message = "a block has a negative length"
                raise ValueError(message)
            # without compression, a block can have more records than bytes only if records have zero bytes
            if not is_compressed and count > max(length, _MAX_EMPTY):
                message = f"a block claims to have {count} records in {length} bytes"
                raise ValueError(message)
            block_end = self._stream.tell() + length + len(sync)
            self._stream.seek(at)
            block = self._stream.read(block_end - at) if block_end <= self._size else b""
            if len(block) != block_end - at or block[-len(sync) :] != sync:
                message = "a block does not end with the sync marker of the file"
                raise ValueError(message)
            try:
                records = list(fastavro.reader(io.BytesIO(prefix + block)))
            except (*REFUSED, zlib.error, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as problem:
                message = f"a block cannot be decoded: {problem!r}"
                raise ValueError(message) from None
            yield records
            at = block_end

    def record_size(self) -> float:
        """Return the average size of a record of the first block, in bytes."""
        self._stream.seek(self._first_block)
        try:
            count, length = _read_long(self._stream), _read_long(self._stream)
        except ValueError:
            return 1.0  # a file without records
        return max(length, 1) / max(count, 1)

    def _after_sync(self, start: int, sync: bytes) -> int | None:
        """Return the end of the first sync marker that starts at or after `start`; None if there is none."""
        at, tail = start, b""
        self._stream.seek(start)
        while chunk := self._stream.read(_CHUNK):
            data = tail + chunk
            index = data.find(sync)
            if index >= 0:
                return at - len(tail) + index + len(sync)
            at += len(chunk)
            tail = data[-(len(sync) - 1) :]
        return None


def _read_header(stream: BinaryIO) -> tuple[bytes, dict[str, bytes], bytes]:
    """Read the header; return its bytes, its metadata and the sync marker."""
    if stream.read(4) != _MAGIC:
        message = "it does not start with the header of an avro container file"
        raise ValueError(message)
    meta: dict[str, bytes] = {}
    while (count := _read_long(stream)) != 0:
        if count < 0:
            count = -count
            _read_long(stream)
        for _ in range(count):
            name = _read_bytes(stream).decode("utf-8")
            meta[name] = _read_bytes(stream)
    sync = stream.read(16)
    if len(sync) != 16:
        message = "it ends inside its header"
        raise ValueError(message)
    end = stream.tell()
    stream.seek(0)
    return stream.read(end), meta, sync


def _read_bytes(stream: BinaryIO) -> bytes:
    """Read bytes with their length; a length that no header can have is refused before anything is allocated."""
    length = _read_long(stream)
    if not 0 <= length <= _MAX_ENTRY:
        message = f"its header has an entry of {length} bytes"
        raise ValueError(message)
    return stream.read(length)


def _read_long(stream: BinaryIO) -> int:
    """Read an integer in Avro's variable-length zig-zag encoding."""
    shift = result = 0
    while True:
        byte = stream.read(1)
        if not byte or shift > 63:
            message = "it ends inside a number"
            raise ValueError(message)
        result |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return (result >> 1) ^ -(result & 1)

"""Writers of bulk-encoded files: Parquet, ORC, Avro and CSV.

Promises: a factory is picklable; the same records give the same bytes; files of one factory can be merged.
Does not know: where files are stored."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from millstream.connector.serialization_schema import BulkWriter, BulkWriterFactory, RowDataBulkWriterFactory
from millstream.formats import Format, FormatType, avro, avro_schemas, orc, parquet
from millstream.formats.contract import BadFormat, UnencodableRecord
from millstream.types.factory import RowTypeInfo, TypeMismatch
from millstream.types.row import Row, RowKind

_AVRO = "avro"


class MergingFactory(BulkWriterFactory):
    """A factory whose files can be merged into one."""

    @abstractmethod
    def merge(self, streams: Sequence[BinaryIO], into: BinaryIO) -> None:
        """Write the records of all files, in order, as one."""


class _RowWriter(BulkWriter):
    """Passes records to a writer with `add` and `finish`."""

    def __init__(self, rows: Any, name: str) -> None:
        self._rows, self._name = rows, name

    def add_elements(self, elements: list[Any]) -> None:
        """Write records; rows that are not inserts are refused."""
        for element in elements:
            if isinstance(element, Row) and element.get_row_kind() is not RowKind.INSERT:
                raise UnencodableRecord(
                    self._name, element, "it is not an insert-only row", hint="write a changelog as JSON lines"
                )
        self._call(self._rows.add, elements)

    def finish(self) -> None:
        """Write the end of the file."""
        self._call(self._rows.finish)

    def _call(self, method: Callable[..., None], *arguments: Any) -> None:
        try:
            method(*arguments)
        except TypeMismatch as mismatch:
            raise UnencodableRecord(self._name, mismatch.value, mismatch.message) from None


def _rows(data_type: FormatType) -> RowTypeInfo:
    row_type = data_type.type_info()
    if not isinstance(row_type, RowTypeInfo):
        message = f"columnar files need rows, not {row_type}"
        raise BadFormat(message)
    return row_type


class ParquetWriterFactory(RowDataBulkWriterFactory, MergingFactory):
    """Writes Parquet files of rows."""

    def __init__(
        self, row_type: RowTypeInfo | FormatType, *, compression: str = "SNAPPY", block_size: int = 128 << 20
    ) -> None:
        self._data_type = FormatType.of(row_type)
        super().__init__(_rows(self._data_type))
        self._compression, self._block_size = compression, block_size

    def create(self, stream: BinaryIO) -> BulkWriter:
        """Create a writer."""
        return _RowWriter(parquet.ParquetRows(stream, self._data_type, self._compression, self._block_size), "parquet")

    def merge(self, streams: Sequence[BinaryIO], into: BinaryIO) -> None:
        """Merge files into one."""
        parquet.merge(streams, into)


class OrcWriterFactory(RowDataBulkWriterFactory, MergingFactory):
    """Writes ORC files of rows."""

    def __init__(self, row_type: RowTypeInfo | FormatType, *, compression: str = "ZLIB") -> None:
        self._data_type = FormatType.of(row_type)
        super().__init__(_rows(self._data_type))
        self._compression = compression

    def create(self, stream: BinaryIO) -> BulkWriter:
        """Create a writer."""
        return _RowWriter(orc.OrcRows(stream, self._data_type, self._compression), "orc")

    def merge(self, streams: Sequence[BinaryIO], into: BinaryIO) -> None:
        """Merge files into one."""
        orc.merge(streams, into)


class _AvroRecords:
    """Writes records to an Avro file, block by block."""

    def __init__(self, stream: BinaryIO, schema: Any, codec: str, convert: Any) -> None:
        marker = hashlib.md5(json.dumps(schema, sort_keys=True).encode(), usedforsecurity=False).digest()
        self._writer = avro.library().write.Writer(
            stream, avro.parse_schema(schema), codec, sync_interval=1 << 16, sync_marker=marker
        )
        self._convert = convert

    def add(self, values: Sequence[Any]) -> None:
        for value in values:
            try:
                self._writer.write(self._convert(value))
            except avro.REFUSED as problem:
                raise UnencodableRecord(_AVRO, value, str(problem) or type(problem).__name__) from None

    def finish(self) -> None:
        self._writer.flush()


class AvroWriterFactory(MergingFactory):
    """Writes Avro files of dicts of the schema, or of rows of `data_type`."""

    def __init__(self, schema: Any, data_type: FormatType | None = None, *, codec: str = "null") -> None:
        self._schema, self._data_type, self._codec = schema, data_type, codec

    def create(self, stream: BinaryIO) -> BulkWriter:
        """Create a writer."""
        convert = _as_dict if self._data_type is None else avro_schemas.to_avro(self._data_type)
        return _RowWriter(_AvroRecords(stream, self._schema, self._codec, convert), "avro")

    def merge(self, streams: Sequence[BinaryIO], into: BinaryIO) -> None:
        """Merge files into one."""
        rows = _AvroRecords(into, self._schema, self._codec, lambda value: value)
        reader = avro.library().reader
        for stream in streams:
            rows.add(list(reader(stream)))
        rows.finish()


def _as_dict(value: Any) -> Any:
    as_dict = getattr(value, "as_dict", None)
    return as_dict(True) if as_dict is not None else value


class AvroParquetWriterFactory(MergingFactory):
    """Writes Parquet files of dicts of an Avro schema."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def create(self, stream: BinaryIO) -> BulkWriter:
        """Create a writer."""
        return _RowWriter(parquet.ParquetRows(stream, avro_schemas.format_type_of(self._schema)), "parquet")

    def merge(self, streams: Sequence[BinaryIO], into: BinaryIO) -> None:
        """Merge files into one."""
        parquet.merge(streams, into)


class _Lines:
    def __init__(self, stream: BinaryIO, line_format: Format, end: bytes, head: bytes | None) -> None:
        self._stream, self._format, self._end = stream, line_format, end
        if head is not None:
            stream.write(head + end)

    def add(self, values: Sequence[Any]) -> None:
        if values:
            self._stream.write(self._end.join([*self._format.encode(values), b""]))

    def finish(self) -> None:
        """Do nothing: a file of lines has no footer."""


class LineWriterFactory(RowDataBulkWriterFactory, MergingFactory):
    """Writes rows as lines of a message format, optionally after a header."""

    def __init__(
        self, row_type: RowTypeInfo, line_format: Format, *, end: bytes = b"\n", head: bytes | None = None
    ) -> None:
        super().__init__(row_type)
        self._format, self._end, self._head = line_format, end, head

    def create(self, stream: BinaryIO) -> BulkWriter:
        """Create a writer."""
        return _RowWriter(_Lines(stream, self._format, self._end, self._head), self._format.name)

    def merge(self, streams: Sequence[BinaryIO], into: BinaryIO) -> None:
        """Merge files into one, with one header."""
        for index, stream in enumerate(streams):
            if index and self._head is not None:
                stream.seek(len(self._head + self._end))
            while chunk := stream.read(1 << 20):
                into.write(chunk)

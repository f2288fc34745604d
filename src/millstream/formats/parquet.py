"""Parquet files, row group by row group.

Promises: a row group belongs to the byte range that contains its first byte, so ranges can be read independently; only
the requested columns are read.
Does not know: which files there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.config.configuration import ConfigOption
from millstream.formats.columnar import RecordBuffer, file_schema, records_of
from millstream.formats.contract import BadFormat, Decoded
from millstream.formats.format_types import FormatType

COMPRESSION = ConfigOption(
    "compression", "SNAPPY", "The compression of pages: UNCOMPRESSED, SNAPPY, GZIP, ZSTD, LZ4 or BROTLI.", str
)
UTC_TIMEZONE = ConfigOption("utc-timezone", True, "Ignored: timestamps are written in UTC.", bool)
BLOCK_SIZE = ConfigOption(
    "block.size", 128 << 20, "The approximate size of a row group in bytes, before compression.", int
)
OPTIONS: tuple[ConfigOption[Any], ...] = (COMPRESSION, UTC_TIMEZONE, BLOCK_SIZE)


def layout(stream: BinaryIO) -> list[tuple[int, int]]:
    """Return the offset and the number of rows of each row group."""
    meta = pq.ParquetFile(stream).metadata
    return [
        (_group_offset(meta.row_group(index)), meta.row_group(index).num_rows) for index in range(meta.num_row_groups)
    ]


def _group_offset(group: Any) -> int:
    starts = []
    for index in range(group.num_columns):
        column = group.column(index)
        starts.append(column.dictionary_page_offset or column.data_page_offset)
    return min(starts, default=0)


def read(
    stream: BinaryIO, data_type: FormatType, start: int, end: int, batch: int, case_sensitive: bool
) -> Iterator[Decoded]:
    """Return the records of the row groups that start in the range from `start` to `end`."""
    file = pq.ParquetFile(stream)
    meta = file.metadata
    names = columns_of(file.schema_arrow.names, data_type.names, case_sensitive)
    groups = [index for index in range(meta.num_row_groups) if start <= _group_offset(meta.row_group(index)) < end]
    if groups:
        for part in file.iter_batches(batch, groups, [column for column in names.values() if column is not None]):
            yield records_of(data_type, rename_columns(pa.Table.from_batches([part]), names))


def columns_of(have: Sequence[str], want: Sequence[str], case_sensitive: bool) -> dict[str, str | None]:
    """Return the column of the file for each field; None if it is missing."""
    if case_sensitive:
        return {name: name if name in have else None for name in want}
    lower: dict[str, list[str]] = {}
    for name in have:
        lower.setdefault(name.lower(), []).append(name)
    result: dict[str, str | None] = {}
    for name in want:
        candidates = lower.get(name.lower(), [])
        if len(candidates) > 1:
            message = f"the field {name!r} is ambiguous: it matches the columns {candidates}"
            raise BadFormat(message, hint="read with is_case_sensitive=True")
        result[name] = candidates[0] if candidates else None
    return result


def rename_columns(table: pa.Table, names: dict[str, str | None]) -> pa.Table:
    """Rename the columns of a table to the names of the fields."""
    fields = {column: name for name, column in names.items() if column is not None}
    return table.rename_columns([fields.get(name, name) for name in table.column_names])


class ParquetRows:
    """Writes records into one file. The stream stays open."""

    def __init__(
        self, stream: BinaryIO, data_type: FormatType, compression: str = "SNAPPY", block_size: int = 128 << 20
    ) -> None:
        codec = "NONE" if compression.upper() == "UNCOMPRESSED" else compression.upper()
        self._bytes, self._block_size = 0, block_size
        self._tables: list[pa.Table] = []
        self._buffer = RecordBuffer(data_type, self._add_table)
        try:
            self._writer = pq.ParquetWriter(
                pa.PythonFile(stream, "w"), file_schema(data_type), compression=codec, coerce_timestamps=None
            )
        except (pa.ArrowException, ValueError, OSError) as problem:
            message = f"parquet cannot be written: {problem}"
            raise BadFormat(message, hint=COMPRESSION.description) from None

    def add(self, values: Sequence[Any]) -> None:
        """Append records."""
        self._buffer.add(values)

    def _add_table(self, table: pa.Table) -> None:
        self._tables.append(table)
        self._bytes += table.nbytes
        if self._bytes >= self._block_size:
            self._write_group()

    def _write_group(self) -> None:
        tables, self._tables, self._bytes = self._tables, [], 0
        if tables:
            whole = pa.concat_tables(tables)
            self._writer.write_table(whole, row_group_size=max(whole.num_rows, 1))

    def finish(self) -> None:
        """Write the buffered records and the footer."""
        self._buffer.flush()
        self._write_group()
        self._writer.close()


def merge(streams: Sequence[BinaryIO], into: BinaryIO) -> None:
    """Concatenate files of one schema; small adjacent row groups are merged."""
    writer: Any = None
    buffered: list[pa.Table] = []
    for stream in streams:
        file = pq.ParquetFile(stream)
        if writer is None:
            column = file.metadata.row_group(0).column(0) if file.metadata.num_row_groups else None
            codec = "SNAPPY" if column is None else column.compression
            codec = "NONE" if codec == "UNCOMPRESSED" else codec
            writer = pq.ParquetWriter(pa.PythonFile(into, "w"), file.schema_arrow, compression=codec)
        for index in range(file.metadata.num_row_groups):
            buffered.append(file.read_row_group(index))
            if sum(table.nbytes for table in buffered) >= 32 << 20:
                _write(writer, buffered)
                buffered = []
    if writer is not None:
        _write(writer, buffered)
        writer.close()


def _write(writer: Any, tables: list[pa.Table]) -> None:
    if tables:
        whole = pa.concat_tables(tables)
        writer.write_table(whole, row_group_size=max(whole.num_rows, 1))

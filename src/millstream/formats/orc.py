"""ORC files, stripe by stripe.

Promises: only the requested columns are read. A file is read as a whole, because Arrow does not expose the offsets of
stripes.
Does not know: which files there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import orc as arrow_orc

from millstream.config.configuration import ConfigOption
from millstream.formats.columnar import RecordBuffer, file_schema, records_of
from millstream.formats.contract import BadFormat, Decoded
from millstream.formats.format_types import FormatType
from millstream.formats.parquet import columns_of, rename_columns

COMPRESSION = ConfigOption("compress", "ZLIB", "The compression of stripes: NONE, ZLIB, SNAPPY, LZ4 or ZSTD.", str)
OPTIONS: tuple[ConfigOption[Any], ...] = (COMPRESSION,)


def read(stream: BinaryIO, data_type: FormatType, batch: int, case_sensitive: bool) -> Iterator[Decoded]:
    """Return the records of a file."""
    file = arrow_orc.ORCFile(pa.PythonFile(stream, "r"))
    names = columns_of(file.schema.names, data_type.names, case_sensitive)
    columns = [column for column in names.values() if column is not None]
    for index in range(file.nstripes):
        stripe = pa.Table.from_batches([file.read_stripe(index, columns)])
        for part in stripe.to_batches(batch):
            yield records_of(data_type, rename_columns(pa.Table.from_batches([part]), names))


class OrcRows:
    """Writes records into one file. The stream stays open."""

    def __init__(self, stream: BinaryIO, data_type: FormatType, compression: str = "ZLIB") -> None:
        self._data_type = data_type
        self._buffer = RecordBuffer(data_type, self._write)
        self._empty = True
        codec = "UNCOMPRESSED" if compression.upper() == "NONE" else compression.upper()
        try:
            self._writer = arrow_orc.ORCWriter(pa.PythonFile(stream, "w"), compression=codec.lower())
        except (pa.ArrowException, ValueError) as problem:
            message = f"orc cannot be written: {problem}"
            raise BadFormat(message, hint=COMPRESSION.description) from None

    def add(self, values: Sequence[Any]) -> None:
        """Append records."""
        self._buffer.add(values)

    def _write(self, table: pa.Table) -> None:
        self._writer.write(table)
        self._empty = False

    def finish(self) -> None:
        """Write the buffered records and the footer."""
        self._buffer.flush()
        if self._empty:
            self._writer.write(file_schema(self._data_type).empty_table())
        self._writer.close()


def merge(streams: Sequence[BinaryIO], into: BinaryIO) -> None:
    """Concatenate files of one schema, stripe by stripe."""
    writer: Any = None
    for stream in streams:
        file = arrow_orc.ORCFile(pa.PythonFile(stream, "r"))
        if writer is None:
            writer = arrow_orc.ORCWriter(pa.PythonFile(into, "w"), compression=str(file.compression).lower())
        writer.write(file.read())
    if writer is not None:
        writer.close()

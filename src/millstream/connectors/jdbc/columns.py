"""Query results as Arrow columns, read by COPY; values become Python objects only if their type needs it.

Promises: batches of the row type of the query, in the order of the result, with bounded memory.
Does not know: splits, tables."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from millstream.connectors.jdbc.driver import psycopg
from millstream.connectors.jdbc.types import PgType, UnreadableValue
from millstream.types.arrow_types import to_python_values
from millstream.types.factory import RowTypeInfo

_BLOCK = 1 << 20


class _CopyOut(io.RawIOBase):
    """The output of COPY as a file. It is read from libpq directly, which costs half as much per row."""

    def __init__(self, connection: Any, query: str) -> None:
        driver = psycopg()
        self._pg = connection.pgconn
        self._errors = driver.errors
        self._done = False
        self._buffer = b""
        started = self._pg.exec_(query.encode())
        if started.status != driver.pq.ExecStatus.COPY_OUT:
            raise self._errors.error_from_result(started)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        chunks, size_read = [self._buffer], len(self._buffer)
        get_data = self._pg.get_copy_data
        while not self._done and (size < 0 or size_read < size):
            length, data = get_data(0)
            if length < 0:
                self._finish()
                break
            chunks.append(bytes(data))
            size_read += length
        data_read = b"".join(chunks)
        end = len(data_read) if size < 0 else min(size, len(data_read))
        self._buffer = data_read[end:]
        return data_read[:end]

    def _finish(self) -> None:
        self._done = True
        while (result := self._pg.get_result()) is not None:
            if result.error_message:
                raise self._errors.error_from_result(result)

    def empty(self) -> bool:
        """Whether the result is empty."""
        self._buffer = self.read(1) + self._buffer
        return not self._buffer

    def close(self) -> None:
        """Discard the rest of the result."""
        if not self._done:
            self._pg.get_cancel().cancel()
            with contextlib.suppress(self._errors.Error):
                while self.read(_BLOCK):
                    pass
        super().close()


def copy_out(
    connection: Any, query: str, parameters: Sequence[Any], columns: Sequence[PgType], row_type: RowTypeInfo
) -> Iterator[pa.Array]:
    """Yield the result of a query as arrays of the row type; the connection needs the settings of `types.SESSION`."""
    names = row_type.get_field_names()
    read_options = csv.ReadOptions(column_names=names, block_size=_BLOCK, use_threads=False)
    convert_options = csv.ConvertOptions(
        column_types={name: column.csv or pa.string() for name, column in zip(names, columns, strict=True)},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=["t"],
        false_values=["f"],
    )
    parse_options = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    statement = psycopg().ClientCursor(connection).mogrify(f"COPY ({query}) TO STDOUT (FORMAT csv)", parameters or None)
    stream = _CopyOut(connection, statement)
    try:
        if stream.empty():
            return
        for batch in csv.open_csv(pa.PythonFile(stream, "r"), read_options, parse_options, convert_options):
            if batch.num_rows:
                yield _rows(batch, columns, row_type)
    except pa.ArrowInvalid as problem:
        raise UnreadableValue(str(problem), "CSV") from problem
    finally:
        stream.close()


def _rows(batch: pa.RecordBatch, columns: Sequence[PgType], row_type: RowTypeInfo) -> pa.Array:
    arrays = [
        _column(array, column, field)
        for array, column, field in zip(batch.columns, columns, row_type.get_field_types(), strict=True)
    ]
    row_kinds = pa.nulls(batch.num_rows, pa.int8())
    return pa.StructArray.from_arrays([*arrays, row_kinds], fields=list(row_type.arrow_type))


def _column(array: pa.Array, column: PgType, field: Any) -> pa.Array:
    if column.csv is None:
        return field.to_arrow([column.value(text) for text in to_python_values(array)])
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        return _instants(array, field.arrow_type)
    return array


def _instants(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    missing = array.is_null()
    micros = np.asarray(array.cast(pa.int64()).fill_null(0))
    seconds, micros_of_second = np.divmod(micros, 1_000_000)
    nanos = (micros_of_second * 1000).astype(np.int32)
    return pa.StructArray.from_arrays([pa.array(seconds), pa.array(nanos)], fields=list(arrow_type), mask=missing)

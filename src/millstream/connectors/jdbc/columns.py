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
from millstream.types.arrow_types import python_values
from millstream.types.factory import RowTypeInfo

_BLOCK = 1 << 20


class _CopyOut(io.RawIOBase):
    """What COPY sends, as a file. Taken from libpq directly: a row costs half as much."""

    def __init__(self, connection: Any, query: str) -> None:
        driver = psycopg()
        self._pg = connection.pgconn
        self._errors = driver.errors
        self._done = False
        self._left = b""
        started = self._pg.exec_(query.encode())
        if started.status != driver.pq.ExecStatus.COPY_OUT:
            raise self._errors.error_from_result(started)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        pieces, have = [self._left], len(self._left)
        take = self._pg.get_copy_data
        while not self._done and (size < 0 or have < size):
            length, data = take(0)
            if length < 0:
                self._finish()
                break
            pieces.append(bytes(data))
            have += length
        whole = b"".join(pieces)
        cut = len(whole) if size < 0 else min(size, len(whole))
        self._left = whole[cut:]
        return whole[:cut]

    def _finish(self) -> None:
        self._done = True
        while (result := self._pg.get_result()) is not None:
            if result.error_message:
                raise self._errors.error_from_result(result)

    def empty(self) -> bool:
        """Whether the result is empty."""
        self._left = self.read(1) + self._left
        return not self._left

    def close(self) -> None:
        """Discard the rest of the result."""
        if not self._done:
            self._pg.get_cancel().cancel()
            with contextlib.suppress(self._errors.Error):
                while self.read(_BLOCK):
                    pass
        super().close()


def copied_out(
    connection: Any, query: str, parameters: Sequence[Any], columns: Sequence[PgType], kind: RowTypeInfo
) -> Iterator[pa.Array]:
    """The result of a query, as arrays of the row type; the connection has the settings of `types.SESSION`."""
    names = kind.get_field_names()
    read = csv.ReadOptions(column_names=names, block_size=_BLOCK, use_threads=False)
    convert = csv.ConvertOptions(
        column_types={name: column.csv or pa.string() for name, column in zip(names, columns, strict=True)},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=["t"],
        false_values=["f"],
    )
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    copy = psycopg().ClientCursor(connection).mogrify(f"COPY ({query}) TO STDOUT (FORMAT csv)", parameters or None)
    stream = _CopyOut(connection, copy)
    try:
        if stream.empty():
            return
        for batch in csv.open_csv(pa.PythonFile(stream, "r"), read, parse, convert):
            if batch.num_rows:
                yield _rows(batch, columns, kind)
    except pa.ArrowInvalid as problem:
        raise UnreadableValue(str(problem), "CSV") from problem
    finally:
        stream.close()


def _rows(batch: pa.RecordBatch, columns: Sequence[PgType], kind: RowTypeInfo) -> pa.Array:
    arrays = [
        _column(array, column, field)
        for array, column, field in zip(batch.columns, columns, kind.get_field_types(), strict=True)
    ]
    kinds = pa.nulls(batch.num_rows, pa.int8())
    return pa.StructArray.from_arrays([*arrays, kinds], fields=list(kind.arrow_type))


def _column(array: pa.Array, column: PgType, field: Any) -> pa.Array:
    if column.csv is None:
        return field.to_arrow([column.value(text) for text in python_values(array)])
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        return _instants(array, field.arrow_type)
    return array


def _instants(array: pa.Array, kind: pa.DataType) -> pa.Array:
    missing = array.is_null()
    micros = np.asarray(array.cast(pa.int64()).fill_null(0))
    seconds, rest = np.divmod(micros, 1_000_000)
    nanos = (rest * 1000).astype(np.int32)
    return pa.StructArray.from_arrays([pa.array(seconds), pa.array(nanos)], fields=list(kind), mask=missing)

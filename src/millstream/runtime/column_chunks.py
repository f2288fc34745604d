"""Columns of rows in operator state, in chunks: each batch that arrives is one entry.

Promises: chunks are returned in the order in which they were put; a change of parallelism moves each row to the subtask
that has the key group of its first column.
Does not know: what the columns mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime.operator import OperatorContext
from millstream.state.deltas import Redistribution
from millstream.state.key_groups import KeyGroupRange
from millstream.state.store import ABSENT
from millstream.types.arrow_streams import write_stream_bytes
from millstream.types.factory import Types


class ColumnChunks:
    """A state table of Arrow record batches, whose first column is an integer key."""

    def __init__(self, context: OperatorContext, name: str) -> None:
        self._context = context
        blob, text = Types.PICKLED_BYTE_ARRAY(), Types.STRING()
        self._table = context.state.table(name, blob, Redistribution.CUT, key_type=text, restrict=self._cut)
        self._count = 0

    def begin_epoch(self) -> None:
        """Number the chunks of a new epoch, or of another attempt at it."""
        self._count = 0

    def _cut(self, data: bytes, groups: KeyGroupRange) -> Any:
        """Return the rows of a chunk whose keys are in some key groups."""
        chunk = _unpack(data)
        key_groups = self._context.state.grouper.of_column(chunk.column(0))
        rows = np.flatnonzero((key_groups >= groups.start) & (key_groups <= groups.end))
        return write_stream_bytes(chunk.take(pa.array(rows))) if len(rows) else ABSENT

    def put(self, **columns: Any) -> None:
        """Add a chunk of NumPy or Arrow columns; the first one has the keys."""
        arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns.values()]
        batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
        self._table.put(None, f"{self._context.epoch:012d}-{self._count:06d}", write_stream_bytes(batch))
        self._count += 1

    def batches(self) -> list[pa.RecordBatch]:
        """Return all chunks."""
        return [_unpack(data) for _, data in sorted(self._table.scan(None))]

    def keys(self) -> list[str]:
        """Return the names of all chunks."""
        return [key for key, _ in self._table.scan(None)]

    def delete(self, keys: list[str]) -> None:
        """Delete chunks."""
        for key in keys:
            self._table.delete(None, key)


def _unpack(data: bytes | memoryview) -> pa.RecordBatch:
    return pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()

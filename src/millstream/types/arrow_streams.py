"""A record batch as the bytes of an Arrow stream.

Promises: of many records, each is copied once, into the bytes that are given back.
Does not know: what the batch holds, or where the bytes go."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_FEW = 128  # records, which are copied sooner than their buffers are handed over one by one


class _Pieces:
    """A file that remembers what it is told to write."""

    closed = False

    def __init__(self) -> None:
        self.found: list[Any] = []

    def write(self, data: Any) -> int:
        """Nothing is copied: Arrow hands over its own buffers."""
        self.found.append(data)
        return len(data)

    def flush(self) -> None:
        """There is nothing to flush."""

    def close(self) -> None:
        """There is nothing to close."""


def stream_pieces(batch: pa.RecordBatch, *, compression: str | None = None) -> list[Any]:
    """The parts of a stream of one batch, in order: bytes, and buffers that belong to the batch."""
    pieces = _Pieces()
    how = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(pa.PythonFile(pieces, "w"), batch.schema, options=how) as writer:
        writer.write_batch(batch)
    return pieces.found


def stream_bytes(batch: pa.RecordBatch, *, before: bytes = b"") -> bytes:
    """A stream of one batch, behind some other bytes; Arrow wants their number to be a multiple of eight."""
    if batch.num_rows < _FEW:
        sink = pa.BufferOutputStream()
        sink.write(before)
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        small: bytes = sink.getvalue().to_pybytes()
        return small
    return b"".join((before, *stream_pieces(batch)))

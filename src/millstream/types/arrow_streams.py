"""Record batches as bytes of an Arrow IPC stream.

Promises: large batches are copied once, into the returned bytes.
Does not know: what a batch contains, and where the bytes go."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_SMALL_BATCH = 128  # up to so many records, copying is faster than collecting the buffers one by one


class _BufferCollector:
    """A file object that collects the written buffers without copying them."""

    closed = False

    def __init__(self) -> None:
        self.buffers: list[Any] = []

    def write(self, data: Any) -> int:
        """Collect a buffer of Arrow."""
        self.buffers.append(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def write_stream_pieces(batch: pa.RecordBatch, *, compression: str | None = None) -> list[Any]:
    """Return the parts of an IPC stream with one batch, in order: bytes, and buffers that belong to the batch."""
    collector = _BufferCollector()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(pa.PythonFile(collector, "w"), batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return collector.buffers


def write_stream_bytes(batch: pa.RecordBatch, *, before: bytes = b"") -> bytes:
    """Return an IPC stream with one batch, after the bytes `before`, whose length must be a multiple of eight."""
    if batch.num_rows < _SMALL_BATCH:
        sink = pa.BufferOutputStream()
        sink.write(before)
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data: bytes = sink.getvalue().to_pybytes()
        return data
    return b"".join((before, *write_stream_pieces(batch)))

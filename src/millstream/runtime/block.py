"""Blocks, which exchanges move: a header and a payload.

Promises: a block is bytes that Spark does not interpret; `(sequence, upstream)` orders the blocks of an edge, so every
task merges its channels in the same order on every attempt; a block of records or a watermark names the attempt of the
task that sent it.
Does not know: Spark, targets, operators.

Records that are Python values are pickled between two tasks of the same job, as PySpark does. Nothing that is stored is
pickled."""

from __future__ import annotations

import hashlib
import pickle
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import cloudpickle
import numpy as np
import pyarrow as pa

from millstream.errors import ExternalError
from millstream.runtime.batch import Batch
from millstream.types.arrow_streams import write_stream_bytes
from millstream.types.factory import DataclassTypeInfo, RowTypeInfo, TypeInformation

_HEADER = struct.Struct("<BHHI7s")  # 16 bytes, so that Arrow finds its buffers aligned
HEADER_SIZE = _HEADER.size
REPORT_EDGE = 0xFFFF
NO_ATTEMPT = bytes(7)


class DamagedBlock(ExternalError):
    """Bytes that are not a block, or a truncated block."""

    hint = "check that the driver and the executors run the same release of millstream"

    def __init__(self, size: int, problem: object) -> None:
        self.size = size
        super().__init__(f"a block of {size} bytes cannot be read: {problem}")


class BlockKind(IntEnum):
    """The type of the payload."""

    COLUMNS = 1
    ROWS = 2
    WATERMARK = 3
    REPORT = 4
    FAILURE = 5
    SORTED = 6


@dataclass(frozen=True, slots=True)
class Header:
    """Where a block comes from, and its sequence number in its channel."""

    kind: BlockKind
    edge: int
    upstream: int
    sequence: int
    attempt: bytes = NO_ATTEMPT


def attempt_token(attempt: str) -> bytes:
    """Return the hash of the name of an attempt, as headers have it."""
    return hashlib.blake2b(attempt.encode(), digest_size=len(NO_ATTEMPT)).digest()


def header(block: bytes) -> Header:
    """Read the header of a block."""
    try:
        kind, edge, upstream, sequence, attempt = _HEADER.unpack_from(block)
        return Header(BlockKind(kind), edge, upstream, sequence, attempt)
    except (struct.error, ValueError) as problem:
        raise DamagedBlock(len(block), problem) from None


def pack_header(kind: BlockKind, edge: int, upstream: int, sequence: int, attempt: bytes = NO_ATTEMPT) -> bytes:
    """Return the header of a block."""
    return _HEADER.pack(kind, edge, upstream, sequence, attempt)


def pack_batch(edge: int, upstream: int, sequence: int, batch: Batch, attempt: bytes = NO_ATTEMPT) -> bytes:
    """Return a block of records: as columns if they exist or are cheaper, else as rows with their keys."""
    prefers_columns = isinstance(batch.record_type, DataclassTypeInfo | RowTypeInfo) and batch.record_type.is_columnar
    if batch.columnar or prefers_columns:
        arrays, names = [batch.array()], ["value"]
        if batch.timestamps is not None:
            arrays.append(pa.array(batch.timestamps))
            names.append("timestamp")
        head = _HEADER.pack(BlockKind.COLUMNS, edge, upstream, sequence, attempt)
        return write_stream_bytes(pa.RecordBatch.from_arrays(arrays, names=names), before=head)
    times = None if batch.timestamps is None else batch.timestamps.tobytes()
    payload = dump_pickle((batch.rows(), batch.keys, times))
    return _HEADER.pack(BlockKind.ROWS, edge, upstream, sequence, attempt) + payload


def dump_pickle(value: Any) -> bytes:
    """Pickle a value; classes of the main module, which workers cannot import, are pickled by value."""
    try:
        return pickle.dumps(value, 5)
    except (pickle.PicklingError, AttributeError, TypeError):
        by_value: bytes = cloudpickle.dumps(value, 5)
        return by_value


def unpack_batch(block: bytes | memoryview, record_type: TypeInformation) -> Batch:
    """Return the records of a COLUMNS or ROWS block."""
    payload = memoryview(block)[_HEADER.size :]
    if block[0] == BlockKind.COLUMNS:
        try:
            record_batch = pa.ipc.open_stream(pa.py_buffer(payload)).read_next_batch()
            times = record_batch.column("timestamp").to_numpy() if record_batch.num_columns > 1 else None
            return Batch(record_type, array=record_batch.column("value"), timestamps=times)
        except (pa.ArrowException, OSError, KeyError, StopIteration) as problem:
            raise DamagedBlock(len(block), problem) from None
    rows, keys, raw = pickle.loads(payload)
    times = None if raw is None else np.frombuffer(raw, dtype=np.int64)
    return Batch(record_type, rows=rows, keys=keys, timestamps=times)


def pack_watermark(
    edge: int, upstream: int, sequence: int, watermark: int | None, attempt: bytes = NO_ATTEMPT
) -> bytes:
    """Return a block with a watermark; None says that the channel is idle."""
    payload = struct.pack("<?q", watermark is None, 0 if watermark is None else watermark)
    return _HEADER.pack(BlockKind.WATERMARK, edge, upstream, sequence, attempt) + payload


def unpack_watermark(block: bytes) -> int | None:
    """Return the watermark in a block; None if the channel is idle."""
    try:
        idle, watermark = struct.unpack_from("<?q", block, _HEADER.size)
    except struct.error as problem:
        raise DamagedBlock(len(block), problem) from None
    return None if idle else watermark

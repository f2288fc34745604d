"""What an exchange moves: a header and a payload.

Promises: a block is bytes that Spark never looks into; `(sequence, upstream)` orders the blocks of an edge, so every
task merges its channels in the same order on every attempt; a block of records or a watermark names the attempt of the
task that sent it.
Does not know: Spark, targets, operators.

Records that were made as Python values travel as a pickle between two tasks of the same job, where PySpark itself
pickles; nothing that is stored ever does."""

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
from millstream.types.arrow_streams import stream_bytes
from millstream.types.factory import DataclassTypeInfo, RowTypeInfo, TypeInformation

_HEADER = struct.Struct("<BHHI7s")  # 16 bytes, so that Arrow finds its buffers aligned
HEADER_SIZE = _HEADER.size
REPORT_EDGE = 0xFFFF
NO_ATTEMPT = bytes(7)


class DamagedBlock(ExternalError):
    """Bytes that are no block, or the end of one is missing."""

    hint = "do driver and executors run the same release of millstream?"

    def __init__(self, size: int, problem: object) -> None:
        self.size = size
        super().__init__(f"a block of {size} bytes cannot be read: {problem}")


class BlockKind(IntEnum):
    """What the payload is."""

    COLUMNS = 1
    ROWS = 2
    WATERMARK = 3
    REPORT = 4
    FAILURE = 5
    SORTED = 6


@dataclass(frozen=True, slots=True)
class Header:
    """Where a block comes from and its place in the order of its channel."""

    kind: BlockKind
    edge: int
    upstream: int
    sequence: int
    attempt: bytes = NO_ATTEMPT


def attempt_token(attempt: str) -> bytes:
    """The name of an attempt as a header has room for it."""
    return hashlib.blake2b(attempt.encode(), digest_size=len(NO_ATTEMPT)).digest()


def header(block: bytes) -> Header:
    """The header of a block."""
    try:
        kind, edge, upstream, sequence, attempt = _HEADER.unpack_from(block)
        return Header(BlockKind(kind), edge, upstream, sequence, attempt)
    except (struct.error, ValueError) as problem:
        raise DamagedBlock(len(block), problem) from None


def pack_header(kind: BlockKind, edge: int, upstream: int, sequence: int, attempt: bytes = NO_ATTEMPT) -> bytes:
    """The header of a block that is packed elsewhere."""
    return _HEADER.pack(kind, edge, upstream, sequence, attempt)


def pack_batch(edge: int, upstream: int, sequence: int, batch: Batch, attempt: bytes = NO_ATTEMPT) -> bytes:
    """A block of records: as columns where they are at hand or cost less to make, else as rows with their keys."""
    lighter = isinstance(batch.kind, DataclassTypeInfo | RowTypeInfo) and batch.kind.is_columnar
    if batch.columnar or lighter:
        arrays, names = [batch.array()], ["value"]
        if batch.timestamps is not None:
            arrays.append(pa.array(batch.timestamps))
            names.append("timestamp")
        head = _HEADER.pack(BlockKind.COLUMNS, edge, upstream, sequence, attempt)
        return stream_bytes(pa.RecordBatch.from_arrays(arrays, names=names), before=head)
    times = None if batch.timestamps is None else batch.timestamps.tobytes()
    payload = dump_pickle((batch.rows(), batch.keys, times))
    return _HEADER.pack(BlockKind.ROWS, edge, upstream, sequence, attempt) + payload


def dump_pickle(value: Any) -> bytes:
    """A pickle; classes of the program's main module, which workers cannot import, go along by value."""
    try:
        return pickle.dumps(value, 5)
    except (pickle.PicklingError, AttributeError, TypeError):
        by_value: bytes = cloudpickle.dumps(value, 5)
        return by_value


def unpack_batch(block: bytes | memoryview, kind: TypeInformation) -> Batch:
    """The records of a COLUMNS or ROWS block."""
    payload = memoryview(block)[_HEADER.size :]
    if block[0] == BlockKind.COLUMNS:
        try:
            record_batch = pa.ipc.open_stream(pa.py_buffer(payload)).read_next_batch()
            times = record_batch.column("timestamp").to_numpy() if record_batch.num_columns > 1 else None
            return Batch(kind, array=record_batch.column("value"), timestamps=times)
        except (pa.ArrowException, OSError, KeyError, StopIteration) as problem:
            raise DamagedBlock(len(block), problem) from None
    rows, keys, raw = pickle.loads(payload)
    return Batch(kind, rows=rows, keys=keys, timestamps=None if raw is None else np.frombuffer(raw, dtype=np.int64))


def pack_watermark(
    edge: int, upstream: int, sequence: int, watermark: int | None, attempt: bytes = NO_ATTEMPT
) -> bytes:
    """A watermark of a channel; None says that the channel is idle."""
    payload = struct.pack("<?q", watermark is None, 0 if watermark is None else watermark)
    return _HEADER.pack(BlockKind.WATERMARK, edge, upstream, sequence, attempt) + payload


def unpack_watermark(block: bytes) -> int | None:
    """The inverse of `pack_watermark`."""
    try:
        idle, watermark = struct.unpack_from("<?q", block, _HEADER.size)
    except struct.error as problem:
        raise DamagedBlock(len(block), problem) from None
    return None if idle else watermark

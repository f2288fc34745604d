"""Messages of one topic as Arrow columns, to be sent or staged.

Promises: deserialized messages are those that were serialized, or an error is raised; no code in the bytes is executed.
Does not know: files, producers."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from millstream.errors import ExternalError
from millstream.types.arrow_streams import write_stream_bytes

_FRAME = struct.Struct("<QI")  # length and checksum of what follows
_PIECE = 10_000
_MANY = 1_000

HeaderList = list[tuple[str, bytes | None]]


class StagedOutputDamaged(ExternalError):
    """A staged file does not contain what was written to it."""

    hint = "restore the file from a copy, or start from an older checkpoint"

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(f"the staged output {path} is damaged: {problem}")


@dataclass(frozen=True)
class Messages:
    """Messages of one topic. A column that is None is absent from all of them."""

    topic: str
    values: pa.Array
    keys: pa.Array | None = None
    timestamps: np.ndarray | None = None
    partitions: np.ndarray | None = None
    headers: list[HeaderList] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def to_bytes(self) -> bytes:
        """Return the messages as an Arrow stream."""
        columns = {"value": self.values}
        if self.keys is not None:
            columns["key"] = self.keys
        if self.timestamps is not None:
            columns["timestamp"] = pa.array(self.timestamps, pa.int64())
        if self.partitions is not None:
            columns["partition"] = pa.array(self.partitions, pa.int32())
        if self.headers is not None:
            columns["headers"] = pa.array(
                [_pack_headers(message_headers) for message_headers in self.headers], pa.binary()
            )
        batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
        return write_stream_bytes(batch.replace_schema_metadata({"topic": self.topic}))

    @classmethod
    def from_bytes(cls, data: bytes) -> Messages:
        """Return the inverse of `to_bytes`."""
        with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
            batch = stream.read_next_batch()
        names = set(batch.schema.names)

        def column(name: str) -> pa.Array | None:
            return batch.column(name) if name in names else None

        times, partitions, headers = column("timestamp"), column("partition"), column("headers")
        return cls(
            batch.schema.metadata[b"topic"].decode(),
            batch.column("value"),
            column("key"),
            None if times is None else times.to_numpy(zero_copy_only=False),
            None if partitions is None else partitions.to_numpy(zero_copy_only=False),
            None if headers is None else [_unpack_headers(packed) for packed in _bytes(headers)],
        )

    def pieces(self, choose_partition: Callable[[str], int]) -> Iterator[tuple[list[Any], list[Iterable[Any]]]]:
        """Yield slices of the messages: values, and columns for the other arguments of a producer's `produce`: key,
        partition, two callbacks, timestamp and, if there are any, headers. `choose_partition` returns a partition of
        the topic for many messages that have neither a key nor a partition."""
        has_no_target = self.keys is None and self.partitions is None
        for start in range(0, len(self), _PIECE):
            piece = slice(start, start + _PIECE)
            partition = choose_partition(self.topic) if has_no_target and len(self) - start >= _MANY else -1
            columns: list[Iterable[Any]] = [
                repeat(None) if self.keys is None else _bytes(self.keys[piece]),
                repeat(partition) if self.partitions is None else self.partitions[piece].tolist(),
                repeat(None),
                repeat(None),
                repeat(0) if self.timestamps is None else np.maximum(self.timestamps[piece], 0).tolist(),  # 0: now
            ]
            yield _bytes(self.values[piece]), columns if self.headers is None else [*columns, self.headers[piece]]


def _bytes(array: pa.Array) -> list[Any]:
    return list(array.to_numpy(zero_copy_only=False).tolist())


def _pack_headers(headers: HeaderList) -> bytes:
    return json.dumps([[name, None if value is None else value.hex()] for name, value in headers]).encode()


def _unpack_headers(data: bytes) -> HeaderList:
    return [(name, None if value is None else bytes.fromhex(value)) for name, value in json.loads(data)]


def write_frame(stream: BinaryIO, messages: Messages) -> int:
    """Append messages to a file; return the number of bytes."""
    data = messages.to_bytes()
    stream.write(_FRAME.pack(len(data), zlib.crc32(data)))
    stream.write(data)
    return _FRAME.size + len(data)


def read_frames(stream: BinaryIO, path: str) -> Iterator[Messages]:
    """Yield the messages that `write_frame` has appended; checksums are verified."""
    while head := stream.read(_FRAME.size):
        if len(head) < _FRAME.size:
            raise StagedOutputDamaged(path, "it ends inside a block")
        size, checksum = _FRAME.unpack(head)
        data = stream.read(size)
        if len(data) != size or zlib.crc32(data) != checksum:
            raise StagedOutputDamaged(path, "a block has another checksum")
        yield Messages.from_bytes(data)

"""The frames that a stage sends to the next one: targets and blocks in turn.

Promises: `unpack_targets` returns what `pack_targets` was given.
Does not know: how frames travel; what is inside a block."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator

RunSlot = Callable[[int, Iterable[bytes]], Iterable[bytes]]  # (slot, blocks) to blocks

_TARGET = struct.Struct(">q")  # as Spark's partitioner for Python reads it


def pack_targets(pairs: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    """Flatten pairs (target slot, block) to frames."""
    for target, block in pairs:
        yield _TARGET.pack(target)
        yield block


def unpack_targets(frames: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Return the pairs (target slot, block) of frames."""
    remaining = iter(frames)
    for target in remaining:
        yield _TARGET.unpack(target)[0], next(remaining)

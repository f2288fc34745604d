"""Sums by which the driver compares the blocks that an epoch has sent with those that it has read.

A sender and a reader each add up a random number of 128 bits for every block. The number is a hash of the channel (the
edge, the upstream and the downstream subtask) and of the attempt that sent the block. If the sums of an edge are equal
over all its subtasks, every block was read as often as it was sent, and by the subtask that it was sent to. A sum has
one size for any number of channels, so that reports do not grow with the parallelism of other vertices.

Promises: sums of different blocks differ, except with a probability of 2^-128.
Does not know: which attempts are accepted, what blocks contain."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from hashlib import blake2b

_CHANNEL = struct.Struct("<III")
_BYTES = 16
_MODULUS = 1 << (8 * _BYTES)

SumOfBlocks = int


def sum_blocks(channels: Iterable[tuple[int, int, int, bytes, int]]) -> SumOfBlocks:
    """Return the sum over (edge, upstream subtask, downstream subtask, attempt, number of blocks)."""
    total = 0
    for edge, upstream, downstream, attempt, count in channels:
        data = _CHANNEL.pack(edge, upstream, downstream) + attempt
        total += count * int.from_bytes(blake2b(data, digest_size=_BYTES).digest(), "little")
    return total % _MODULUS


def add_sums(sums: Iterable[SumOfBlocks]) -> SumOfBlocks:
    """Return the sum for the blocks of several subtasks."""
    return sum(sums) % _MODULUS

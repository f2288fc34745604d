"""Sort keys of the blocks of a batch job: bytes by which Spark sorts the blocks of a slot.

Promises: reports and failures come first, then the blocks of one vertex after the other. For each vertex, broadcast
blocks come first, then unsorted blocks in the order that every attempt sees, then blocks of sorted runs by key hash and
time; equal ones by edge, upstream subtask, run and position in the run.
Does not know: what sorts."""

from __future__ import annotations

import struct
from typing import NamedTuple

_SORT_KEY = struct.Struct(">HBQQHHII")
_RANK = struct.Struct(">H")
_BIAS = 1 << 63  # makes times comparable as unsigned integers

REPORT_SORT_KEY = b"\0\0"
"""The sort key of reports and failures: rank 0."""


class Origin(NamedTuple):
    """Which block of which run: decides between records of the same key and time."""

    edge: int
    upstream: int
    run: int
    position: int


_BROADCAST, _UNSORTED, _SORTED = range(3)


def unsorted_block_key(rank: int, edge: int, upstream: int, sequence: int, *, broadcast: bool = False) -> bytes:
    """Return the sort key of a block whose records stay in the order of their channel."""
    return _SORT_KEY.pack(rank, _BROADCAST if broadcast else _UNSORTED, sequence, 0, edge, upstream, 0, 0)


def sorted_block_key(rank: int, key_hash: int, time: int, origin: Origin) -> bytes:
    """Return the sort key of a block of a sorted run whose first record has this key hash and time."""
    return _SORT_KEY.pack(rank, _SORTED, key_hash, time + _BIAS, *origin)


def rank_of(sort_key: bytes) -> int:
    """Return the rank of the vertex that reads a block, counted from 1; 0 for reports."""
    return int(_RANK.unpack_from(sort_key)[0])


def is_of_sorted_run(sort_key: bytes) -> bool:
    """Whether the block is part of a sorted run."""
    return sort_key[2] == _SORTED


def origin_of(sort_key: bytes) -> Origin:
    """Return which block of which run this is."""
    return Origin(*_SORT_KEY.unpack(sort_key)[4:])

"""Where a block of a batch job stands among those of its slot: a sort key of bytes that Spark compares as they are.

Promises: reports and failures come first; then vertex by vertex, of each what is not sorted in the order every attempt
sees, what is broadcast first, then what is sorted by hash of the key and time, and equal ones by edge, subtask, run and
place in the run.
Does not know: what sorts."""

from __future__ import annotations

import struct
from typing import NamedTuple

_PLACE = struct.Struct(">HBQQHHII")
_RANK = struct.Struct(">H")
_BIAS = 1 << 63

REPORTS = b"\0\0"
"""The place of reports and failures: rank 0."""


class Origin(NamedTuple):
    """Which block of which run: what decides between records of the same key and time."""

    edge: int
    upstream: int
    run: int
    position: int


_BROADCAST, _IN_ORDER, _SORTED = range(3)


def unsorted_place(rank: int, edge: int, upstream: int, sequence: int, *, broadcast: bool = False) -> bytes:
    """The place of a block whose records come in the order of their channel; what is broadcast comes before."""
    return _PLACE.pack(rank, _BROADCAST if broadcast else _IN_ORDER, sequence, 0, edge, upstream, 0, 0)


def sorted_place(rank: int, key_hash: int, time: int, origin: Origin) -> bytes:
    """The place of a block of a sorted run that begins with this hash and time."""
    return _PLACE.pack(rank, _SORTED, key_hash, time + _BIAS, *origin)


def rank_of(place: bytes) -> int:
    """The vertex a block is for, counted from 1; 0 for reports."""
    return int(_RANK.unpack_from(place)[0])


def is_sorted(place: bytes) -> bool:
    """Whether the block is part of a sorted run."""
    return place[2] == _SORTED


def origin_of(place: bytes) -> Origin:
    """Which block of which run this is."""
    return Origin(*_PLACE.unpack(place)[4:])

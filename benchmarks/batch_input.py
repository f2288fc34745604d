"""Input and functions of the batch benchmarks, the same for every contestant.

Promises: standard library only; a record depends on its index alone. Words are as frequent as words are: the n-th most
frequent one comes about 1/n times as often as the first.
Does not know: any engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks import common

KEYS = 2_000_000
CHECK_GAP = 1_200
STEP, RANGE = 2_654_435_761, 1 << 32


def word(index: int, keys: int) -> str:
    """The word of record `index`, of `keys` different ones."""
    return f"w{int(keys ** (index * STEP % RANGE / RANGE))}"


def click(index: int) -> tuple[int, int, int]:
    """(key, time, amount) of record `index` in the check."""
    return common.key_of(index) % common.CHECK_KEYS, index, common.amount_of(index)


def session(key: int, clicks: Iterable[Any]) -> tuple[int, int, int, int]:
    """(key, first time, last time, total amount) of clicks in any order: in a stream it is that of arrival."""
    _, times, amounts = zip(*clicks, strict=True)
    return key, min(times), max(times), sum(amounts)

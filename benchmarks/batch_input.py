"""Input and functions of the batch benchmarks, the same for every contestant.

Promises: standard library only; a record depends on its index alone. Words are as frequent as words are: the n-th most
frequent one comes about 1/n times as often as the first.
Does not know: any engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks import common

KEYS = 2_000_000
CHECK_GAP = 60
_STEP, _RANGE = 2_654_435_761, 1 << 32


def word(index: int, keys: int) -> str:
    """The word of record `index`, of `keys` different ones."""
    return f"w{int(keys ** (index * _STEP % _RANGE / _RANGE))}"


def click(index: int) -> tuple[int, int, int]:
    """(key, time, amount) of record `index` in the check."""
    return common.key_of(index) % common.CHECK_KEYS, index, common.amount_of(index)


def session(key: int, clicks: Iterable[Any]) -> tuple[int, int, int, int]:
    """(key, first time, last time, total amount) of clicks in any order: in a stream it is that of arrival."""
    _, times, amounts = zip(*clicks, strict=True)
    return key, min(times), max(times), sum(amounts)


def expected_words() -> dict[str, int]:
    """The digest of (word, count) of the check."""
    counts: dict[str, int] = {}
    for index in range(common.CHECK_RECORDS):
        found = word(index, common.CHECK_KEYS)
        counts[found] = counts.get(found, 0) + 1
    return common.digest(counts.items())


def expected_sessions() -> dict[str, int]:
    """The digest of the sessions of the check: a pause longer than the gap ends one."""
    by_key: dict[int, list[tuple[int, int, int]]] = {}
    found = []
    for index in range(common.CHECK_RECORDS):
        made = click(index)
        before = by_key.setdefault(made[0], [])
        if before and made[1] - before[-1][1] > CHECK_GAP:
            found.append(session(made[0], before))
            before.clear()
        before.append(made)
    return common.digest([*found, *(session(key, clicks) for key, clicks in by_key.items())])

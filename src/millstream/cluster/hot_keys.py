"""The keys of one job that have many records, estimated from samples.

Promises: the share of a key is that of the newest samples of all subtasks, each weighted by the records that its
subtask read; keys with less than a hundredth of the records are left out. Memory is bounded; with `hidden`, no key is
kept. The methods may be called from any thread.
Does not know: how subtasks sample."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_KEPT = 300  # samples of each operator
_MOST_OPERATORS = 200
_SHOWN, _LEAST_SHARE = 10, 0.01


@dataclass(frozen=True, slots=True)
class KeySample:
    """Keys that one subtask read in one epoch: how many records it read, how many keys were sampled, and how often the
    most frequent ones were in the sample."""

    subtask: int
    records: int
    sampled: int
    frequent: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key with many records. `share` is its estimated share of all records of the operator, from 0 to 1."""

    key: str
    subtask: int
    share: float


class HotKeys:
    """The newest samples of one job, by operator id."""

    def __init__(self, *, hidden: bool) -> None:
        self._hidden = hidden
        self._lock = threading.Lock()
        self._samples: dict[str, deque[KeySample]] = {}

    def add(self, samples: Mapping[str, Sequence[KeySample]]) -> None:
        """Add what the subtasks of operators reported for an epoch."""
        if self._hidden:
            return
        with self._lock:
            for operator, reported in samples.items():
                if operator in self._samples or len(self._samples) < _MOST_OPERATORS:
                    self._samples.setdefault(operator, deque(maxlen=_KEPT)).extend(reported)

    def of(self, operator: str) -> list[HotKey]:
        """Return the keys of an operator that have most records, the largest share first."""
        with self._lock:
            samples = list(self._samples.get(operator, ()))
        total = sum(sample.records for sample in samples)
        records: dict[str, float] = {}
        subtasks: dict[str, int] = {}
        for sample in samples:
            for key, count in sample.frequent:
                records[key] = records.get(key, 0.0) + sample.records * count / sample.sampled
                subtasks[key] = sample.subtask
        hottest = sorted(records, key=lambda key: -records[key])[:_SHOWN]
        return [HotKey(key, subtasks[key], share) for key in hottest if (share := records[key] / total) >= _LEAST_SHARE]

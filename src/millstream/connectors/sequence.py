"""A source of consecutive numbers, as Flink's `NumberSequenceSource`.

Promises: every number from `start` to `end`, both included, once, at any parallelism; each split in order, so that
one reader emits all numbers in order.
Does not know: how large an epoch is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.connector.source import (
    Budget,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.errors import UserError
from millstream.types.factory import TypeInformation, Types

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


class BadSequence(UserError, ValueError):
    """Bounds of a sequence that are not an increasing pair of 64-bit integers."""

    hint = "use two 64-bit integers; the first must not be greater than the second"

    def __init__(self, start: object, end: object) -> None:
        self.start, self.end = start, end
        super().__init__(f"there is no sequence from {start!r} to {end!r}")


@dataclass(frozen=True)
class NumberSequenceSource(Source):
    """The integers from `start` to `end`, both inclusive, divided into as many sub-sequences as there are readers.

    Example:
        >>> from millstream.common import WatermarkStrategy
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> numbers = env.from_source(NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "numbers")
        >>> sorted(numbers.execute_and_collect())
        [1, 2, 3]

    """

    start: int
    end: int

    def __post_init__(self) -> None:
        are_numbers = all(isinstance(bound, int) for bound in (self.start, self.end))
        if not are_numbers or not _LEAST <= self.start <= self.end <= _GREATEST:
            raise BadSequence(self.start, self.end)

    def type_info(self) -> TypeInformation:
        """Return `Types.LONG()`."""
        return Types.LONG()

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create sub-sequences of equal length, or those of the restored state."""
        return SequenceEnumerator(_split_range(self.start, self.end + 1, parallelism) if state is None else state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of ranges of numbers."""
        return SequenceReader(context.block_records)


def _split_range(start: int, stop: int, parts: int) -> list[list[Any]]:
    size, longer = divmod(stop - start, parts)
    splits: list[list[Any]] = []
    for index in range(min(parts, stop - start)):
        after = start + size + (index < longer)
        splits.append([f"{index:04d}", start, after])
        start = after
    return splits


class SequenceEnumerator(SplitEnumerator):
    """Plans ranges; keeps the next number and the end of each sub-sequence."""

    def __init__(self, splits: Sequence[Sequence[Any]]) -> None:
        self._remaining = {name: (int(at), int(stop)) for name, at, stop in splits}

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan an equal share of the budget for each unfinished split."""
        ready = sorted(
            self._remaining.keys() - budget.held, key=lambda name: self._remaining[name][1] - self._remaining[name][0]
        )
        records = max(budget.records, 1)
        ranges = []
        for planned, name in enumerate(ready):
            at, stop = self._remaining[name]
            # the share that a short split does not use goes to the longer splits after it
            count = min(-(-records // (len(ready) - planned)), stop - at)
            if count:
                ranges.append(SplitRange(name, at, at + count, count))
            records -= count
        self.replayed(ranges)
        return sorted(ranges, key=lambda part: part.split)

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan again from the restored position, which is the whole state."""
        return self.plan(budget)

    def skip(self, done: SplitRange) -> None:
        """Continue after the range."""
        _, stop = self._remaining[done.split]
        if done.end < stop:
            self._remaining[done.split] = (done.end, stop)
        else:
            del self._remaining[done.split]

    def snapshot(self) -> list[list[Any]]:
        """Return the next number and the end of each split."""
        return [[name, at, stop] for name, (at, stop) in sorted(self._remaining.items())]

    def finished(self) -> bool:
        """Whether every number was planned."""
        return not self._remaining

    def splits(self) -> list[str]:
        """Return the unfinished splits."""
        return sorted(self._remaining)

    def lag(self) -> int:
        """Return how many numbers are left."""
        return sum(stop - at for at, stop in self._remaining.values())


class SequenceReader(SourceReader):
    """Emits the numbers of ranges as Arrow columns."""

    def __init__(self, block: int) -> None:
        self._block = block

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the numbers of the range."""
        for start in range(part.start, part.end, self._block):
            count = min(self._block, part.end - start)
            # from 0, because the end of the range may not fit into 64 bits
            yield Records(pa.array(np.arange(count, dtype=np.int64) + np.int64(start)))

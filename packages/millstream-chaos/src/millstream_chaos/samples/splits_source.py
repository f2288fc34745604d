"""A source of several splits of records in memory, which are read at different speeds.

Promises: records of a split are read in their order, and again after a restore.
Does not know: programs, engines, faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.source import (
    Budget,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.types.factory import TypeInformation, Types

EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])


@dataclass(frozen=True)
class SplitsSource(Source):
    """Several splits of records, read at different speeds, in order."""

    splits: tuple[tuple[Any, ...], ...]
    data_type: TypeInformation = EVENT

    def type_info(self) -> TypeInformation:
        """Return the type of the records."""
        return self.data_type

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator at the positions in `state`."""
        return SplitsEnumerator([len(split) for split in self.splits], state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader."""
        return _SplitsReader(self.splits, context.block_records)


class SplitsEnumerator(SplitEnumerator):
    """Plans more of the later splits than of the earlier ones."""

    def __init__(self, counts: list[int], state: list[int] | None) -> None:
        self._counts = counts
        self._at = [0] * len(counts) if state is None else list(state)

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan ranges of all splits within the budget."""
        left, ranges = max(budget.records, 1), []
        parts = sum(range(1, len(self._at) + 1))
        for index, at in enumerate(self._at):
            name = f"s{index}"
            count = min(self._counts[index] - at, left, max(1, budget.records * (index + 1) // parts))
            if count > 0 and name not in budget.held:
                ranges.append(SplitRange(name, at, at + count, count))
                left -= count
        self.replayed(ranges)
        return ranges

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan less."""
        return self.plan(budget)

    def skip(self, done: SplitRange) -> None:
        """Advance past a range."""
        self._at[int(done.split[1:])] = done.end

    def snapshot(self) -> list[int]:
        """Return the positions."""
        return list(self._at)

    def finished(self) -> bool:
        """Whether all splits are read."""
        return self._at == self._counts

    def splits(self) -> list[str]:
        """Return the splits that are not read to their end."""
        return [f"s{index}" for index, at in enumerate(self._at) if at < self._counts[index]]

    def lag(self) -> int:
        """Return the number of records that are not read."""
        return sum(self._counts) - sum(self._at)


class _SplitsReader(SourceReader):
    def __init__(self, splits: tuple[tuple[Any, ...], ...], block: int) -> None:
        self._splits, self._block = splits, block

    def read(self, part: SplitRange) -> Iterator[Records]:
        rows = self._splits[int(part.split[1:])][part.start : part.end]
        for start in range(0, len(rows), self._block):
            yield Records(list(rows[start : start + self._block]))

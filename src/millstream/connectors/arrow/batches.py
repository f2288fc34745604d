"""A source of Arrow data that is part of the program.

Promises: the rows in their order within a split, once, as columns: no row becomes a Python value. The rows are divided
into splits of about equal size, which are read in parallel.
Does not know: where the data comes from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

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
from millstream.types.factory import TypeInformation


@dataclass(frozen=True)
class ArrowSource(Source):
    """Emits the rows of Arrow arrays; each array has the Arrow type of `element_type`."""

    chunks: Sequence[pa.Array] = field(compare=False)
    element_type: TypeInformation
    splits: int = 1

    def __deepcopy__(self, memo: dict[int, Any]) -> ArrowSource:
        """Return the source itself: Arrow data is immutable, so all subtasks share it."""
        return self

    def type_info(self) -> TypeInformation:
        """Return the declared type."""
        return self.element_type

    def max_parallelism(self) -> int | None:
        """Return the number of splits."""
        return self.splits

    def count_rows(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self.chunks))

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator of row offsets; its state is the next offset of each split."""
        count = self.count_rows()
        size = -(-count // self.splits)
        ends = [min(count, (split + 1) * size) for split in range(self.splits)]
        starts = [min(count, split * size) for split in range(self.splits)]
        return ArrowEnumerator(starts if state is None else list(state), ends)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of the rows."""
        return ArrowReader(self.chunks, context.block_records)


class ArrowEnumerator(SplitEnumerator):
    """Plans ranges of row offsets."""

    def __init__(self, positions: list[int], ends: list[int]) -> None:
        self._positions, self._ends = positions, ends

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan the next rows of each split that is not held."""
        unread = [i for i in self._unread() if str(i) not in budget.held]
        share = max(budget.records // max(len(unread), 1), 1)
        ranges = []
        for split in unread:
            start = self._positions[split]
            end = min(self._ends[split], start + share)
            self._positions[split] = end
            ranges.append(SplitRange(str(split), start, end, end - start))
        return ranges

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan again from the restored positions, which are the whole state."""
        return self.plan(budget)

    def _unread(self) -> list[int]:
        return [i for i, (position, end) in enumerate(zip(self._positions, self._ends, strict=True)) if position < end]

    def snapshot(self) -> list[int]:
        """Return the next offset of each split."""
        return list(self._positions)

    def finished(self) -> bool:
        """Whether all rows were planned."""
        return not self._unread()

    def splits(self) -> list[str]:
        """Return the splits that are not read to their end."""
        return [str(split) for split in self._unread()]

    def skip(self, split_range: SplitRange) -> None:
        """Continue after the range."""
        self._positions[int(split_range.split)] = split_range.end

    def lag(self) -> int:
        """Return the number of rows left."""
        return sum(self._ends) - sum(self._positions)


class ArrowReader(SourceReader):
    """Reads slices of the arrays."""

    def __init__(self, chunks: Sequence[pa.Array], block: int) -> None:
        self._chunks, self._block = chunks, block
        self._offsets = [0, *accumulate(map(len, chunks))]

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the rows of the range, without a copy."""
        offset = part.start
        while offset < part.end:
            index = bisect_right(self._offsets, offset) - 1
            end = min(part.end, offset + self._block, self._offsets[index + 1])
            yield Records(self._chunks[index].slice(offset - self._offsets[index], end - offset))
            offset = end

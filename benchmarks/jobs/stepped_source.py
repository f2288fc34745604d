"""A source that says how many records an epoch has: for benchmarks of single epochs.

Promises: epochs of `loading` records come first, then epochs of `step` records; every key in [0, keys) is loaded
once, in scattered order, and later records change keys in the same order again.
Does not know: what is done with the records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
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
from millstream.types.factory import TypeInformation, Types

# Odd and no multiple of 5, so that multiplying by it permutes the integers modulo any power of ten.
SCATTER = 7_368_787


@dataclass(frozen=True)
class SteppedSource(Source):
    """Integer keys: `load` records in epochs of `loading`, then `steps` epochs of `step` records."""

    keys: int
    step: int
    steps: int
    load: int = 0
    loading: int = 1

    def type_info(self) -> TypeInformation:
        """Integers."""
        return Types.LONG()

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """As many splits as readers, or one where an epoch has fewer records than that."""
        return _Steps(self, min(parallelism, self.step), 0 if state is None else int(state))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader that computes its records."""
        return _Scattered(self.keys, context.block_records)


class _Steps(SplitEnumerator):
    def __init__(self, source: SteppedSource, splits: int, position: int) -> None:
        self._source, self._splits, self._at = source, splits, position
        self._end = source.load + source.step * source.steps

    def plan(self, budget: Budget) -> list[SplitRange]:
        loading = self._at < self._source.load
        limit = self._source.load if loading else self._end
        # Loading may be cut to the budget; a step may not, because epochs of one size are what is compared.
        wanted = min(self._source.loading, budget.records) if loading else self._source.step
        size = min(wanted, limit - self._at)
        cuts = [self._at + size * number // self._splits for number in range(self._splits + 1)]
        self._at += size
        return [
            SplitRange(str(number), start, end, end - start)
            for number, (start, end) in enumerate(pairwise(cuts))
            if start < end
        ]

    def snapshot(self) -> Any:
        return self._at

    def finished(self) -> bool:
        return self._at >= self._end

    def splits(self) -> list[str]:
        return [] if self.finished() else [str(number) for number in range(self._splits)]

    def skip(self, done: SplitRange) -> None:
        self._at = max(self._at, int(done.end))


class _Scattered(SourceReader):
    def __init__(self, keys: int, block: int) -> None:
        self._keys, self._block = keys, block

    def read(self, part: SplitRange) -> Iterator[Records]:
        for start in range(part.start, part.end, self._block):
            numbers = np.arange(start, min(start + self._block, part.end), dtype=np.int64)
            yield Records(pa.array(numbers * SCATTER % self._keys))

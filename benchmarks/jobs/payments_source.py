"""Payments computed from their index: the very records that the SQL peers compute.

Promises: record `i` is (key, i, amount) as `common` defines them, with `keys` keys; splits take turns, so that event
time moves on evenly in all of them.
Does not know: what is done with the payments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks import common

from millstream.connector.source import (
    Budget,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.types.factory import RowTypeInfo, TypeInformation, Types

PAYMENT: RowTypeInfo = Types.ROW_NAMED(["key", "i", "amount"], [Types.LONG(), Types.LONG(), Types.LONG()])


@dataclass(frozen=True)
class PaymentsSource(Source):
    """The payments with index 0 to `count` - 1."""

    count: int
    keys: int

    def type_info(self) -> TypeInformation:
        """Rows of key, index and amount."""
        return PAYMENT

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """As many splits as readers."""
        return _Turns(self.count, parallelism, 0 if state is None else int(state))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader that computes its records."""
        return _Computed(self.keys, context.block_records)


class _Turns(SplitEnumerator):
    def __init__(self, count: int, splits: int, position: int) -> None:
        self._count, self._splits, self._at = count, splits, position

    def plan(self, budget: Budget) -> list[SplitRange]:
        end = min(self._at + budget.records, self._count)
        # A range is cut out of all indexes that leave the split's number when divided by the number of splits.
        parts = [
            SplitRange(str(split), [self._at, split, self._splits], [end, split, self._splits], len(members))
            for split in range(self._splits)
            if (members := _members(self._at, end, split, self._splits))
        ]
        self._at = end
        return parts

    def snapshot(self) -> Any:
        return self._at

    def finished(self) -> bool:
        return self._at >= self._count

    def splits(self) -> list[str]:
        return [] if self.finished() else [str(split) for split in range(self._splits)]

    def skip(self, done: SplitRange) -> None:
        self._at = max(self._at, int(done.end[0]))


def _members(start: int, end: int, split: int, splits: int) -> range:
    return range(start + (split - start) % splits, end, splits)


class _Computed(SourceReader):
    def __init__(self, keys: int, block: int) -> None:
        self._keys, self._block = keys, block

    def read(self, part: SplitRange) -> Iterator[Records]:
        (start, split, splits), (end, _, _) = part.start, part.end
        members = _members(start, end, split, splits)
        for at in range(0, len(members), self._block):
            chosen = members[at : at + self._block]
            index = np.arange(chosen.start, chosen.stop, chosen.step, dtype=np.int64)
            residue = index % common.PERIOD
            cubed = residue * residue * residue % common.PERIOD  # below 2**60, as in SQL
            arrays = [pa.array(cubed % common.KEYS % self._keys), pa.array(index), pa.array(index % common.AMOUNTS)]
            fields = list(PAYMENT.arrow_type)
            arrays.extend(pa.nulls(len(index), each.type) for each in fields[len(arrays) :])  # row kinds: all inserts
            yield Records(pa.StructArray.from_arrays(arrays, fields=fields))

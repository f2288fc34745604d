"""Top-N and deduplication on whole columns, with mini-batches.

Promises: the final rows and ranks of RankOperator and DeduplicateOperator, of rows that are never taken back; what an
epoch has changed and changed again is told as one change; no Python for a row or a partition.
Does not know: retraction, state that expires, RANK and DENSE_RANK; state on disk, where EpochRankOperator looks up each
partition.

The rows of an epoch are put behind those that their partitions had, ordered with them once, and compared place by
place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.operator import OperatorContext
from millstream.sql import types as t
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, is_nested, struct_of
from millstream.sql.operators.epochs import EpochOperator
from millstream.sql.operators.ordering import Order
from millstream.sql.operators.rank_state import RankState
from millstream.sql.operators.row_runs import KeyColumns, can_be_hashed, codes_of, same_keys


@dataclass(frozen=True)
class Ranking:
    """Which rows of each partition are shown: places `first` to `last` in an order; of equal rows the earlier comes
    first, or with `later_first`, for one place only, the later."""

    input: t.RowType
    output: t.RowType
    partition: tuple[int, ...]
    order: Order
    first: int
    last: int
    with_rank: bool
    before: bool
    later_first: bool = False


def can_rank(schema: t.RowType, partition: Sequence[int], order: Order) -> bool:
    """Whether columns can be grouped, put in order and compared as such."""
    ordered = [schema.types[column] for column, _, _ in order]
    return (
        can_be_hashed([schema.types[i] for i in partition])
        and not any(map(is_nested, schema.types))
        and not any(map(t.is_approximate, ordered))
    )


def ranked(
    codes: np.ndarray, columns: Sequence[pa.Array], order: Order, limit: int, *, later_first: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The places of the first `limit` rows of each code, code by code, each in order; and which place they take."""
    by = [np.arange(len(codes), 0, -1)] if later_first else []
    for column, ascending, nulls_first in reversed(order):
        numbers = _order_numbers(columns[column], ascending)
        by.append(numbers)
        if columns[column].null_count:
            nulls = columns[column].is_null().to_numpy(zero_copy_only=False)
            by.append(~nulls if nulls_first else nulls)
    places = np.lexsort((*by, codes))
    ordered = codes[places]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    numbers = np.arange(len(places)) - np.repeat(begins, np.diff(np.append(begins, len(places))))
    kept = numbers < limit
    return (places, numbers) if kept.all() else (places[kept], numbers[kept])


def _order_numbers(column: pa.Array, ascending: bool) -> np.ndarray:
    """A number for each value, in the order of the values; any for NULL."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        numbers = column.cast(pa.int64())
        found: np.ndarray = (pc.fill_null(numbers, 0) if numbers.null_count else numbers).to_numpy()
    else:
        found = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    return found if ascending else ~found


class ColumnarRankOperator(EpochOperator):
    """State: the first rows of each partition, in order."""

    def __init__(self, context: OperatorContext, ranking: Ranking, state: RankState) -> None:
        super().__init__(context, ranking.output)
        self._ranking = ranking
        self._state = state
        self._keys = KeyColumns([ranking.input.types[i] for i in ranking.partition])

    def begin_epoch(self) -> None:
        """Nothing is waiting; all state is in runs."""
        super().begin_epoch()
        rows = self._state.taken_from_keys()
        if rows is not None:
            columns = self._columns(rows)
            self._state.runs.add(columns, self._hashes(columns, len(rows)))

    def _columns(self, array: pa.Array) -> list[pa.Array]:
        return [array.field(i) for i in range(len(self._ranking.input))]

    def _hashes(self, columns: list[pa.Array], count: int) -> np.ndarray:
        return self._keys.hashes([columns[i] for i in self._ranking.partition], count)

    def _take(self, array: pa.Array) -> None:
        ranking = self._ranking
        columns = self._columns(array)
        codes = codes_of([columns[i] for i in ranking.partition], len(array))
        places, numbers = ranked(codes, columns, ranking.order, ranking.last, later_first=ranking.later_first)
        firsts = np.flatnonzero(numbers == 0)
        chosen = pa.array(places)
        columns = [column.take(chosen) for column in columns]
        partitions = [columns[i].take(pa.array(firsts)) for i in ranking.partition]
        hashes = self._keys.hashes(partitions, len(firsts))
        found = self._state.runs.find(partitions, hashes, self._keys)
        old = [each for each in found if len(each.mine)]
        group = np.concatenate([*(each.mine for each in old), np.cumsum(numbers == 0) - 1])
        known = len(group) - len(places)
        if old:
            parts = [[column.take(pa.array(each.places)) for column in each.run.columns] for each in old]
            columns = [pa.concat_arrays(pieces) for pieces in zip(*parts, columns, strict=True)]
        self._compare(columns, group, known, hashes)

    def _compare(self, columns: list[pa.Array], group: np.ndarray, known: int, hashes: np.ndarray) -> None:
        """Tell and keep what has changed: the first `known` rows were there, in order."""
        ranking = self._ranking
        kept, numbers = ranked(group, columns, ranking.order, ranking.last, later_first=ranking.later_first)
        had, places = ranked(group[:known], columns, (), ranking.last)
        width = int(numbers.max()) + 1
        before = np.full((len(hashes), width), -1)
        before[group[had], places] = had
        after = np.full((len(hashes), width), -1)
        after[group[kept], numbers] = kept
        changed = before != after
        replaced = np.nonzero(changed & (before >= 0))
        if len(replaced[0]):
            one, other = pa.array(before[replaced]), pa.array(after[replaced])
            same = same_keys([each.take(one) for each in columns], [each.take(other) for each in columns])
            changed[tuple(axis[same] for axis in replaced)] = False
        if not changed.any():
            return
        self._tell(columns, before, after, changed)
        rows = kept[changed.any(axis=1)[group[kept]]]
        chosen = pa.array(rows)
        self._state.runs.add([column.take(chosen) for column in columns], hashes[group[rows]])

    def _tell(self, columns: list[pa.Array], before: np.ndarray, after: np.ndarray, changed: np.ndarray) -> None:
        ranking = self._ranking
        if not ranking.with_rank and ranking.first == 1 and ranking.last != 1:
            rows, kinds = _moved(before, after)
            self._emit(columns, rows, kinds, None)
            return
        partition, place = np.nonzero(changed[:, ranking.first - 1 :])
        place += ranking.first - 1
        old, new = before[partition, place], after[partition, place]
        twice = (old >= 0) & ranking.before
        ends = np.cumsum(np.where(twice, 2, 1))
        count = int(ends[-1]) if len(ends) else 0
        rows, kinds = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int8)
        rows[ends - 1], kinds[ends - 1] = new, np.where(old >= 0, UPDATE_AFTER, INSERT)
        rows[ends[twice] - 2], kinds[ends[twice] - 2] = old[twice], UPDATE_BEFORE
        self._emit(columns, rows, kinds, np.repeat(place + 1, np.where(twice, 2, 1)) if ranking.with_rank else None)

    def _emit(self, columns: list[pa.Array], rows: np.ndarray, kinds: np.ndarray, ranks: np.ndarray | None) -> None:
        chosen = pa.array(rows)
        tail = [] if ranks is None else [pa.array(ranks)]
        made = [*(column.take(chosen) for column in columns), *tail]
        self.emit_array(struct_of(made, pa.array(kinds) if kinds.any() else None, self.output, len(rows)))


def _moved(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows that are no longer, and those that are newly, among the first; partition by partition."""
    gone = (before >= 0) & ~np.isin(before, after)
    come = (after >= 0) & ~np.isin(after, before)
    both = np.concatenate([gone, come], axis=1)
    rows = np.concatenate([before, after], axis=1)[both]
    kinds = np.concatenate([np.full_like(before, DELETE), np.full_like(after, INSERT)], axis=1)[both]
    return rows, kinds.astype(np.int8)

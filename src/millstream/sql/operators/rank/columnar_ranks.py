"""Top-N and deduplication on whole columns, with mini-batches.

Promises: the final rows and ranks of RankOperator and DeduplicateOperator, of rows that are never taken back; what an
epoch has changed and changed again is told as one change; no Python for a row or a partition.
Does not know: retraction, state that expires, RANK and DENSE_RANK; state on disk, where EpochRankOperator looks up each
partition.

The rows of an epoch are put behind those that their partitions had, ordered with them once, and compared place by
place. Only the columns of keys and of the order are looked at; the others are gathered for rows that stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.batch import Batch
from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, is_nested
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.late_rows import Beside, LateRows, Plain, Several, Some, columns_of
from millstream.sql.operators.rank.ordering import Order
from millstream.sql.operators.rank.rank_state import RankState
from millstream.sql.operators.rank.stable_order import stable_order
from millstream.sql.operators.row_runs import KeyColumns, Sorted, can_be_hashed, dense_codes, same_keys
from millstream.sql.types import data_types as t


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
    places = stable_order((*_order_keys(columns, order, len(codes), later_first), codes))
    ordered = codes[places]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    numbers = np.arange(len(places)) - np.repeat(begins, np.diff(np.append(begins, len(places))))
    kept = numbers < limit
    return (places, numbers) if kept.all() else (places[kept], numbers[kept])


def first_of_each(
    codes: np.ndarray, most: int, columns: Sequence[pa.Array], order: Order, *, later_first: bool = False
) -> np.ndarray:
    """The place of the first row of each code, the codes being below `most` and each of them there."""
    found = np.empty(most, dtype=np.int64)
    keys = _order_keys(columns, order, len(codes), later_first)
    if later_first and len(keys) == 2 and (keys[1][1:] <= keys[1][:-1]).all():  # they came last first, as they do
        found[codes] = np.arange(len(codes))
        return found
    places = stable_order(keys) if keys else np.arange(len(codes))
    found[codes[places[::-1]]] = places[::-1]  # of those with one code, the last that is written stays
    return found


def _order_keys(columns: Sequence[pa.Array], order: Order, count: int, later_first: bool) -> list[np.ndarray]:
    """What rows are sorted by, the least important first; none where they are in order."""
    by: list[np.ndarray] = []
    for column, ascending, nulls_first in reversed(order):
        by.append(_order_numbers(columns[column], ascending))
        if columns[column].null_count:
            nulls = columns[column].is_null().to_numpy(zero_copy_only=False)
            by.append(~nulls if nulls_first else nulls)
    return [np.arange(count, 0, -1), *by] if later_first else by


def _order_numbers(column: pa.Array, ascending: bool) -> np.ndarray:
    """A number for each value, in the order of the values; any for NULL."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        numbers = column.cast(pa.int64())
        found: np.ndarray = (pc.fill_null(numbers, 0) if numbers.null_count else numbers).to_numpy()
    else:
        found = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    return found if ascending else ~found


class ColumnarRankOperator(TableOperator):
    """State: the first rows of each partition. Rows wait until the epoch is over, or for a watermark."""

    def __init__(self, context: OperatorContext, ranking: Ranking, state: RankState) -> None:
        super().__init__(context, ranking.output)
        self._ranking = ranking
        self._state = state
        self._keys = KeyColumns([ranking.input.types[i] for i in ranking.partition])
        self._waiting: list[LateRows] = []

    def begin_epoch(self) -> None:
        """Nothing is waiting; all state is in runs."""
        super().begin_epoch()
        self._waiting = []
        rows = self._state.taken_from_keys()
        if rows is not None:
            columns = [rows.field(i) for i in range(len(self._ranking.input))]
            partitions = [columns[i] for i in self._ranking.partition]
            self._state.runs.add(columns, Sorted.of(self._keys.hashes(partitions, len(rows))))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Gather."""
        self._waiting.append(columns_of(batch, len(self._ranking.input)))

    def on_watermark(self, watermark: int) -> None:
        """What changed comes before the watermark."""
        self._take()
        super().on_watermark(watermark)

    def end_epoch(self) -> None:
        """Nothing stays."""
        self._take()

    def _take(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        new = Several(waiting)
        chosen, partition, firsts = self._firsts(new)
        keys = [new.at(i, firsts) for i in self._ranking.partition]
        hashes = self._keys.hashes(keys, len(firsts))
        found = [each for each in self._state.runs.find(keys, hashes, self._keys) if len(each.mine)]
        rows = [Some(Plain(each.run.columns, len(each.run.hashes)), each.places) for each in found]
        group = np.concatenate([*(each.mine for each in found), partition])
        self._compare(Several([*rows, Some(new, chosen)]), group, len(group) - len(chosen), hashes)

    def _firsts(self, new: LateRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which rows may be shown, the number of the partition of each, and the first row of each partition."""
        ranking = self._ranking
        codes, most = dense_codes([new[i] for i in ranking.partition], new.size)
        if ranking.last == 1:
            chosen = first_of_each(codes, most, new, ranking.order, later_first=ranking.later_first)
            return chosen, np.arange(most), chosen
        chosen, numbers = ranked(codes, new, ranking.order, ranking.last)
        return chosen, np.cumsum(numbers == 0) - 1, chosen[numbers == 0]

    def _compare(self, rows: LateRows, group: np.ndarray, known: int, hashes: np.ndarray) -> None:
        """Tell and keep what has changed: the first `known` rows were there."""
        ranking = self._ranking
        if ranking.last == 1:
            kept = first_of_each(group, len(hashes), rows, ranking.order, later_first=ranking.later_first)
            had, numbers, places = np.arange(known), np.zeros_like(kept), np.zeros(known, dtype=np.int64)
        else:
            kept, numbers = ranked(group, rows, ranking.order, ranking.last)
            was = np.arange(known)
            had, places = ranked(group[:known], Some(rows, was), ranking.order, ranking.last)
        width = int(numbers.max()) + 1
        before = np.full((len(hashes), width), -1)
        before[group[had], places] = had
        after = np.full((len(hashes), width), -1)
        after[group[kept], numbers] = kept
        changed = before != after
        replaced = np.nonzero(changed & (before >= 0))
        if len(replaced[0]):
            same = self._same(rows, before[replaced], after[replaced])
            changed[tuple(axis[same] for axis in replaced)] = False
        if not changed.any():
            return
        self._tell(rows, before, after, changed)
        staying = np.sort(kept[changed.any(axis=1)[group[kept]]])  # in this order those of equal order are as they came
        self._state.runs.add(list(Some(rows, staying)), Sorted.of(hashes[group[staying]]))

    def _same(self, rows: LateRows, ours: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Where rows are equal to others; columns in which most differ are looked at first."""
        same = np.arange(len(ours))
        ordered = [column for column, _, _ in self._ranking.order]
        for column in dict.fromkeys((*ordered, *range(len(rows)))):
            if not len(same):
                break
            same = same[same_keys([rows.at(column, ours[same])], [rows.at(column, others[same])])]
        return same

    def _tell(self, rows: LateRows, before: np.ndarray, after: np.ndarray, changed: np.ndarray) -> None:
        ranking = self._ranking
        if not ranking.with_rank and ranking.first == 1 and ranking.last != 1:
            moved, kinds = _moved(before, after)
            self._emit(rows, moved, kinds, None)
            return
        partition, place = np.nonzero(changed[:, ranking.first - 1 :])
        place += ranking.first - 1
        old, new = before[partition, place], after[partition, place]
        twice = (old >= 0) & ranking.before
        ends = np.cumsum(np.where(twice, 2, 1))
        count = int(ends[-1]) if len(ends) else 0
        told, kinds = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int8)
        told[ends - 1], kinds[ends - 1] = new, np.where(old >= 0, UPDATE_AFTER, INSERT)
        told[ends[twice] - 2], kinds[ends[twice] - 2] = old[twice], UPDATE_BEFORE
        self._emit(rows, told, kinds, np.repeat(place + 1, np.where(twice, 2, 1)) if ranking.with_rank else None)

    def _emit(self, rows: LateRows, told: np.ndarray, kinds: np.ndarray, ranks: np.ndarray | None) -> None:
        shown: LateRows = Some(rows, told)
        if ranks is not None:
            shown = Beside(shown, Plain([pa.array(ranks)], len(ranks)))
        self.emit_late(shown, pa.array(kinds) if kinds.any() else None)


def _moved(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows that are no longer, and those that are newly, among the first; partition by partition."""
    gone = (before >= 0) & ~np.isin(before, after)
    come = (after >= 0) & ~np.isin(after, before)
    both = np.concatenate([gone, come], axis=1)
    rows = np.concatenate([before, after], axis=1)[both]
    kinds = np.concatenate([np.full_like(before, DELETE), np.full_like(after, INSERT)], axis=1)[both]
    return rows, kinds.astype(np.int8)

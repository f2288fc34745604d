"""Top-N and deduplication on columns, with mini-batches.

Promises: the final rows and ranks of RankOperator and DeduplicateOperator, for insert-only input; several changes of
one epoch are emitted as one; no Python code for a row or a partition.
Does not know: retractions, state TTL, RANK and DENSE_RANK; state on disk, for which there is EpochRankOperator.

The rows of an epoch are appended to the rows of their partitions, sorted with them once, and compared rank by rank.
Only the columns of keys and of the order are read; the others are gathered for rows that remain."""

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
from millstream.sql.operators.lazy_rows import (
    ConcatenatedRows,
    JoinedRows,
    LazyRows,
    MaterializedRows,
    SelectedRows,
    get_batch_columns,
)
from millstream.sql.operators.mini_batch import MiniBatch
from millstream.sql.operators.rank.ordering import Order, sort_stably
from millstream.sql.operators.rank.rank_state import RankState
from millstream.sql.operators.row_runs import (
    KeyColumns,
    SortedHashes,
    can_be_hashed,
    compare_keys,
    compute_dense_key_codes,
)
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class Ranking:
    """Which rows of each partition are emitted: ranks `first` to `last` in an order.

    Of equal rows the earlier comes first; with `later_first`, which is for one rank only, the later."""

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
    """Return whether the columns can be grouped, sorted and compared by Arrow."""
    ordered = [schema.types[column] for column, _, _ in order]
    return (
        can_be_hashed([schema.types[i] for i in partition])
        and not any(map(is_nested, schema.types))
        and not any(map(t.is_approximate, ordered))
    )


def rank_rows(
    codes: np.ndarray, columns: Sequence[pa.Array], order: Order, limit: int, *, later_first: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indexes of the first `limit` rows of each code, code by code, each in order; and their ranks from
    0."""
    row_indexes = sort_stably((*_order_keys(columns, order, len(codes), later_first), codes))
    ordered = codes[row_indexes]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ranks = np.arange(len(row_indexes)) - np.repeat(begins, np.diff(np.append(begins, len(row_indexes))))
    kept = ranks < limit
    return (row_indexes, ranks) if kept.all() else (row_indexes[kept], ranks[kept])


def find_first_row_of_codes(
    codes: np.ndarray, most: int, columns: Sequence[pa.Array], order: Order, *, later_first: bool = False
) -> np.ndarray:
    """Return the index of the first row of each code; all codes below `most` occur."""
    first_indexes = np.empty(most, dtype=np.int64)
    keys = _order_keys(columns, order, len(codes), later_first)
    if (
        later_first and len(keys) == 2 and (keys[1][1:] <= keys[1][:-1]).all()
    ):  # rows are in ascending order, which is the usual case
        first_indexes[codes] = np.arange(len(codes))
        return first_indexes
    row_indexes = sort_stably(keys) if keys else np.arange(len(codes))
    first_indexes[codes[row_indexes[::-1]]] = row_indexes[
        ::-1
    ]  # assigned from back to front, so that the first row of a code remains
    return first_indexes


def _order_keys(columns: Sequence[pa.Array], order: Order, count: int, later_first: bool) -> list[np.ndarray]:
    """Return the sort keys of rows, the least significant first; none if they keep their order."""
    keys: list[np.ndarray] = []
    for column, ascending, nulls_first in reversed(order):
        keys.append(_order_numbers(columns[column], ascending))
        if columns[column].null_count:
            nulls = columns[column].is_null().to_numpy(zero_copy_only=False)
            keys.append(~nulls if nulls_first else nulls)
    return [np.arange(count, 0, -1), *keys] if later_first else keys


def _order_numbers(column: pa.Array, ascending: bool) -> np.ndarray:
    """Return an integer for each value, in the order of the values; any for NULL."""
    data_type = column.type
    if pa.types.is_integer(data_type) or pa.types.is_timestamp(data_type) or pa.types.is_duration(data_type):
        numbers = column.cast(pa.int64())
        integers: np.ndarray = (pc.fill_null(numbers, 0) if numbers.null_count else numbers).to_numpy()
    else:
        integers = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    return integers if ascending else ~integers


class ColumnarRankOperator(TableOperator):
    """State: the first rows of each partition. Rows are buffered until the epoch ends, a watermark arrives, or the
    mini-batch has `limit` rows."""

    def __init__(self, context: OperatorContext, ranking: Ranking, state: RankState, limit: int | None) -> None:
        super().__init__(context, ranking.output)
        self._ranking = ranking
        self._state = state
        self._keys = KeyColumns([ranking.input.types[i] for i in ranking.partition])
        self._buffer: list[LazyRows] = []
        self._mini_batch = MiniBatch(limit)

    def begin_epoch(self) -> None:
        """Discard rows of a failed attempt, and convert state that is stored by key."""
        super().begin_epoch()
        self._buffer = []
        self._mini_batch.restart()
        rows = self._state.take_from_keys()
        if rows is not None:
            columns = [rows.field(i) for i in range(len(self._ranking.input))]
            partitions = [columns[i] for i in self._ranking.partition]
            self._state.runs.add(columns, SortedHashes.of(self._keys.hashes(partitions, len(rows))))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add the rows to the buffer, and process a full buffer."""
        for part, is_full in self._mini_batch.split(batch):
            self._buffer.append(get_batch_columns(part, len(self._ranking.input)))
            if is_full:
                self._process()

    def on_watermark(self, watermark: int) -> None:
        """Process the buffer, so that changes are emitted before the watermark."""
        self._process()
        super().on_watermark(watermark)

    def end_epoch(self) -> None:
        """Process the buffer."""
        self._process()

    def _process(self) -> None:
        self._mini_batch.restart()
        buffer, self._buffer = self._buffer, []
        if not buffer:
            return
        new = ConcatenatedRows(buffer)
        candidates, partition, firsts = self._find_candidates(new)
        keys = [new.at(i, firsts) for i in self._ranking.partition]
        hashes = self._keys.hashes(keys, len(firsts))
        matches = [match for match in self._state.runs.find(keys, hashes, self._keys) if len(match.key_rows)]
        rows = [
            SelectedRows(MaterializedRows(match.run.columns, len(match.run.hashes)), match.rows) for match in matches
        ]
        group = np.concatenate([*(match.key_rows for match in matches), partition])
        self._compare(
            ConcatenatedRows([*rows, SelectedRows(new, candidates)]), group, len(group) - len(candidates), hashes
        )

    def _find_candidates(self, new: LazyRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows that may be emitted, the partition index of each, and the first row of each partition."""
        ranking = self._ranking
        codes, most = compute_dense_key_codes([new[i] for i in ranking.partition], new.size)
        if ranking.last == 1:
            candidates = find_first_row_of_codes(codes, most, new, ranking.order, later_first=ranking.later_first)
            return candidates, np.arange(most), candidates
        candidates, ranks = rank_rows(codes, new, ranking.order, ranking.last)
        return candidates, np.cumsum(ranks == 0) - 1, candidates[ranks == 0]

    def _compare(self, rows: LazyRows, group: np.ndarray, known: int, hashes: np.ndarray) -> None:
        """Emit and store what has changed; the first `known` rows were in state."""
        ranking = self._ranking
        if ranking.last == 1:
            kept = find_first_row_of_codes(group, len(hashes), rows, ranking.order, later_first=ranking.later_first)
            old_rows, ranks, old_ranks = np.arange(known), np.zeros_like(kept), np.zeros(known, dtype=np.int64)
        else:
            kept, ranks = rank_rows(group, rows, ranking.order, ranking.last)
            stored_rows = np.arange(known)
            old_rows, old_ranks = rank_rows(group[:known], SelectedRows(rows, stored_rows), ranking.order, ranking.last)
        width = int(ranks.max()) + 1
        before = np.full((len(hashes), width), -1)
        before[group[old_rows], old_ranks] = old_rows
        after = np.full((len(hashes), width), -1)
        after[group[kept], ranks] = kept
        changed = before != after
        replaced = np.nonzero(changed & (before >= 0))
        if len(replaced[0]):
            unchanged = self._find_equal(rows, before[replaced], after[replaced])
            changed[tuple(axis[unchanged] for axis in replaced)] = False
        if not changed.any():
            return
        self._emit_changes(rows, before, after, changed)
        remaining = np.sort(
            kept[changed.any(axis=1)[group[kept]]]
        )  # sorted, so that rows of equal order stay in order of arrival
        self._state.runs.add(list(SelectedRows(rows, remaining)), SortedHashes.of(hashes[group[remaining]]))

    def _find_equal(self, rows: LazyRows, own_rows: np.ndarray, other_rows: np.ndarray) -> np.ndarray:
        """Return where rows are equal to others; columns of the order, which differ most often, are compared first."""
        equal = np.arange(len(own_rows))
        ordered = [column for column, _, _ in self._ranking.order]
        for column in dict.fromkeys((*ordered, *range(len(rows)))):
            if not len(equal):
                break
            equal = equal[compare_keys([rows.at(column, own_rows[equal])], [rows.at(column, other_rows[equal])])]
        return equal

    def _emit_changes(self, rows: LazyRows, before: np.ndarray, after: np.ndarray, changed: np.ndarray) -> None:
        ranking = self._ranking
        if not ranking.with_rank and ranking.first == 1 and ranking.last != 1:
            changed_rows, row_kinds = _find_changed_rows(before, after)
            self._emit(rows, changed_rows, row_kinds, None)
            return
        partition, rank = np.nonzero(changed[:, ranking.first - 1 :])
        rank += ranking.first - 1
        old, new = before[partition, rank], after[partition, rank]
        has_update_before = (old >= 0) & ranking.before
        ends = np.cumsum(np.where(has_update_before, 2, 1))
        count = int(ends[-1]) if len(ends) else 0
        output_rows, row_kinds = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int8)
        output_rows[ends - 1], row_kinds[ends - 1] = new, np.where(old >= 0, UPDATE_AFTER, INSERT)
        output_rows[ends[has_update_before] - 2], row_kinds[ends[has_update_before] - 2] = (
            old[has_update_before],
            UPDATE_BEFORE,
        )
        self._emit(
            rows,
            output_rows,
            row_kinds,
            np.repeat(rank + 1, np.where(has_update_before, 2, 1)) if ranking.with_rank else None,
        )

    def _emit(self, rows: LazyRows, output_rows: np.ndarray, row_kinds: np.ndarray, ranks: np.ndarray | None) -> None:
        output: LazyRows = SelectedRows(rows, output_rows)
        if ranks is not None:
            output = JoinedRows(output, MaterializedRows([pa.array(ranks)], len(ranks)))
        self.emit_lazy(output, pa.array(row_kinds) if row_kinds.any() else None)


def _find_changed_rows(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that left and those that entered the result, with row kinds; partition by partition."""
    removed = (before >= 0) & ~np.isin(before, after)
    added = (after >= 0) & ~np.isin(after, before)
    is_changed = np.concatenate([removed, added], axis=1)
    rows = np.concatenate([before, after], axis=1)[is_changed]
    row_kinds = np.concatenate([np.full_like(before, DELETE), np.full_like(after, INSERT)], axis=1)[is_changed]
    return rows, row_kinds.astype(np.int8)

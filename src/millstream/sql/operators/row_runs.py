"""Rows of many keys in a few columnar runs, for operators that look up many keys at once.

Promises: rows are found by the hash of their key with array operations, without Python code for a row or a key. A run
that another worker wrote is used as it was written. Runs of similar size are merged, so that a look-up costs the
logarithm of the number of rows, and a row is written a logarithmic number of times. With `newest`, rows that are added
replace the earlier rows of their key.
Does not know: joins, ranks; whether state is in memory or on disk.

A run is one value of state: a record batch whose first two columns are the sorted hashes of the keys and the row index
of each hash, followed by the columns of the rows in their original order. So wide rows are written as they are, and
only narrow columns are sorted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import arrow_type, combine_columns, to_internal_values
from millstream.sql.types import data_types as t
from millstream.state.deltas import Redistribution
from millstream.state.key_groups import KeyGroupRange
from millstream.state.key_hashes import KeyHasher
from millstream.state.store import ABSENT
from millstream.types.arrow_streams import write_stream_bytes
from millstream.types.factory import Types

_RUNS_TO_MERGE = 8  # this many runs of similar size are merged
_MAX_BYTES = 1 << 25  # bytes; larger runs are not merged
_MAX_BYTES_NEWEST = 1 << 29  # the same for `newest`: merging removes replaced rows
_MAX_CODES = 1 << 62
_MAX_PAIRS = 1 << 18  # pairs in memory at a time
_MIX = np.int64(-7046029254386353131)  # 2**64 divided by the golden ratio
_SHIFT = np.int64(29)


def can_be_hashed(data_types: Sequence[t.DataType]) -> bool:
    """Return whether keys of these types can be compared as Arrow columns: not floating point, not nested."""
    return not any(pa.types.is_floating(arrow) or pa.types.is_nested(arrow) for arrow in map(arrow_type, data_types))


def compute_key_codes(columns: Sequence[pa.Array], count: int) -> np.ndarray:
    """Return a number for each row that is equal for equal keys only; NULL is a value like others."""
    codes = np.zeros(count, dtype=np.int64)
    most = 1
    for column in columns:
        encoded = column.dictionary_encode("encode")
        most *= len(encoded.dictionary) + 1
        if most > _MAX_CODES:
            distinct, codes = np.unique(codes, return_inverse=True)
            most = (len(distinct) + 1) * (len(encoded.dictionary) + 1)
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
    return codes


def compute_dense_key_codes(columns: Sequence[pa.Array], count: int) -> tuple[np.ndarray, int]:
    """Return a number for each row as `compute_key_codes` does, and an upper bound close to the number of rows."""
    if len(columns) == 1:
        encoded = columns[0].dictionary_encode("encode")
    else:
        encoded = pa.array(compute_key_codes(columns, count)).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)


class KeyColumns:
    """Hashes of keys. `exact` means that different keys have different hashes, except for NULL."""

    def __init__(self, data_types: Sequence[t.DataType]) -> None:
        types = [arrow_type(data_type) for data_type in data_types]
        self._whole = [_is_integer(arrow) for arrow in types]
        self._hasher = KeyHasher()
        self.exact = len(types) == 0 or (len(types) == 1 and self._whole[0])

    def hashes(self, columns: Sequence[pa.Array], count: int) -> np.ndarray:
        """Return the hash of each row; NULL is hashed like some value."""
        column_hashes = [
            self._number_keys(column, is_integer) for column, is_integer in zip(columns, self._whole, strict=True)
        ]
        if len(column_hashes) < 2:
            return column_hashes[0] if column_hashes else np.zeros(count, dtype=np.int64)
        mixed = column_hashes[0]
        for next_hashes in column_hashes[1:]:
            mixed = (mixed ^ (mixed >> _SHIFT)) * _MIX + next_hashes
        return mixed ^ (mixed >> _SHIFT)  # type: ignore[no-any-return]

    def _number_keys(self, column: pa.Array, is_integer: bool) -> np.ndarray:
        if not is_integer:
            return self._hasher.of_column(column).view(np.int64)
        numbers = column.cast(pa.int32()) if column.type.bit_width == 32 else column
        numbers = numbers.cast(pa.int64())
        return (pc.fill_null(numbers, 0) if numbers.null_count else numbers).to_numpy()  # type: ignore[no-any-return]


def _is_integer(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_timestamp(data_type) or pa.types.is_date32(data_type))


@dataclass(frozen=True, slots=True)
class Run:
    """Rows in their original order, and the sorted hashes of their keys with the row index of each. Later runs have a
    greater `age`."""

    name: str
    data: bytes | memoryview
    index: SortedHashes
    columns: list[pa.Array]

    @property
    def hashes(self) -> np.ndarray:
        """Return the hashes of the keys, sorted."""
        return self.index.hashes

    @property
    def age(self) -> tuple[int, ...]:
        """Return the order of writing; restored runs are older than runs written after the restore."""
        restored, _, last = self.name.rpartition("/")
        return (-restored.count("/") - bool(restored), *map(int, last.split("-")))

    def pairs(self, looked_for: SortedHashes) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Iterate over pairs of equal hashes: (row index of `looked_for`, row index of this run)."""
        for looked_up, positions in looked_for.pairs(self.hashes):
            yield looked_up, self.index.order[positions]


class RunMatch(NamedTuple):
    """Matching rows of a run: `rows` are their indexes, `key_rows` those of the keys that were looked up."""

    run: Run
    key_rows: np.ndarray
    rows: np.ndarray


class RowRuns:
    """The runs of one state of a subtask."""

    def __init__(
        self,
        context: OperatorContext,
        name: str,
        schema: t.RowType,
        keys: Sequence[int],
        *,
        newest: bool = False,
        partition_columns: Sequence[int] | None = None,
    ) -> None:
        """Create the state. Rows are partitioned by `partition_columns` of their key, or by the whole key."""
        self._context, self._schema, self._keys, self._newest = context, schema, tuple(keys), newest
        self._partition_columns = tuple(keys if partition_columns is None else partition_columns)
        self._exact = KeyColumns([schema.types[i] for i in keys]).exact
        self._table = context.state.table(
            name,
            Types.PRIMITIVE_ARRAY(Types.BYTE()),
            Redistribution.CUT,
            key_type=Types.STRING(),
            restrict=self._restrict,
        )
        self._known: dict[str, Run] = {}

    def runs(self) -> list[Run]:
        """Return the runs, the oldest first. The state may have been changed by another worker since the last call."""
        runs: dict[str, Run] = {}
        for name, data in self._table.chunks():
            known = self._known.get(name)
            runs[name] = known if known is not None and known.data is data else _decode_run(name, data)
        self._known = runs
        return sorted(runs.values(), key=lambda run: run.age)

    def add(self, columns: Sequence[pa.Array], index: SortedHashes) -> None:
        """Add rows as a run, and merge it with earlier runs of similar size."""
        if not len(index.order):
            return
        runs = self.runs()
        size = sum(column.nbytes for column in columns)
        largest = _MAX_BYTES_NEWEST if self._newest else _MAX_BYTES
        merged: list[Run] = []
        while True:
            alike = runs[len(runs) - len(merged) - (_RUNS_TO_MERGE - 1) : len(runs) - len(merged)]
            if len(alike) < _RUNS_TO_MERGE - 1 or any(len(run.data) > 2 * size for run in alike) or size > largest:
                break
            merged = [*alike, *merged]
            size += sum(len(run.data) for run in alike)
        for run in merged:
            self._table.delete(None, run.name)
        name = f"{self._context.epoch}-{runs[-1].age[-1] + 1 if runs else 0}"
        parts = [*((run.index, run.columns) for run in merged), (index, columns)]
        self._table.put(None, name, _encode_run(*self._merge(parts)))

    def _merge(self, parts: list[tuple[SortedHashes, Sequence[pa.Array]]]) -> tuple[SortedHashes, Sequence[pa.Array]]:
        """Merge runs, the oldest first, and return the index and columns of all rows."""
        if len(parts) == 1:
            return parts[0]
        index = SortedHashes.merge([part_index for part_index, _ in parts])
        tables = [columns for _, columns in parts]
        if self._newest:
            counts = np.array([len(part_index.order) for part_index, _ in parts])
            kept = self._find_newest(index, counts, tables)
            if not kept.all():
                cut = np.split(kept, np.cumsum(counts)[:-1])
                tables = [_take_rows(columns, rows) for columns, rows in zip(tables, cut, strict=True)]
                index = index.select(kept)
        return index, [pa.concat_arrays(column) for column in zip(*tables, strict=True)]

    def _find_newest(self, index: SortedHashes, counts: np.ndarray, tables: Sequence[Sequence[pa.Array]]) -> np.ndarray:
        """Return which rows are not replaced by a row with the same key in a later part."""
        part = np.repeat(np.arange(len(counts)), counts)
        keys = [pa.concat_arrays([columns[i] for columns in tables]) for i in self._keys]
        ordered, order = index.hashes, index.order  # of one hash, those of the newest part are last
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
        last = np.repeat(order[ends], np.diff(ends, prepend=-1))
        replaced = np.flatnonzero(part[order] != part[last])
        old, new = order[replaced], last[replaced]
        if len(replaced) and not (self._exact and _have_no_nulls(keys)):
            ours, theirs = ([key.take(pa.array(rows)) for key in keys] for rows in (old, new))
            if not compare_keys(ours, theirs).all():
                return self._find_newest_by_key(keys, part)
        kept = np.ones(len(part), dtype=bool)
        kept[old] = False
        return kept

    @staticmethod
    def _find_newest_by_key(keys: Sequence[pa.Array], part: np.ndarray) -> np.ndarray:
        """Do the same as `_find_newest`, for different keys with the same hash."""
        codes, code_count = compute_dense_key_codes(keys, len(part))
        last_part = np.zeros(code_count, dtype=np.int64)
        np.maximum.at(last_part, codes, part)
        return part == last_part[codes]  # type: ignore[no-any-return]

    def rows(self) -> pa.Array | None:
        """Return all current rows as an array of a batch; None if there are none."""
        runs = self.runs()
        if not runs:
            return None
        index, columns = self._merge([(run.index, run.columns) for run in runs])
        return combine_columns(columns, None, self._schema, len(index.order))

    def find(self, keys: Sequence[pa.Array], hashes: np.ndarray, columns: KeyColumns) -> list[RunMatch]:
        """Return the rows of distinct keys; with `newest`, only current rows."""
        looked_for, matches = SortedHashes.of(hashes), []
        newest = np.full(len(hashes), -1)
        for age, run in enumerate(self.runs()):
            others = [run.columns[i] for i in self._keys]
            exact = columns.exact and _have_no_nulls([*keys, *others])
            for key_rows, run_rows in run.pairs(looked_for):
                if not exact:
                    own_keys = [key.take(pa.array(key_rows)) for key in keys]
                    is_equal = compare_keys(own_keys, [other.take(pa.array(run_rows)) for other in others])
                    key_rows, run_rows = key_rows[is_equal], run_rows[is_equal]
                newest[key_rows] = age
                matches.append((age, RunMatch(run, key_rows, run_rows)))
        if not self._newest:
            return [match for _, match in matches]
        return [
            RunMatch(match.run, *_select(newest[match.key_rows] == age, match.key_rows, match.rows))
            for age, match in matches
        ]

    def clear(self) -> None:
        """Delete all rows."""
        self._table.clear_namespace(None)

    def _restrict(self, data: bytes, groups: KeyGroupRange) -> Any:
        """Return the rows of a run whose keys are in some key groups, for a change of parallelism."""
        run = _decode_run("", data)
        columns, data_types = (
            [run.columns[i] for i in self._partition_columns],
            [self._schema.types[i] for i in self._partition_columns],
        )
        is_kept = np.zeros(len(run.hashes), dtype=bool)
        is_kept[take_rows_of_key_groups(columns, data_types, self._context, groups, len(is_kept))] = True
        return _encode_run(run.index.select(is_kept), _take_rows(run.columns, is_kept)) if is_kept.any() else ABSENT


def take_rows_of_key_groups(
    columns: Sequence[pa.Array],
    data_types: Sequence[t.DataType],
    context: OperatorContext,
    groups: KeyGroupRange,
    count: int,
) -> np.ndarray:
    """Return the rows whose keys are in some key groups; rows without a key are all in one subtask."""
    grouper = context.state.grouper
    if not columns:
        return np.arange(count) if groups.contains(grouper.of(None)) else np.arange(0)
    if len(columns) == 1:
        key_groups = grouper.of_column(columns[0])
    else:
        values = [to_internal_values(column, data_type) for column, data_type in zip(columns, data_types, strict=True)]
        key_groups = grouper.of_many(list(zip(*values, strict=True)))
    return np.flatnonzero((key_groups >= groups.start) & (key_groups <= groups.end))


def _have_no_nulls(columns: Sequence[pa.Array]) -> bool:
    return not any(column.null_count for column in columns)


def _select(mask: np.ndarray, *arrays: np.ndarray) -> Iterator[np.ndarray]:
    return (array if mask.all() else array[mask] for array in arrays)


def _take_rows(columns: Sequence[pa.Array], kept: np.ndarray) -> list[pa.Array]:
    row_indexes = pa.array(np.flatnonzero(kept))
    return [column.take(row_indexes) for column in columns]


def _encode_run(index: SortedHashes, columns: Sequence[pa.Array]) -> bytes:
    """Encode a run for state."""
    heads = [pa.array(index.hashes), pa.array(index.order.astype(np.int32, copy=False))]
    names = ["hash", "row", *(str(i) for i in range(len(columns)))]
    return write_stream_bytes(pa.RecordBatch.from_arrays([*heads, *columns], names))


def _decode_run(name: str, data: bytes | memoryview) -> Run:
    batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
    return Run(name, data, SortedHashes(batch.column(0).to_numpy(), batch.column(1).to_numpy()), batch.columns[2:])


@dataclass(frozen=True, slots=True)
class SortedHashes:
    """Hashes of rows, sorted, and the row index of each."""

    hashes: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, hashes: np.ndarray) -> SortedHashes:
        """Sort the hashes of rows."""
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], order)

    @classmethod
    def merge(cls, parts: Sequence[SortedHashes]) -> SortedHashes:
        """Concatenate the rows of several parts. Stable sorting of sorted parts is a merge, which is faster than a full
        sort."""
        hashes = np.concatenate([part.hashes for part in parts])
        begins = np.cumsum([0, *(len(part.order) for part in parts)])
        rows = np.concatenate([part.order + begin for part, begin in zip(parts, begins[:-1], strict=True)])
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], rows[order])

    def select(self, kept: np.ndarray) -> SortedHashes:
        """Return the index of the kept rows; `kept` has a boolean for each row."""
        is_kept = kept[self.order]
        return SortedHashes(self.hashes[is_kept], (np.cumsum(kept) - 1)[self.order[is_kept]])

    def pairs(self, others: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Iterate over pairs of equal hashes: (own row index, position in `others`, which are sorted as well).

        The pairs are returned in pieces, so that a key with many rows on both sides does not need memory for all of its
        pairs."""
        if len(others) < len(self.hashes):
            for theirs, mine in _find_pairs(others, self.hashes):
                yield self.order[mine], theirs
        else:
            for mine, theirs in _find_pairs(self.hashes, others):
                yield self.order[mine], theirs


def _find_pairs(few: np.ndarray, many: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if not len(few) or not len(many):
        return
    first = np.searchsorted(many, few, "left")
    matching = np.flatnonzero(many[np.minimum(first, len(many) - 1)] == few)
    if not len(matching):
        return
    first = first[matching]
    counts = np.searchsorted(many, few[matching], "right") - first
    total = np.cumsum(counts)
    begin = 0
    while begin < len(matching):
        done_count = int(total[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, done_count + _MAX_PAIRS, "right")))
        piece_counts = counts[begin:end]
        starts = np.repeat(first[begin:end] - (total[begin:end] - piece_counts - done_count), piece_counts)
        yield np.repeat(matching[begin:end], piece_counts), starts + np.arange(len(starts))
        begin = end


def compare_keys(own_columns: Sequence[pa.Array], others: Sequence[pa.Array]) -> np.ndarray:
    """Return for each row whether its key is equal to the key next to it; NULL is equal to NULL."""
    is_equal = np.ones(len(own_columns[0]), dtype=bool)
    for left, right in zip(own_columns, others, strict=True):
        columns_equal = pc.fill_null(pc.equal(left, right), False)
        if left.null_count and right.null_count:
            columns_equal = pc.or_(columns_equal, pc.and_(pc.is_null(left), pc.is_null(right)))
        is_equal &= columns_equal.to_numpy(zero_copy_only=False)
    return is_equal

"""Rows of many keys as a few runs of columns, for operators that look up many keys at once.

Promises: rows are found by the hash of their key with whole arrays, without Python for a row or a key; a run that
another worker wrote is used as it was written. Runs become fewer and larger as they grow in number, so that a look-up
costs a logarithm of the rows and a row is rewritten a logarithmic number of times. With `newest`, the rows of a key
that are added replace those it had.
Does not know: joins, ranks; whether state is in memory or on disk.

A run is one value of state: a record batch of the rows as they came, before whose columns stand the hashes of the keys
in order and the row that each hash is of. So wide rows are written as they are, and only narrow columns are sorted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import arrow_type, internal_values, struct_of
from millstream.sql.types import data_types as t
from millstream.state.deltas import Redistribution
from millstream.state.key_groups import KeyGroupRange
from millstream.state.key_hashes import KeyHasher
from millstream.state.store import ABSENT
from millstream.types.arrow_streams import stream_bytes
from millstream.types.factory import Types

_MERGED = 8  # as many runs of one size become one
_LARGEST = 1 << 25  # bytes; a run that has more is left alone
_LARGEST_REPLACED = 1 << 29  # the same where rows replace others, which go when runs become one
_MOST_CODES = 1 << 62
_PAIRS = 1 << 18  # pairs that are held at a time
_MIX = np.int64(-7046029254386353131)  # the golden ratio as a number of 64 bits
_SHIFT = np.int64(29)


def can_be_hashed(kinds: Sequence[t.DataType]) -> bool:
    """Whether equal values of these types are equal columns: not floating point, not nested."""
    return not any(pa.types.is_floating(each) or pa.types.is_nested(each) for each in map(arrow_type, kinds))


def codes_of(columns: Sequence[pa.Array], count: int) -> np.ndarray:
    """A number for each row, equal for equal keys and for no others; NULL is a value like any other."""
    codes = np.zeros(count, dtype=np.int64)
    most = 1
    for column in columns:
        found = column.dictionary_encode("encode")
        most *= len(found.dictionary) + 1
        if most > _MOST_CODES:
            distinct, codes = np.unique(codes, return_inverse=True)
            most = (len(distinct) + 1) * (len(found.dictionary) + 1)
        codes = codes * len(found.dictionary) + found.indices.to_numpy(zero_copy_only=False)
    return codes


def dense_codes(columns: Sequence[pa.Array], count: int) -> tuple[np.ndarray, int]:
    """A number for each row as `codes_of` has it, and how many there are at most: not many more than rows."""
    if len(columns) == 1:
        found = columns[0].dictionary_encode("encode")
    else:
        found = pa.array(codes_of(columns, count)).dictionary_encode()
    return found.indices.to_numpy(zero_copy_only=False), len(found.dictionary)


class KeyColumns:
    """The key of rows as one number each. `exact` says that different keys have different numbers, but for NULL."""

    def __init__(self, kinds: Sequence[t.DataType]) -> None:
        types = [arrow_type(kind) for kind in kinds]
        self._whole = [_is_whole(each) for each in types]
        self._hasher = KeyHasher()
        self.exact = len(types) == 0 or (len(types) == 1 and self._whole[0])

    def hashes(self, columns: Sequence[pa.Array], count: int) -> np.ndarray:
        """The number of each row; NULL counts as some value."""
        found = [self._numbers(column, whole) for column, whole in zip(columns, self._whole, strict=True)]
        if len(found) < 2:
            return found[0] if found else np.zeros(count, dtype=np.int64)
        mixed = found[0]
        for more in found[1:]:
            mixed = (mixed ^ (mixed >> _SHIFT)) * _MIX + more
        return mixed ^ (mixed >> _SHIFT)  # type: ignore[no-any-return]

    def _numbers(self, column: pa.Array, whole: bool) -> np.ndarray:
        if not whole:
            return self._hasher.of_column(column).view(np.int64)
        numbers = column.cast(pa.int32()) if column.type.bit_width == 32 else column
        numbers = numbers.cast(pa.int64())
        return (pc.fill_null(numbers, 0) if numbers.null_count else numbers).to_numpy()  # type: ignore[no-any-return]


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


@dataclass(frozen=True, slots=True)
class Run:
    """Rows as they came, and the hashes of their keys in order with the row that each is of. `age` is greater for what
    was written later."""

    name: str
    data: bytes | memoryview
    index: Sorted
    columns: list[pa.Array]

    @property
    def hashes(self) -> np.ndarray:
        """The hashes of the keys, in order."""
        return self.index.hashes

    @property
    def age(self) -> tuple[int, ...]:
        """State that was restored is older than what came after, each time it was."""
        restored, _, own = self.name.rpartition("/")
        return (-restored.count("/") - bool(restored), *map(int, own.split("-")))

    def pairs(self, looked_for: Sorted) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(row that is looked for, own row) of each pair of equal hashes."""
        for mine, found in looked_for.pairs(self.hashes):
            yield mine, self.index.order[found]


class Found(NamedTuple):
    """Rows of a run: those at `places`, of the keys at `mine`."""

    run: Run
    mine: np.ndarray
    places: np.ndarray


class RowRuns:
    """The rows of one kind that a subtask holds."""

    def __init__(
        self,
        context: OperatorContext,
        name: str,
        schema: t.RowType,
        keys: Sequence[int],
        *,
        newest: bool = False,
        dealt: Sequence[int] | None = None,
    ) -> None:
        """Rows are dealt out by the columns `dealt` of their keys, or by all of them."""
        self._context, self._schema, self._keys, self._newest = context, schema, tuple(keys), newest
        self._dealt = tuple(keys if dealt is None else dealt)
        self._exact = KeyColumns([schema.types[i] for i in keys]).exact
        self._table = context.state.table(
            name,
            Types.PRIMITIVE_ARRAY(Types.BYTE()),
            Redistribution.CUT,
            key_type=Types.STRING(),
            restrict=self._cut,
        )
        self._known: dict[str, Run] = {}

    def runs(self) -> list[Run]:
        """What is there, the oldest first. State may have been changed by another worker, or may be as before."""
        found: dict[str, Run] = {}
        for name, data in self._table.chunks():
            known = self._known.get(name)
            found[name] = known if known is not None and known.data is data else _run(name, data)
        self._known = found
        return sorted(found.values(), key=lambda run: run.age)

    def add(self, columns: Sequence[pa.Array], index: Sorted) -> None:
        """Keep rows; they may be put together with runs that are there."""
        if not len(index.order):
            return
        runs = self.runs()
        size = sum(column.nbytes for column in columns)
        largest = _LARGEST_REPLACED if self._newest else _LARGEST
        small: list[Run] = []
        while True:
            alike = runs[len(runs) - len(small) - (_MERGED - 1) : len(runs) - len(small)]
            if len(alike) < _MERGED - 1 or any(len(run.data) > 2 * size for run in alike) or size > largest:
                break
            small = [*alike, *small]
            size += sum(len(run.data) for run in alike)
        for run in small:
            self._table.delete(None, run.name)
        name = f"{self._context.epoch}-{runs[-1].age[-1] + 1 if runs else 0}"
        parts = [*((run.index, run.columns) for run in small), (index, columns)]
        self._table.put(None, name, _written(*self._together(parts)))

    def _together(self, parts: list[tuple[Sorted, Sequence[pa.Array]]]) -> tuple[Sorted, Sequence[pa.Array]]:
        """Rows of several runs, the oldest first, as one: their hashes and columns."""
        if len(parts) == 1:
            return parts[0]
        index = Sorted.together([each for each, _ in parts])
        tables = [columns for _, columns in parts]
        if self._newest:
            counts = np.array([len(each.order) for each, _ in parts])
            kept = self._newest_of(index, counts, tables)
            if not kept.all():
                cut = np.split(kept, np.cumsum(counts)[:-1])
                tables = [_rows_of(columns, rows) for columns, rows in zip(tables, cut, strict=True)]
                index = index.only(kept)
        return index, [pa.concat_arrays(column) for column in zip(*tables, strict=True)]

    def _newest_of(self, index: Sorted, counts: np.ndarray, tables: Sequence[Sequence[pa.Array]]) -> np.ndarray:
        """Which rows no later part replaces, by the keys that it has."""
        part = np.repeat(np.arange(len(counts)), counts)
        keys = [pa.concat_arrays([columns[i] for columns in tables]) for i in self._keys]
        ordered, order = index.hashes, index.order  # of one hash, those of the newest part are last
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
        last = np.repeat(order[ends], np.diff(ends, prepend=-1))
        replaced = np.flatnonzero(part[order] != part[last])
        old, new = order[replaced], last[replaced]
        if len(replaced) and not (self._exact and _without_null(keys)):
            ours, theirs = ([key.take(pa.array(rows)) for key in keys] for rows in (old, new))
            if not same_keys(ours, theirs).all():
                return self._newest_by_key(keys, part)
        kept = np.ones(len(part), dtype=bool)
        kept[old] = False
        return kept

    @staticmethod
    def _newest_by_key(keys: Sequence[pa.Array], part: np.ndarray) -> np.ndarray:
        """The same, where different keys have one hash."""
        codes, most = dense_codes(keys, len(part))
        last = np.zeros(most, dtype=np.int64)
        np.maximum.at(last, codes, part)
        return part == last[codes]  # type: ignore[no-any-return]

    def rows(self) -> pa.Array | None:
        """All rows that count as an array of a batch; None for none."""
        runs = self.runs()
        if not runs:
            return None
        index, columns = self._together([(run.index, run.columns) for run in runs])
        return struct_of(columns, None, self._schema, len(index.order))

    def find(self, keys: Sequence[pa.Array], hashes: np.ndarray, columns: KeyColumns) -> list[Found]:
        """The rows of keys, each of which is asked for once; with `newest`, those that count."""
        looked_for, found = Sorted.of(hashes), []
        newest = np.full(len(hashes), -1)
        for age, run in enumerate(self.runs()):
            others = [run.columns[i] for i in self._keys]
            exact = columns.exact and _without_null([*keys, *others])
            for mine, theirs in run.pairs(looked_for):
                if not exact:
                    ours = [key.take(pa.array(mine)) for key in keys]
                    same = same_keys(ours, [other.take(pa.array(theirs)) for other in others])
                    mine, theirs = mine[same], theirs[same]
                newest[mine] = age
                found.append((age, Found(run, mine, theirs)))
        if not self._newest:
            return [each for _, each in found]
        return [Found(each.run, *_only(newest[each.mine] == age, each.mine, each.places)) for age, each in found]

    def clear(self) -> None:
        """Forget all rows."""
        self._table.clear_namespace(None)

    def _cut(self, data: bytes, groups: KeyGroupRange) -> Any:
        """The rows of a run whose keys are in some key groups."""
        run = _run("", data)
        columns, kinds = [run.columns[i] for i in self._dealt], [self._schema.types[i] for i in self._dealt]
        mine = np.zeros(len(run.hashes), dtype=bool)
        mine[of_key_groups(columns, kinds, self._context, groups, len(mine))] = True
        return _written(run.index.only(mine), _rows_of(run.columns, mine)) if mine.any() else ABSENT


def of_key_groups(
    columns: Sequence[pa.Array],
    kinds: Sequence[t.DataType],
    context: OperatorContext,
    groups: KeyGroupRange,
    count: int,
) -> np.ndarray:
    """Which rows are in some key groups, as they were dealt out; rows without a key are all in one subtask."""
    grouper = context.state.grouper
    if not columns:
        return np.arange(count) if groups.contains(grouper.of(None)) else np.arange(0)
    if len(columns) == 1:
        found = grouper.of_column(columns[0])
    else:
        values = [internal_values(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        found = grouper.of_many(list(zip(*values, strict=True)))
    return np.flatnonzero((found >= groups.start) & (found <= groups.end))


def _without_null(columns: Sequence[pa.Array]) -> bool:
    return not any(column.null_count for column in columns)


def _only(holds: np.ndarray, *arrays: np.ndarray) -> Iterator[np.ndarray]:
    return (each if holds.all() else each[holds] for each in arrays)


def _rows_of(columns: Sequence[pa.Array], kept: np.ndarray) -> list[pa.Array]:
    places = pa.array(np.flatnonzero(kept))
    return [column.take(places) for column in columns]


def _written(index: Sorted, columns: Sequence[pa.Array]) -> bytes:
    """A run as state keeps it."""
    heads = [pa.array(index.hashes), pa.array(index.order.astype(np.int32, copy=False))]
    names = ["hash", "row", *(str(i) for i in range(len(columns)))]
    return stream_bytes(pa.RecordBatch.from_arrays([*heads, *columns], names))


def _run(name: str, data: bytes | memoryview) -> Run:
    batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
    return Run(name, data, Sorted(batch.column(0).to_numpy(), batch.column(1).to_numpy()), batch.columns[2:])


@dataclass(frozen=True, slots=True)
class Sorted:
    """Hashes of rows in order, and which row each of them is of."""

    hashes: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, hashes: np.ndarray) -> Sorted:
        """The hash of each row, in order."""
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], order)

    @classmethod
    def together(cls, parts: Sequence[Sorted]) -> Sorted:
        """The rows of one behind those of the others. Merging what is in order takes a fraction of sorting anew."""
        hashes = np.concatenate([part.hashes for part in parts])
        begins = np.cumsum([0, *(len(part.order) for part in parts)])
        rows = np.concatenate([part.order + begin for part, begin in zip(parts, begins[:-1], strict=True)])
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], rows[order])

    def only(self, kept: np.ndarray) -> Sorted:
        """Without the rows that are not kept: of each row, `kept` says whether it is."""
        there = kept[self.order]
        return Sorted(self.hashes[there], (np.cumsum(kept) - 1)[self.order[there]])

    def pairs(self, others: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(own row, place among the others) of each pair of equal hashes; the others are in order, too.

        They come in pieces, so that a key of many rows on both sides does not need memory for all of its pairs."""
        if len(others) < len(self.hashes):
            for theirs, mine in _pairs(others, self.hashes):
                yield self.order[mine], theirs
        else:
            for mine, theirs in _pairs(self.hashes, others):
                yield self.order[mine], theirs


def _pairs(few: np.ndarray, many: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if not len(few) or not len(many):
        return
    first = np.searchsorted(many, few, "left")
    found = np.flatnonzero(many[np.minimum(first, len(many) - 1)] == few)
    if not len(found):
        return
    first = first[found]
    counts = np.searchsorted(many, few[found], "right") - first
    total = np.cumsum(counts)
    begin = 0
    while begin < len(found):
        done = int(total[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, done + _PAIRS, "right")))
        some = counts[begin:end]
        starts = np.repeat(first[begin:end] - (total[begin:end] - some - done), some)
        yield np.repeat(found[begin:end], some), starts + np.arange(len(starts))
        begin = end


def same_keys(own: Sequence[pa.Array], others: Sequence[pa.Array]) -> np.ndarray:
    """Of rows side by side, which have equal keys; NULL is equal to NULL."""
    same = np.ones(len(own[0]), dtype=bool)
    for one, other in zip(own, others, strict=True):
        equal = pc.fill_null(pc.equal(one, other), False)
        if one.null_count and other.null_count:
            equal = pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other)))
        same &= equal.to_numpy(zero_copy_only=False)
    return same

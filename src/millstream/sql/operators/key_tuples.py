"""Hashes of keys of several columns, for whole columns at once.

Promises: the hash of a row is `stable_hash` of the tuple of its values, or there is none for any of them: for types
whose values are not written as whole numbers or texts are, and for keys that are long.
Does not know: key groups, state.

The bytes that `key_bytes` gives a tuple are put together column by column: of each value the length of its form, a tag
and the value."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.operators.number_tuples import number_tuple_hashes
from millstream.sql.operators.row_runs import dense_codes
from millstream.state.key_groups import stable_hash
from millstream.state.xxh3 import LONGEST, ShortStrings
from millstream.types.arrow_types import python_values

_TUPLE = b"("
_NULL = pa.scalar((1).to_bytes(4, "little") + b"0", pa.binary())
_BEFORE_1970 = 719_163  # days of the calendar
_MANY = 32  # keys that are worth hashing as columns
_TELLING_OF_RUNS = 64  # rows that say for how long keys are alike
_TELLING = 1024  # rows that say how often keys come again
_WORTH = 4  # rows of one key, one behind the other, that are worth finding
_WIDER = np.array([1 << bits for bits in range(7, 64, 8)], dtype=np.uint64)  # from these on, a byte more is needed


def tuple_hashes(columns: Sequence[pa.Array]) -> np.ndarray | None:
    """The hash of each row of columns of equal length; None where they must be hashed one by one."""
    plain = all(pa.types.is_signed_integer(each.type) and not each.null_count for each in columns)
    if plain and len(columns[0]) >= _MANY:
        found = number_tuple_hashes([column.cast(pa.int64()).to_numpy() for column in columns])
        if found is not None:
            return found
    return once_each(columns, _hashes) if all(_has_form(column.type) for column in columns) else None


def once_each(
    columns: Sequence[pa.Array], compute: Callable[[Sequence[pa.Array]], np.ndarray | None]
) -> np.ndarray | None:
    """What is computed of each row's key: of each key once where keys come again and again."""
    found = _in_runs(columns) or _again(columns)
    if found is None:
        return compute(columns)
    rows, which = found
    made = compute([column.take(pa.array(rows)) for column in columns])
    return None if made is None else made[which]


Repeated = tuple[np.ndarray, np.ndarray]  # rows that have all keys, and which of them has the key of each row


def _in_runs(columns: Sequence[pa.Array]) -> Repeated | None:
    """Rows whose keys are alike for long, as those are that come out of windows."""
    count = len(columns[0])
    seen: list[np.ndarray] = []
    for some in (_TELLING_OF_RUNS, count):
        seen = [pc.run_end_encode(column.slice(0, some)).run_ends.to_numpy() for column in columns]
        if sum(map(len, seen)) * _WORTH > some:
            return None
    ends = np.unique(np.concatenate(seen))
    return ends - 1, np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))


def _again(columns: Sequence[pa.Array]) -> Repeated | None:
    """Rows whose keys come again anywhere."""
    count = len(columns[0])
    for some in (_TELLING, count):
        codes, most = dense_codes([column.slice(0, some) for column in columns], min(some, count))
        if 2 * most > some:
            return None
    rows = np.empty(most, dtype=np.int64)
    rows[codes] = np.arange(count)
    return rows, codes


def _one_by_one(columns: Sequence[pa.Array]) -> np.ndarray:
    keys = zip(*map(python_values, columns), strict=True)
    return np.array([stable_hash(key) for key in keys], dtype=np.uint64)


def _hashes(columns: Sequence[pa.Array]) -> np.ndarray | None:
    if len(columns[0]) < _MANY:
        return _one_by_one(columns)
    forms = []
    for column in columns:
        form = _forms(column)
        forms.append(pc.if_else(pc.is_null(column), _NULL, form) if column.null_count else form)
    strings = ShortStrings(pc.binary_join_element_wise(*forms, pa.scalar(b"", pa.binary())), _TUPLE)
    return strings.hashes() if strings.lengths.max(initial=0) <= LONGEST else None


def _has_form(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.unit in ("ms", "us") and kind.tz in (None, "UTC")
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind))


def _forms(column: pa.Array) -> pa.Array:
    """The form of each value and before it its length; any for NULL."""
    kind = column.type
    if pa.types.is_string(kind):
        return _of_texts(column)
    if pa.types.is_integer(kind):
        return _of_numbers(column.cast(pa.int64()), b"i")
    if pa.types.is_date32(kind):
        days = column.cast(pa.int32()).cast(pa.int64())
        return _of_numbers(pc.add(days, _BEFORE_1970), b"Di")
    moments = column.cast(pa.int64())
    tag = b"di" if kind.tz is None else b"ui"
    return _of_numbers(moments if kind.unit == "us" else pc.multiply(moments, 1000), tag)


def _of_numbers(column: pa.Array, tag: bytes) -> pa.Array:
    numbers = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
    sizes = 1 + np.searchsorted(_WIDER, np.abs(numbers).view(np.uint64), "right")
    head = 4 + len(tag)
    offsets = np.zeros(len(numbers) + 1, dtype=np.int32)
    np.cumsum(sizes + head, out=offsets[1:])
    data = np.zeros(int(offsets[-1]), dtype=np.uint8)
    starts = offsets[:-1]
    data[starts] = sizes + len(tag)
    for place, sign in enumerate(tag, 4):
        data[starts + place] = sign
    for place in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > place)
        # the one number that needs nine bytes is negative: its last byte is like the eighth of any that is
        data[starts[rows] + head + place] = (numbers[rows] >> min(8 * place, 63)).astype(np.uint8)
    return _binary(offsets, data)


def _of_texts(column: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy()
    heads = np.zeros((len(column), 5), dtype=np.uint8)
    heads[:, :4] = (lengths + 1).astype("<u4").view(np.uint8).reshape(-1, 4)
    heads[:, 4] = ord("s")
    offsets = np.arange(0, 5 * len(column) + 1, 5, dtype=np.int32)
    texts = column.cast(pa.binary())
    return pc.binary_join_element_wise(_binary(offsets, heads), texts, pa.scalar(b"", pa.binary()))


def _binary(offsets: np.ndarray, data: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])

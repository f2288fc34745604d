"""Hashes of keys of several columns, for whole columns at once.

Promises: the hash of a row is `stable_hash` of the tuple of its values, or there is none for any of them: for types
whose values are not written as whole numbers or texts are, and for keys that are long.
Does not know: key groups, state.

The bytes that `key_bytes` gives a tuple are put together column by column: of each value the length of its form, a tag
and the value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.state.xxh3 import LONGEST, ShortStrings

_TUPLE = b"("
_NULL = pa.scalar((1).to_bytes(4, "little") + b"0", pa.binary())
_BEFORE_1970 = 719_163  # days of the calendar
_WIDER = np.array([1 << bits for bits in range(7, 64, 8)], dtype=np.uint64)  # from these on, a byte more is needed


def tuple_hashes(columns: Sequence[pa.Array]) -> np.ndarray | None:
    """The hash of each row of columns of equal length; None where they must be hashed one by one."""
    forms = []
    for column in columns:
        form = _forms(column)
        if form is None:
            return None
        forms.append(pc.if_else(pc.is_null(column), _NULL, form) if column.null_count else form)
    strings = ShortStrings(pc.binary_join_element_wise(*forms, pa.scalar(b"", pa.binary())), _TUPLE)
    return strings.hashes() if strings.lengths.max(initial=0) <= LONGEST else None


def _forms(column: pa.Array) -> pa.Array | None:
    """The form of each value and before it its length; any for NULL."""
    kind = column.type
    if pa.types.is_string(kind):
        return _of_texts(column)
    if pa.types.is_integer(kind):
        return _of_numbers(column.cast(pa.int64()), b"i")
    if pa.types.is_date32(kind):
        days = column.cast(pa.int32()).cast(pa.int64())
        return _of_numbers(pc.add(days, _BEFORE_1970), b"Di")
    if pa.types.is_timestamp(kind) and kind.unit in ("ms", "us") and kind.tz in (None, "UTC"):
        moments = column.cast(pa.int64())
        tag = b"di" if kind.tz is None else b"ui"
        return _of_numbers(moments if kind.unit == "us" else pc.multiply(moments, 1000), tag)
    return None


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

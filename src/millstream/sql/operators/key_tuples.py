"""Vectorized hashes of keys of several columns.

Promises: the hash of a row is `stable_hash` of the tuple of its values. There is no hash for any row (None) if a column
is of another type than string, integer, date or timestamp, or if keys are long.
Does not know: key groups, state.

The bytes of a tuple, as `key_bytes` encodes it, are assembled column by column: for each value its encoded length, a
tag and the value."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.operators.number_tuples import hash_number_tuples
from millstream.sql.operators.row_runs import compute_dense_key_codes
from millstream.state.key_groups import stable_hash
from millstream.state.xxh3 import LONGEST, ShortStrings
from millstream.types.arrow_types import to_python_values

_TUPLE = b"("
_NULL = pa.scalar((1).to_bytes(4, "little") + b"0", pa.binary())
_BEFORE_1970 = 719_163  # days from 0001-01-01 to 1970-01-01, plus one: date.toordinal of the epoch
_MIN_ROWS = 32  # with fewer rows, hashing row by row is faster
_RUN_SAMPLE = 64  # sample size for detecting runs of equal keys
_REPEAT_SAMPLE = 1024  # sample size for detecting repeated keys
_MIN_RUN_LENGTH = 4  # average length of runs from which they are used
_WIDER = np.array([1 << bits for bits in range(7, 64, 8)], dtype=np.uint64)  # numbers from here on need one more byte


def hash_tuples(columns: Sequence[pa.Array]) -> np.ndarray | None:
    """Return the hash of each row; None if the rows must be hashed one by one."""
    only_integers = all(pa.types.is_signed_integer(column.type) and not column.null_count for column in columns)
    if only_integers and len(columns[0]) >= _MIN_ROWS:
        hashes = hash_number_tuples([column.cast(pa.int64()).to_numpy() for column in columns])
        if hashes is not None:
            return hashes
    return compute_per_key(columns, _hash_column) if all(_is_supported(column.type) for column in columns) else None


def compute_per_key(
    columns: Sequence[pa.Array], compute: Callable[[Sequence[pa.Array]], np.ndarray | None]
) -> np.ndarray | None:
    """Compute a value for the key of each row; for each distinct key once if keys repeat."""
    repeated = _find_runs(columns) or _find_repeats(columns)
    if repeated is None:
        return compute(columns)
    rows, key_indexes = repeated
    values = compute([column.take(pa.array(rows)) for column in columns])
    return None if values is None else values[key_indexes]


Repeated = tuple[np.ndarray, np.ndarray]  # a row of each distinct key, and for each row the index of its key


def _find_runs(columns: Sequence[pa.Array]) -> Repeated | None:
    """Find runs of equal keys, which are usual after windows; None if runs are short."""
    count = len(columns[0])
    run_ends: list[np.ndarray] = []
    for sample in (_RUN_SAMPLE, count):
        run_ends = [pc.run_end_encode(column.slice(0, sample)).run_ends.to_numpy() for column in columns]
        if sum(map(len, run_ends)) * _MIN_RUN_LENGTH > sample:
            return None
    ends = np.unique(np.concatenate(run_ends))
    return ends - 1, np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))


def _find_repeats(columns: Sequence[pa.Array]) -> Repeated | None:
    """Find repeated keys anywhere; None if most keys are distinct."""
    count = len(columns[0])
    for sample in (_REPEAT_SAMPLE, count):
        codes, key_count = compute_dense_key_codes([column.slice(0, sample) for column in columns], min(sample, count))
        if 2 * key_count > sample:
            return None
    rows = np.empty(key_count, dtype=np.int64)
    rows[codes] = np.arange(count)
    return rows, codes


def _hash_rows(columns: Sequence[pa.Array]) -> np.ndarray:
    keys = zip(*map(to_python_values, columns), strict=True)
    return np.array([stable_hash(key) for key in keys], dtype=np.uint64)


def _hash_column(columns: Sequence[pa.Array]) -> np.ndarray | None:
    if len(columns[0]) < _MIN_ROWS:
        return _hash_rows(columns)
    forms = []
    for column in columns:
        form = _encode(column)
        forms.append(pc.if_else(pc.is_null(column), _NULL, form) if column.null_count else form)
    strings = ShortStrings(pc.binary_join_element_wise(*forms, pa.scalar(b"", pa.binary())), _TUPLE)
    return strings.hashes() if strings.lengths.max(initial=0) <= LONGEST else None


def _is_supported(data_type: pa.DataType) -> bool:
    if pa.types.is_timestamp(data_type):
        return data_type.unit in ("ms", "us") and data_type.tz in (None, "UTC")
    return bool(pa.types.is_string(data_type) or pa.types.is_integer(data_type) or pa.types.is_date32(data_type))


def _encode(column: pa.Array) -> pa.Array:
    """Encode each value with its length; NULL is encoded as any value."""
    data_type = column.type
    if pa.types.is_string(data_type):
        return _encode_strings(column)
    if pa.types.is_integer(data_type):
        return _encode_numbers(column.cast(pa.int64()), b"i")
    if pa.types.is_date32(data_type):
        days = column.cast(pa.int32()).cast(pa.int64())
        return _encode_numbers(pc.add(days, _BEFORE_1970), b"Di")
    micros = column.cast(pa.int64())
    tag = b"di" if data_type.tz is None else b"ui"
    return _encode_numbers(micros if data_type.unit == "us" else pc.multiply(micros, 1000), tag)


def _encode_numbers(column: pa.Array, tag: bytes) -> pa.Array:
    numbers = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
    sizes = 1 + np.searchsorted(_WIDER, np.abs(numbers).view(np.uint64), "right")
    head = 4 + len(tag)
    offsets = np.zeros(len(numbers) + 1, dtype=np.int32)
    np.cumsum(sizes + head, out=offsets[1:])
    data = np.zeros(int(offsets[-1]), dtype=np.uint8)
    starts = offsets[:-1]
    data[starts] = sizes + len(tag)
    for byte_index, character in enumerate(tag, 4):
        data[starts + byte_index] = character
    for byte_index in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > byte_index)
        # the only number that needs nine bytes is negative; its ninth byte is the sign extension of the eighth
        data[starts[rows] + head + byte_index] = (numbers[rows] >> min(8 * byte_index, 63)).astype(np.uint8)
    return _to_binary(offsets, data)


def _encode_strings(column: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy()
    heads = np.zeros((len(column), 5), dtype=np.uint8)
    heads[:, :4] = (lengths + 1).astype("<u4").view(np.uint8).reshape(-1, 4)
    heads[:, 4] = ord("s")
    offsets = np.arange(0, 5 * len(column) + 1, 5, dtype=np.int32)
    texts = column.cast(pa.binary())
    return pc.binary_join_element_wise(_to_binary(offsets, heads), texts, pa.scalar(b"", pa.binary()))


def _to_binary(offsets: np.ndarray, data: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])

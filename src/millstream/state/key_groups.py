"""Key groups: from a key to its hash, its key group and its subtask, and the key group range of each subtask.

Promises: equal keys, of whatever types, have the same bytes, hash and key group in every process, run and Python
version; unequal keys of one type have different bytes; a key has the same key group as a Python value and in an Arrow
column; ranges are those of Flink. State files and savepoints depend on these functions: a change here is a change of
their format.
Does not know: state, blocks, operators."""

from __future__ import annotations

import datetime
import enum
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from millstream.errors import UserError
from millstream.state.xxh3 import LONGEST, ShortStrings
from millstream.times import LOCAL_EPOCH, MICROSECOND
from millstream.types.arrow_types import to_python_values
from millstream.types.row import Row, RowKind

MAX_PARALLELISM_LIMIT = 32768
_MANY = 1 << 16  # for this many keys, as in a restore, hashing a column is faster than the cache of recent keys
MIN_DEFAULT_MAX_PARALLELISM = 128

KeyGroups = npt.NDArray[np.int32]


class UnusableKey(UserError):
    """A value cannot be a key, because its type defines no equality that holds in every process."""

    hint = "use a string, number, bytes, date, enum, tuple of these, named tuple, Row or frozen dataclass as key"

    def __init__(self, key: object) -> None:
        self.type_name = type(key).__qualname__
        text = repr(key)
        self.value = text if len(text) <= 80 else f"{text[:77]}..."
        super().__init__(f"a value of type {self.type_name} cannot be a key: {self.value}")


class BadParallelism(UserError, ValueError):
    """A parallelism or maximum parallelism is out of range."""

    def __init__(self, parallelism: object, max_parallelism: object) -> None:
        self.parallelism = parallelism
        self.max_parallelism = max_parallelism
        super().__init__(
            f"parallelism {parallelism!r} with maximum parallelism {max_parallelism!r} is out of range",
            hint=f"use integers with 1 <= parallelism <= maximum parallelism <= {MAX_PARALLELISM_LIMIT}",
        )


# ------------------------------------------------------------------------------------------- key bytes and hashes

_Encoder = Callable[[Any], bytes]
_LARGEST_EXPONENT = 5000  # a larger exponent would create integers with too many digits
_xxh3: Callable[[bytes], int] = xxhash.xxh3_64_intdigest


def key_bytes(key: Any) -> bytes:
    """Encode a key so that exactly equal keys of a type have equal bytes.

    Raises `UnusableKey` if that is impossible."""
    try:
        return _encode(key)
    except (TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise UnusableKey(key) from error


def stable_hash(key: Any) -> int:
    """Return a hash from 0 to 2**64 - 1 that depends only on the value of the key; raises `UnusableKey`."""
    cls = type(key)
    if cls is str:
        return _xxh3(b"s" + key.encode("utf-8", "surrogatepass"))
    if cls is not int:
        encoded = key_bytes(key)
        if encoded[0] != _INTEGER_TAG:
            return _xxh3(encoded)
        key = int.from_bytes(encoded[1:], "little", signed=True)
    return _mix(key) if -1 <= key >> 64 <= 0 else _xxh3(_encode_integer(key))


def key_group(key: Any, max_parallelism: int) -> int:
    """Return the key group of one key; for many keys, a `KeyGrouper` is faster."""
    return stable_hash(key) % max_parallelism


_MASK = 0xFFFF_FFFF_FFFF_FFFF
_STEP, _FIRST, _SECOND = 0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB


def _mix(number: int) -> int:
    """Return the output of splitmix64 for this state."""
    x = (number + _STEP) & _MASK
    x = ((x ^ (x >> 30)) * _FIRST) & _MASK
    x = ((x ^ (x >> 27)) * _SECOND) & _MASK
    return x ^ (x >> 31)


def _mix_many(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x = numbers + np.uint64(_STEP)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_SECOND)
    return x ^ (x >> np.uint64(31))


def _encode(key: Any) -> bytes:
    cls = type(key)
    encode = _ENCODERS.get(cls)
    if encode is None:
        encode = _ENCODERS[cls] = _find_encoder(cls)
    return encode(key)


def _encode_integer(key: int) -> bytes:
    return b"i" + key.to_bytes((key.bit_length() + 8) // 8, "little", signed=True)


_INTEGER_TAG = ord("i")


def _encode_number(key: Any) -> bytes:
    """Encode a float, decimal or fraction. Equal numbers have equal bytes: an integer if possible, else a float if it
    is exact."""
    if key != key:  # NaN, which Python hashes by identity
        return b"n"
    if isinstance(key, Decimal) and key.is_finite() and abs(key.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError(key)
    if abs(key) != _INFINITY:
        numerator, denominator = key.as_integer_ratio()
        if denominator == 1:
            return _encode_integer(numerator)
        if not isinstance(key, float) and float(key) != key:
            return b"q" + _encode_sequence((numerator, denominator))
    return b"f" + struct.pack("<d", key)


_INFINITY = float("inf")


def _encode_complex(key: complex) -> bytes:
    return _encode_number(key.real) if key.imag == 0 else b"c" + _encode_sequence((key.real, key.imag))


def _encode_sequence(values: Iterable[Any]) -> bytes:
    parts = [b"("]
    for value in values:
        encoded = _encode(value)
        parts.append(len(encoded).to_bytes(4, "little"))
        parts.append(encoded)
    return b"".join(parts)


def _encode_set(key: frozenset[Any]) -> bytes:
    return b"{" + _encode_sequence(sorted(map(_encode, key)))


def _encode_row(key: Row) -> bytes:
    row_kind = key.get_row_kind()
    values = _encode_sequence(key)
    return values if row_kind is RowKind.INSERT else b"r" + bytes((row_kind.value,)) + values


def _encode_datetime(key: datetime.datetime) -> bytes:
    offset = key.replace(fold=0).utcoffset()  # like Python's hash: equal instants are equal in any time zone
    since = (key.replace(tzinfo=None) - LOCAL_EPOCH) // MICROSECOND
    nanoseconds = getattr(key, "nanosecond", 0)  # of a pandas.Timestamp
    if offset is None:
        encoded = b"d" + _encode_integer(since)
    else:
        encoded = b"u" + _encode_integer(since - offset // MICROSECOND)
    return encoded + b"." + _encode_integer(nanoseconds) if nanoseconds else encoded


def _encode_time(key: datetime.time) -> bytes:
    offset = key.utcoffset()
    seconds = (key.hour * 60 + key.minute) * 60 + key.second
    since = seconds * 1_000_000 + key.microsecond
    return b"t" + _encode_integer(since) if offset is None else b"T" + _encode_integer(since - offset // MICROSECOND)


def _encode_enum(key: enum.Enum) -> bytes:
    return b"E" + _encode_sequence((type(key).__name__, key.name if key.name is not None else key.value))


def _encode_numpy(key: np.generic) -> bytes:
    if isinstance(key, (np.datetime64, np.timedelta64)):
        rounded = key.astype(f"{key.dtype.kind}8[us]")
        if key != rounded:  # also NaT, and values that are finer than a microsecond
            raise ValueError(key)
        key = rounded
    value = key.item()
    if isinstance(value, np.generic):
        raise TypeError(key)
    return _encode(value)


def _raise_unusable(key: object) -> bytes:
    raise TypeError(key)


_ENCODERS: dict[type, _Encoder] = {
    type(None): lambda _: b"0",
    bool: lambda key: _encode_integer(int(key)),
    int: _encode_integer,
    float: _encode_number,
    Decimal: _encode_number,
    Fraction: _encode_number,
    complex: _encode_complex,
    str: lambda key: b"s" + key.encode("utf-8", "surrogatepass"),
    bytes: lambda key: b"b" + key,
    tuple: _encode_sequence,
    frozenset: _encode_set,
    Row: _encode_row,
    datetime.datetime: _encode_datetime,
    datetime.date: lambda key: b"D" + _encode_integer(key.toordinal()),
    datetime.time: _encode_time,
    datetime.timedelta: lambda key: b"e" + _encode_integer(key // MICROSECOND),
    UUID: lambda key: b"U" + key.bytes,
}


def _equality(cls: Any) -> Any:
    return cls.__eq__


def _find_encoder(cls: type) -> _Encoder:
    """Return the encoder of a class: that of the base class from which it inherits its equality."""
    if issubclass(cls, np.generic):
        return _encode_numpy
    if is_dataclass(cls) and cls.__hash__ is not None and _is_generated(_equality(cls)):
        return _dataclass_encoder(cls)
    for base in cls.__mro__:
        if base in _ENCODERS and (_equality(cls) is _equality(base) or base is datetime.datetime):
            return _ENCODERS[base]
    return _encode_enum if issubclass(cls, enum.Enum) and _equality(cls) is _equality(object) else _raise_unusable


def _is_generated(method: Any) -> bool:
    """Return whether `@dataclass` generated this method; for a hand-written `__eq__` it is not known which fields it
    compares."""
    code = getattr(method, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _dataclass_encoder(cls: type) -> _Encoder:
    head = b"C" + cls.__name__.encode() + b":"
    names = [field.name for field in fields(cls) if field.compare]
    return lambda key: head + _encode_sequence([getattr(key, name) for name in names])


# ----------------------------------------------------------------------------------------------------- key groups


_PREFIXES = {pa.string(): b"s", pa.large_string(): b"s", pa.binary(): b"b", pa.large_binary(): b"b"}  # as in _ENCODERS


class _RecentKeys(dict[Any, int]):
    """A cache of the numbers of recent keys; a lookup computes what is missing."""

    def __init__(self, of_hash: Callable[[int], int], limit: int) -> None:
        self._of_hash = of_hash
        self._limit = limit

    def __missing__(self, key: Any) -> int:
        number = self._of_hash(stable_hash(key))
        if len(self) >= self._limit:
            self.clear()
        self[key] = number
        return number


class KeyNumbers:
    """Computes a number from the hash of each key. A recent key costs one dictionary lookup.

    `of_hash` computes the number from one hash or from an array of hashes; `cache_size` limits the recent keys."""

    def __init__(self, of_hash: Callable[[Any], Any], dtype: type[np.integer[Any]], cache_size: int) -> None:
        self._of_hash = of_hash
        self._dtype = dtype
        self._recent = _RecentKeys(of_hash, cache_size)

    def of(self, key: Any) -> int:
        """Return the number of a key."""
        try:
            return self._recent[key]
        except TypeError as error:  # not hashable in Python
            raise UnusableKey(key) from error

    def of_many(self, keys: Sequence[Any]) -> npt.NDArray[Any]:
        """Return the number of each key."""
        if len(keys) >= _MANY:
            classes = set(map(type, keys))
            data_type = pa.int64() if classes == {int} else pa.string() if classes == {str} else None
            if data_type is not None:
                with suppress(OverflowError, UnicodeEncodeError):  # keys that an Arrow column cannot hold
                    return self.of_column(pa.array(keys, data_type))
        return self._of_each(keys)

    def _of_each(self, keys: Sequence[Any]) -> npt.NDArray[Any]:
        try:
            return np.fromiter(map(self._recent.__getitem__, keys), self._dtype, len(keys))
        except TypeError:
            return np.fromiter(map(self.of, keys), self._dtype, len(keys))  # raises an error that names the key

    def of_column(self, column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
        """Return the number of each value of a column, equal to `of` its Python value.

        A struct is the tuple of its fields."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        if pa.types.is_integer(column.type):
            return self._of_integers(column)
        if pa.types.is_nested(column.type):
            return self.of_many(_nested_values(column))
        prefix = _PREFIXES.get(column.type)
        if prefix is not None:
            strings = ShortStrings(column, prefix)
            if strings.lengths.max(initial=0) <= LONGEST:
                return self._of_hashes(strings.hashes(), column)
        distinct = column.dictionary_encode("encode")
        numbers: npt.NDArray[Any] = self._of_each(to_python_values(distinct.dictionary))[distinct.indices.to_numpy()]
        return numbers

    def _of_integers(self, column: pa.Array) -> npt.NDArray[Any]:
        wide = np.uint64 if pa.types.is_unsigned_integer(column.type) else np.int64
        dense = pc.fill_null(column, 0) if column.null_count else column
        return self._of_hashes(_mix_many(dense.to_numpy().astype(wide, copy=False).view(np.uint64)), column)

    def _of_hashes(self, hashes: npt.NDArray[np.uint64], column: pa.Array) -> npt.NDArray[Any]:
        numbers: npt.NDArray[Any] = self._of_hash(hashes).astype(self._dtype, copy=False)
        if column.null_count:
            numbers[column.is_null().to_numpy(zero_copy_only=False)] = self.of(None)
        return numbers


class KeyGrouper(KeyNumbers):
    """Computes the key groups of many keys."""

    def __init__(self, max_parallelism: int, *, cache_size: int = 1 << 18) -> None:
        check_parallelism(1, max_parallelism)
        self.max_parallelism = max_parallelism
        super().__init__(lambda hashes: hashes % max_parallelism, np.int32, cache_size)

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyGrouper, (self.max_parallelism,)


def _nested_values(column: pa.Array) -> list[Any]:
    if not pa.types.is_struct(column.type):
        return to_python_values(column)
    children = [_nested_values(child) for child in column.flatten()]
    values: list[Any] = list(zip(*children, strict=True)) if children else [()] * len(column)
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        values = [None if null else value for value, null in zip(values, nulls, strict=True)]
    return values


# ----------------------------------------------------------------------------------------------- key group ranges


@dataclass(frozen=True, slots=True)
class KeyGroupRange:
    """The key groups from `start` to `end`, both inclusive; empty if `end` is less than `start`."""

    start: int
    end: int

    def contains(self, group: int) -> bool:
        """Whether the range contains the key group."""
        return self.start <= group <= self.end

    __contains__ = contains

    def intersects(self, other: KeyGroupRange) -> bool:
        """Whether both ranges share a key group."""
        return max(self.start, other.start) <= min(self.end, other.end)

    def __len__(self) -> int:
        return max(0, self.end - self.start + 1)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start, self.end + 1))

    def __repr__(self) -> str:
        return f"KeyGroupRange({self.start}..{self.end})"


def check_parallelism(parallelism: int, max_parallelism: int) -> None:
    """Raise `BadParallelism` unless 1 <= parallelism <= max_parallelism <= 32768."""
    for number in (parallelism, max_parallelism):
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise BadParallelism(parallelism, max_parallelism)
    if not 1 <= parallelism <= max_parallelism <= MAX_PARALLELISM_LIMIT:
        raise BadParallelism(parallelism, max_parallelism)


def default_max_parallelism(parallelism: int) -> int:
    """Return Flink's default: 1.5 times the parallelism, rounded up to a power of two, from 128 to 32768."""
    wanted = parallelism + parallelism // 2
    return min(max(1 << (wanted - 1).bit_length(), MIN_DEFAULT_MAX_PARALLELISM), MAX_PARALLELISM_LIMIT)


def subtask_of(group: int, parallelism: int, max_parallelism: int) -> int:
    """Return the subtask that owns a key group."""
    return group * parallelism // max_parallelism


def range_of(subtask: int, parallelism: int, max_parallelism: int) -> KeyGroupRange:
    """Return the key groups that a subtask owns."""
    start = (subtask * max_parallelism + parallelism - 1) // parallelism
    return KeyGroupRange(start, ((subtask + 1) * max_parallelism - 1) // parallelism)


def routing_table(parallelism: int, max_parallelism: int) -> KeyGroups:
    """Return the owning subtask of each key group, by index."""
    check_parallelism(parallelism, max_parallelism)
    return (np.arange(max_parallelism, dtype=np.int64) * parallelism // max_parallelism).astype(np.int32)

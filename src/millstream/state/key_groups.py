"""Key to key group to subtask: where a key lives, and how ranges of key groups are shared out.

Promises: keys that are equal, of whatever types, have one form in bytes, one hash and one key group, in every
process, run and Python version; unequal keys of one kind have different bytes; the key group of a column's row is
that of its value; ranges are Flink's. State on disk depends on these functions: changing one is changing its format.
Does not know: state, blocks, or who asks."""

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
from millstream.types.arrow_types import python_values
from millstream.types.row import Row, RowKind

MAX_PARALLELISM_LIMIT = 32768
_MANY = 1 << 16  # keys, as when state is restored: too many to have been seen lately
MIN_DEFAULT_MAX_PARALLELISM = 128

KeyGroups = npt.NDArray[np.int32]


class UnusableKey(UserError):
    """A value cannot be a key: nothing says when two of its kind are equal in another process."""

    hint = "key by text, numbers, bytes, dates, enums, tuples of these, named tuples, rows or frozen dataclasses"

    def __init__(self, key: object) -> None:
        self.type_name = type(key).__qualname__
        text = repr(key)
        self.value = text if len(text) <= 80 else f"{text[:77]}..."
        super().__init__(f"a value of type {self.type_name} cannot be a key: {self.value}")


class BadParallelism(UserError):
    """A parallelism or maximum parallelism is out of bounds."""

    def __init__(self, parallelism: object, max_parallelism: object) -> None:
        self.parallelism = parallelism
        self.max_parallelism = max_parallelism
        super().__init__(
            f"parallelism {parallelism!r} with maximum parallelism {max_parallelism!r} is not possible",
            hint=f"use whole numbers with 1 <= parallelism <= maximum parallelism <= {MAX_PARALLELISM_LIMIT}",
        )


# ------------------------------------------------------------------------------------------- a key as bytes, hashed

_Form = Callable[[Any], bytes]
_LARGEST_EXPONENT = 5000  # beyond it the digits of a decimal would be written out by the million
_xxh3: Callable[[bytes], int] = xxhash.xxh3_64_intdigest


def key_bytes(key: Any) -> bytes:
    """The key in bytes, the same for equal keys and for no other key of its kind; `UnusableKey` if there are none."""
    try:
        return _form(key)
    except (TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise UnusableKey(key) from error


def stable_hash(key: Any) -> int:
    """A hash from 0 to 2**64 - 1 that depends on the key's value alone; `UnusableKey` if there is none."""
    kind = type(key)
    if kind is str:
        return _xxh3(b"s" + key.encode("utf-8", "surrogatepass"))
    if kind is not int:
        form = key_bytes(key)
        if form[0] != _INTEGER_TAG:
            return _xxh3(form)
        key = int.from_bytes(form[1:], "little", signed=True)
    return _mix(key) if -1 <= key >> 64 <= 0 else _xxh3(_integer(key))


def key_group(key: Any, max_parallelism: int) -> int:
    """The key group of one key; ask a `KeyGrouper` for many."""
    return stable_hash(key) % max_parallelism


_MASK = 0xFFFF_FFFF_FFFF_FFFF
_STEP, _FIRST, _SECOND = 0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB


def _mix(number: int) -> int:
    """The next output of splitmix64 from this state."""
    x = (number + _STEP) & _MASK
    x = ((x ^ (x >> 30)) * _FIRST) & _MASK
    x = ((x ^ (x >> 27)) * _SECOND) & _MASK
    return x ^ (x >> 31)


def _mix_many(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x = numbers + np.uint64(_STEP)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_SECOND)
    return x ^ (x >> np.uint64(31))


def _form(key: Any) -> bytes:
    kind = type(key)
    form = _FORMS.get(kind)
    if form is None:
        form = _FORMS[kind] = _form_of(kind)
    return form(key)


def _integer(key: int) -> bytes:
    return b"i" + key.to_bytes((key.bit_length() + 8) // 8, "little", signed=True)


_INTEGER_TAG = ord("i")


def _number(key: Any) -> bytes:
    """Floats, decimals and fractions: as an integer if they are whole, as a float if one is exactly that much."""
    if key != key:  # NaN, which Python hashes by identity
        return b"n"
    if isinstance(key, Decimal) and key.is_finite() and abs(key.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError(key)
    if abs(key) != _INFINITY:
        numerator, denominator = key.as_integer_ratio()
        if denominator == 1:
            return _integer(numerator)
        if not isinstance(key, float) and float(key) != key:
            return b"q" + _sequence((numerator, denominator))
    return b"f" + struct.pack("<d", key)


_INFINITY = float("inf")


def _complex(key: complex) -> bytes:
    return _number(key.real) if key.imag == 0 else b"c" + _sequence((key.real, key.imag))


def _sequence(values: Iterable[Any]) -> bytes:
    parts = [b"("]
    for value in values:
        form = _form(value)
        parts.append(len(form).to_bytes(4, "little"))
        parts.append(form)
    return b"".join(parts)


def _set(key: frozenset[Any]) -> bytes:
    return b"{" + _sequence(sorted(map(_form, key)))


def _row(key: Row) -> bytes:
    kind = key.get_row_kind()
    values = _sequence(key)
    return values if kind is RowKind.INSERT else b"r" + bytes((kind.value,)) + values


_ONE_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is taken off before


def _datetime(key: datetime.datetime) -> bytes:
    offset = key.replace(fold=0).utcoffset()  # as Python hashes it: equal instants in any zone are equal
    since = (key.replace(tzinfo=None) - _EPOCH) // _ONE_MICROSECOND
    nanoseconds = getattr(key, "nanosecond", 0)  # of a pandas.Timestamp
    form = b"d" + _integer(since) if offset is None else b"u" + _integer(since - offset // _ONE_MICROSECOND)
    return form + b"." + _integer(nanoseconds) if nanoseconds else form


def _time(key: datetime.time) -> bytes:
    offset = key.utcoffset()
    seconds = (key.hour * 60 + key.minute) * 60 + key.second
    since = seconds * 1_000_000 + key.microsecond
    return b"t" + _integer(since) if offset is None else b"T" + _integer(since - offset // _ONE_MICROSECOND)


def _enum(key: enum.Enum) -> bytes:
    return b"E" + _sequence((type(key).__name__, key.name if key.name is not None else key.value))


def _numpy(key: np.generic) -> bytes:
    if isinstance(key, (np.datetime64, np.timedelta64)):
        rounded = key.astype(f"{key.dtype.kind}8[us]")
        if key != rounded:  # also NaT, and what is finer than Python's own types
            raise ValueError(key)
        key = rounded
    plain = key.item()
    if isinstance(plain, np.generic):
        raise TypeError(key)
    return _form(plain)


def _unusable(key: object) -> bytes:
    raise TypeError(key)


_FORMS: dict[type, _Form] = {
    type(None): lambda _: b"0",
    bool: lambda key: _integer(int(key)),
    int: _integer,
    float: _number,
    Decimal: _number,
    Fraction: _number,
    complex: _complex,
    str: lambda key: b"s" + key.encode("utf-8", "surrogatepass"),
    bytes: lambda key: b"b" + key,
    tuple: _sequence,
    frozenset: _set,
    Row: _row,
    datetime.datetime: _datetime,
    datetime.date: lambda key: b"D" + _integer(key.toordinal()),
    datetime.time: _time,
    datetime.timedelta: lambda key: b"e" + _integer(key // _ONE_MICROSECOND),
    UUID: lambda key: b"U" + key.bytes,
}


def _equality(kind: Any) -> Any:
    return kind.__eq__


def _form_of(kind: type) -> _Form:
    """The form of a kind met for the first time: that of the class from which it has its equality."""
    if issubclass(kind, np.generic):
        return _numpy
    if is_dataclass(kind) and kind.__hash__ is not None and _is_generated(_equality(kind)):
        return _dataclass_form(kind)
    for base in kind.__mro__:
        if base in _FORMS and (_equality(kind) is _equality(base) or base is datetime.datetime):
            return _FORMS[base]
    return _enum if issubclass(kind, enum.Enum) and _equality(kind) is _equality(object) else _unusable


def _is_generated(method: Any) -> bool:
    """Whether `@dataclass` wrote this method: equality that a person wrote may mean anything."""
    code = getattr(method, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _dataclass_form(kind: type) -> _Form:
    head = b"C" + kind.__name__.encode() + b":"
    names = [field.name for field in fields(kind) if field.compare]
    return lambda key: head + _sequence([getattr(key, name) for name in names])


# -------------------------------------------------------------------------------------------------- keys to groups


_PREFIXES = {pa.string(): b"s", pa.large_string(): b"s", pa.binary(): b"b", pa.large_binary(): b"b"}  # of _FORMS


class _Seen(dict[Any, int]):
    """The numbers of keys seen lately; a look-up that finds nothing computes."""

    def __init__(self, of_hash: Callable[[int], int], limit: int) -> None:
        self._of_hash = of_hash
        self._limit = limit

    def __missing__(self, key: Any) -> int:
        found = self._of_hash(stable_hash(key))
        if len(self) >= self._limit:
            self.clear()
        self[key] = found
        return found


class KeyNumbers:
    """A number for each of many keys, made of its hash. A key seen lately costs a dictionary look-up.

    `of_hash` makes it, of one hash or of an array of them."""

    def __init__(self, of_hash: Callable[[Any], Any], kind: type[np.integer[Any]], remember: int) -> None:
        self._of_hash = of_hash
        self._kind = kind
        self._seen = _Seen(of_hash, remember)

    def of(self, key: Any) -> int:
        """The number of a key."""
        try:
            return self._seen[key]
        except TypeError as error:  # not hashable, not even for Python
            raise UnusableKey(key) from error

    def of_many(self, keys: Sequence[Any]) -> npt.NDArray[Any]:
        """The number of each key."""
        if len(keys) >= _MANY:
            kinds = set(map(type, keys))
            column = pa.int64() if kinds == {int} else pa.string() if kinds == {str} else None
            if column is not None:
                with suppress(OverflowError, UnicodeEncodeError):  # what a column cannot hold
                    return self.of_column(pa.array(keys, column))
        return self._of_each(keys)

    def _of_each(self, keys: Sequence[Any]) -> npt.NDArray[Any]:
        try:
            return np.fromiter(map(self._seen.__getitem__, keys), self._kind, len(keys))
        except TypeError:
            return np.fromiter(map(self.of, keys), self._kind, len(keys))  # tells which key it was

    def of_column(self, column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
        """The number of each value, as `of` says of its Python value; a struct is the tuple of its fields."""
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
        numbers: npt.NDArray[Any] = self._of_each(python_values(distinct.dictionary))[distinct.indices.to_numpy()]
        return numbers

    def _of_integers(self, column: pa.Array) -> npt.NDArray[Any]:
        wide = np.uint64 if pa.types.is_unsigned_integer(column.type) else np.int64
        dense = pc.fill_null(column, 0) if column.null_count else column
        return self._of_hashes(_mix_many(dense.to_numpy().astype(wide, copy=False).view(np.uint64)), column)

    def _of_hashes(self, hashes: npt.NDArray[np.uint64], column: pa.Array) -> npt.NDArray[Any]:
        numbers: npt.NDArray[Any] = self._of_hash(hashes).astype(self._kind, copy=False)
        if column.null_count:
            numbers[column.is_null().to_numpy(zero_copy_only=False)] = self.of(None)
        return numbers


class KeyGrouper(KeyNumbers):
    """Key groups of many keys."""

    def __init__(self, max_parallelism: int, *, remember: int = 1 << 18) -> None:
        check_parallelism(1, max_parallelism)
        self.max_parallelism = max_parallelism
        super().__init__(lambda hashes: hashes % max_parallelism, np.int32, remember)

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyGrouper, (self.max_parallelism,)


def _nested_values(column: pa.Array) -> list[Any]:
    if not pa.types.is_struct(column.type):
        return python_values(column)
    children = [_nested_values(child) for child in column.flatten()]
    values: list[Any] = list(zip(*children, strict=True)) if children else [()] * len(column)
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        values = [None if null else value for value, null in zip(values, nulls, strict=True)]
    return values


# ---------------------------------------------------------------------------------------------- groups to subtasks


@dataclass(frozen=True, slots=True)
class KeyGroupRange:
    """The key groups from `start` to `end`, both inclusive; none if `end` is before `start`."""

    start: int
    end: int

    def contains(self, group: int) -> bool:
        """Whether the group is one of these."""
        return self.start <= group <= self.end

    __contains__ = contains

    def intersects(self, other: KeyGroupRange) -> bool:
        """Whether any group is in both."""
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
    """Flink's choice: half as much again, up to a power of two, from 128 to 32768."""
    wanted = parallelism + parallelism // 2
    return min(max(1 << (wanted - 1).bit_length(), MIN_DEFAULT_MAX_PARALLELISM), MAX_PARALLELISM_LIMIT)


def subtask_of(group: int, parallelism: int, max_parallelism: int) -> int:
    """The subtask that owns a key group."""
    return group * parallelism // max_parallelism


def range_of(subtask: int, parallelism: int, max_parallelism: int) -> KeyGroupRange:
    """The key groups that a subtask owns."""
    start = (subtask * max_parallelism + parallelism - 1) // parallelism
    return KeyGroupRange(start, ((subtask + 1) * max_parallelism - 1) // parallelism)


def routing_table(parallelism: int, max_parallelism: int) -> KeyGroups:
    """The owning subtask of each key group, by index."""
    check_parallelism(parallelism, max_parallelism)
    return (np.arange(max_parallelism, dtype=np.int64) * parallelism // max_parallelism).astype(np.int32)

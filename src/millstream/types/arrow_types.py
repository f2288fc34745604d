"""Columns of leaf types: conversion of Python values to Arrow arrays and back.

Promises: checks run in C, and a list whose values fit is returned unchanged. A value that PyFlink's coders would
convert is converted; any other value raises TypeMismatch with its index. A value is the same after a conversion to
Arrow and back.
Does not know: composite types, and the names of types."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from itertools import accumulate
from typing import Any, ClassVar

import pyarrow as pa

from millstream.errors import UserError
from millstream.serialization import codec
from millstream.times import Instant

_CONVERSION_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    TypeError,
    ValueError,
    OverflowError,
    AttributeError,
    InvalidOperation,
)
_NONE = type(None)
# The buffers of a byte array are built directly for at most so many values with at least so many bytes.
_MAX_VALUES, _MIN_BYTES = 1 << 12, 1 << 20


class TypeMismatch(UserError, TypeError):
    """A value does not fit its declared type. `path` is the path to the value inside the record at `index`."""

    hint = "return a value of the declared type, or declare the type of what is returned (output_type)"

    def __init__(self, index: int, value: Any, expected: str, path: tuple[str, ...] = ()) -> None:
        self.index = index
        self.value = value
        self.expected = expected
        self.path = path
        where = f" in field {'.'.join(path)}" if path else ""
        text = repr(value)
        shortened = text if len(text) <= 200 else f"{text[:200]}..."
        super().__init__(f"expected {expected}{where}, got {shortened} ({type(value).__name__}) at index {index}")

    def inside(self, field: str, index: int | None = None) -> TypeMismatch:
        """Return the mismatch with the path from the composite value whose `field` contains the value."""
        return TypeMismatch(self.index if index is None else index, self.value, self.expected, (field, *self.path))


def to_python_values(array: pa.Array) -> list[Any]:
    """Return the values of a leaf array as Python objects, None for null."""
    arrow_type = array.type
    is_numeric = pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type)
    # tolist() converts NaT to None but not NaN, so numbers with nulls are converted by the slower to_pylist()
    if (is_numeric and not array.null_count) or pa.types.is_date32(arrow_type) or _is_plain_timestamp(arrow_type):
        return list(array.to_numpy(zero_copy_only=False).tolist())
    return list(array.to_pylist())


def _is_plain_timestamp(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(arrow_type)) and arrow_type.tz is None and arrow_type.unit in ("ms", "us")


class Column(ABC):
    """The conversion of one leaf type: its Arrow type, its checks and its conversions."""

    arrow_type: ClassVar[pa.DataType]
    exact: ClassVar[frozenset[type]]

    def __init__(self, name: str) -> None:
        self.name = name

    def conform(self, values: list[Any]) -> list[Any]:
        """Return the same list if all values fit, else a converted list.

        Raises:
            TypeMismatch: If a value cannot be converted.

        """
        return values if set(map(type, values)) <= self.exact else self._convert_all(values)

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an Arrow array."""
        conformed = self.conform(values if isinstance(values, list) else list(values))
        try:
            return pa.array(conformed, self.arrow_type)
        except _CONVERSION_ERRORS:
            raise self._find_mismatch(conformed) from None

    def from_arrow(self, array: pa.Array) -> list[Any]:
        """Convert an array that `to_arrow` has created to Python values."""
        return to_python_values(array)

    @abstractmethod
    def convert(self, value: Any) -> Any:
        """Convert a value; raise TypeError or ValueError if it cannot be converted."""

    def _convert_all(self, values: list[Any]) -> list[Any]:
        converted = []
        is_unchanged = True
        for index, value in enumerate(values):
            try:
                new = None if value is None else self.convert(value)
            except _CONVERSION_ERRORS:
                raise TypeMismatch(index, value, self.name) from None
            is_unchanged = is_unchanged and new is value
            converted.append(new)
        return values if is_unchanged else converted

    def _find_mismatch(self, values: list[Any]) -> TypeMismatch:
        for index, value in enumerate(values):
            try:
                pa.array([value], self.arrow_type)
            except _CONVERSION_ERRORS:
                return TypeMismatch(index, value, self.name)
        return TypeMismatch(0, values, self.name)


class NumberColumn(Column):
    """Numbers of a fixed width."""

    def __init__(self, name: str, arrow_type: pa.DataType) -> None:
        super().__init__(name)
        self.arrow_type = arrow_type  # type: ignore[misc]

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an Arrow array; types are checked only if Arrow refuses a value."""
        try:
            return pa.array(values, self.arrow_type)
        except _CONVERSION_ERRORS:
            return super().to_arrow(values)


class IntegerColumn(NumberColumn):
    """Integers; other numbers are truncated, as PyFlink's coders do."""

    exact = frozenset((int, _NONE))

    def conform(self, values: list[Any]) -> list[Any]:
        """Check types and the range, so that an overflow is found whether or not operators are chained."""
        conformed = super().conform(values)
        try:
            pa.array(conformed, self.arrow_type)
        except _CONVERSION_ERRORS:
            raise self._find_mismatch(conformed) from None
        return conformed

    def convert(self, value: Any) -> int:
        """Return the integer part of a number."""
        return int(_require_number(value))


class FloatColumn(NumberColumn):
    """Floating-point numbers; a 32-bit column rounds values to 32 bits."""

    exact = frozenset((float, _NONE))

    def conform(self, values: list[Any]) -> list[Any]:
        """Check and convert values; a 32-bit column returns the rounded values, as Arrow would."""
        conformed = super().conform(values)
        if self.arrow_type == pa.float32():
            rounded = to_python_values(pa.array(conformed, self.arrow_type))
            return conformed if rounded == conformed else rounded
        return conformed

    def convert(self, value: Any) -> float:
        """Return the number as a float."""
        if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
            raise TypeError(value)
        return float(value)


class BooleanColumn(Column):
    """Booleans; a number is true unless it is zero."""

    arrow_type = pa.bool_()
    exact = frozenset((bool, _NONE))

    def convert(self, value: Any) -> bool:
        """Return whether a number is not zero."""
        return int(_require_number(value)) != 0


class TextColumn(Column):
    """Strings."""

    arrow_type = pa.string()
    exact = frozenset((str, _NONE))

    def convert(self, value: Any) -> str:
        """Return an instance of a subclass of str as a str."""
        return str.__str__(value)


class BytesColumn(Column):
    """Byte strings."""

    arrow_type = pa.binary()
    exact = frozenset((bytes, _NONE))

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an Arrow array; few large values are copied once, a single one is not copied."""
        if len(values) <= _MAX_VALUES and set(map(type, values)) <= self.exact:
            sizes = [0 if value is None else len(value) for value in values]
            if _MIN_BYTES <= sum(sizes) < 1 << 31:
                offsets = pa.array(accumulate(sizes, initial=0), pa.int32())
                data = b"".join(value for value in values if value is not None)  # a single value is not copied
                validity = pa.array([value is not None for value in values])
                buffers = [validity.buffers()[1], offsets.buffers()[1], pa.py_buffer(data)]
                return pa.Array.from_buffers(self.arrow_type, len(values), buffers)
        return super().to_arrow(values)

    def convert(self, value: Any) -> bytes:
        """Return a bytearray or memoryview as bytes."""
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(value)
        return bytes(value)


class BigIntegerColumn(Column):
    """Integers of any size, stored as signed big-endian bytes."""

    arrow_type = pa.binary()
    exact = frozenset((int, _NONE))

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an Arrow array."""
        conformed = self.conform(list(values))
        return pa.array(
            [v if v is None else v.to_bytes(v.bit_length() // 8 + 1, "big", signed=True) for v in conformed],
            self.arrow_type,
        )

    def from_arrow(self, array: pa.Array) -> list[Any]:
        """Convert an array to Python values."""
        return [v if v is None else int.from_bytes(v, "big", signed=True) for v in to_python_values(array)]

    def convert(self, value: Any) -> int:
        """Return the integer part of a number."""
        return int(_require_number(value))


class BigDecimalColumn(Column):
    """Decimals of any precision, stored as text, so that trailing zeros are kept."""

    arrow_type = pa.string()
    exact = frozenset((Decimal, _NONE))

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an Arrow array."""
        return pa.array([v if v is None else str(v) for v in self.conform(list(values))], self.arrow_type)

    def from_arrow(self, array: pa.Array) -> list[Any]:
        """Convert an array to Python values."""
        return [v if v is None else Decimal(v) for v in to_python_values(array)]

    def convert(self, value: Any) -> Decimal:
        """Return the decimal of a number or text."""
        return Decimal(str(value))


class InstantColumn(Column):
    """Instants with a precision of nanoseconds; no Arrow timestamp covers their whole range."""

    arrow_type = pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())])
    exact = frozenset((Instant, _NONE))

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an Arrow array."""
        conformed = self.conform(list(values))
        seconds = pa.array([0 if v is None else v.seconds for v in conformed], pa.int64())
        nanos = pa.array([0 if v is None else v.nanos for v in conformed], pa.int32())
        mask = pa.array([v is None for v in conformed], pa.bool_())
        return pa.StructArray.from_arrays([seconds, nanos], fields=list(self.arrow_type), mask=mask)

    def from_arrow(self, array: pa.Array) -> list[Any]:
        """Convert an array to Python values."""
        pairs = zip(to_python_values(array.field(0)), to_python_values(array.field(1)), strict=True)
        instants: list[Any] = [Instant(seconds, nanos) for seconds, nanos in pairs]
        for index in find_null_indexes(array):
            instants[index] = None
        return instants

    def convert(self, value: Any) -> Instant:
        """Return an instance of a subclass of Instant as an Instant."""
        if not isinstance(value, Instant):
            raise TypeError(value)
        return Instant(value.seconds, value.nanos)


class DateColumn(Column):
    """Dates; a datetime is truncated to its date."""

    arrow_type = pa.date32()
    exact = frozenset((datetime.date, _NONE))

    def convert(self, value: Any) -> datetime.date:
        """Return the date of a datetime."""
        if not isinstance(value, datetime.date):
            raise TypeError(value)
        return datetime.date(value.year, value.month, value.day)


class TimeColumn(Column):
    """Times of day with a precision of milliseconds, without time zone."""

    arrow_type = pa.time32("ms")
    exact = frozenset((_NONE,))

    def convert(self, value: Any) -> datetime.time:
        """Truncate a time to milliseconds and remove its time zone."""
        if not isinstance(value, datetime.time):
            raise TypeError(value)
        if type(value) is datetime.time and value.tzinfo is None and not value.microsecond % 1_000:
            return value
        return datetime.time(value.hour, value.minute, value.second, value.microsecond // 1_000 * 1_000)


class TimestampColumn(Column):
    """Dates with time with a precision of milliseconds, without time zone."""

    arrow_type = pa.timestamp("ms")
    exact = frozenset((_NONE,))

    def convert(self, value: Any) -> datetime.datetime:
        """Truncate a datetime to milliseconds and remove its time zone."""
        if not isinstance(value, datetime.datetime):
            raise TypeError(value)
        if type(value) is datetime.datetime and value.tzinfo is None and not value.microsecond % 1_000:
            return value
        micros = value.microsecond // 1_000 * 1_000
        return datetime.datetime.combine(value.date(), value.time().replace(microsecond=micros))


class NanosecondColumn(Column):
    """Dates with time with a precision of nanoseconds, without time zone: `pandas.Timestamp`, or datetimes."""

    arrow_type = pa.timestamp("ns")
    exact = frozenset((datetime.datetime, _NONE))

    def convert(self, value: Any) -> datetime.datetime:
        """Remove the time zone."""
        if not isinstance(value, datetime.datetime):
            raise TypeError(value)
        return value.replace(tzinfo=None)


class LocalColumn(Column):
    """Dates, times or datetimes of Python; a value with a time zone is refused."""

    exact = frozenset((_NONE,))

    def __init__(self, name: str, arrow_type: pa.DataType, python_type: type) -> None:
        super().__init__(name)
        self.arrow_type = arrow_type  # type: ignore[misc]
        self._python_type = python_type

    def convert(self, value: Any) -> Any:
        """Return the value; raise TypeError if it has another type or a time zone."""
        if type(value) is not self._python_type or getattr(value, "tzinfo", None) is not None:
            raise TypeError(value)
        return value


class ObjectColumn(Column):
    """Python objects of any class, encoded by the codec."""

    arrow_type = pa.binary()
    exact = frozenset()

    def conform(self, values: list[Any]) -> list[Any]:
        """Return the same list: every value fits."""
        return values

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an Arrow array."""
        if _NONE not in set(map(type, values)):
            return pa.array(codec.encode_many(values), self.arrow_type)
        encoded = iter(codec.encode_many(value for value in values if value is not None))
        return pa.array([None if value is None else next(encoded) for value in values], self.arrow_type)

    def from_arrow(self, array: pa.Array) -> list[Any]:
        """Convert an array to Python values."""
        if not array.null_count:
            return codec.decode_many(to_python_values(array))
        return [None if value is None else codec.decode(value) for value in to_python_values(array)]

    def convert(self, value: Any) -> Any:
        """Return the value."""
        return value


def find_null_indexes(array: pa.Array) -> list[int]:
    """Return the indexes of nulls."""
    if not array.null_count:
        return []
    return list(array.is_null().to_numpy(zero_copy_only=False).nonzero()[0].tolist())


def _require_number(value: Any) -> Any:
    if not hasattr(value, "__int__") and not hasattr(value, "__index__"):
        raise TypeError(value)
    return value

"""Columns of single values: how Python values and Arrow arrays of one leaf type become one another.

Promises: checks run at the speed of C and a column that fits is returned as it came; a value that PyFlink's coders
would convert is converted, any other raises TypeMismatch with its index; a value comes out of Arrow as it went in.
Does not know: composites, or the names users give to types."""

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

_REFUSALS = (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError, AttributeError, InvalidOperation)
_NONE = type(None)
_FEW, _LARGE = 1 << 12, 1 << 20  # values, and their bytes, that are worth laying out by hand


class TypeMismatch(UserError):
    """A value that does not fit the type declared for it. `path` leads to it inside the record at `index`."""

    hint = "return a value of the declared type, or declare the type of what is returned (output_type)"

    def __init__(self, index: int, value: Any, expected: str, path: tuple[str, ...] = ()) -> None:
        self.index = index
        self.value = value
        self.expected = expected
        self.path = path
        where = f" in field {'.'.join(path)}" if path else ""
        text = repr(value)
        shown = text if len(text) <= 200 else f"{text[:200]}..."
        super().__init__(f"expected {expected}{where}, got {shown} ({type(value).__name__}) at index {index}")

    def inside(self, field: str, index: int | None = None) -> TypeMismatch:
        """The same mismatch as seen from the composite whose `field` holds the value."""
        return TypeMismatch(self.index if index is None else index, self.value, self.expected, (field, *self.path))


def python_values(array: pa.Array) -> list[Any]:
    """The values of a leaf array as Python objects, None for null."""
    kind = array.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    # NumPy's NaT becomes None; its NaN would not, so numbers with nulls go the slower way
    if (numeric and not array.null_count) or pa.types.is_date32(kind) or _is_plain_timestamp(kind):
        return list(array.to_numpy(zero_copy_only=False).tolist())
    return list(array.to_pylist())


def _is_plain_timestamp(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is None and kind.unit in ("ms", "us")


class Column(ABC):
    """How one leaf type is checked, converted and laid out in Arrow."""

    arrow_type: ClassVar[pa.DataType]
    exact: ClassVar[frozenset[type]]

    def __init__(self, name: str) -> None:
        self.name = name

    def conform(self, values: list[Any]) -> list[Any]:
        """The same list when every value fits, else a converted one; TypeMismatch for a value that cannot be."""
        return values if set(map(type, values)) <= self.exact else self._converted(values)

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """The values as an Arrow array."""
        conformed = self.conform(values if isinstance(values, list) else list(values))
        try:
            return pa.array(conformed, self.arrow_type)
        except _REFUSALS:
            raise self._first_refused(conformed) from None

    def from_arrow(self, array: pa.Array) -> list[Any]:
        """The Python values of an array made by `to_arrow`."""
        return python_values(array)

    @abstractmethod
    def convert(self, value: Any) -> Any:
        """The value as this type holds it; raises TypeError or ValueError where there is none."""

    def _converted(self, values: list[Any]) -> list[Any]:
        converted = []
        same = True
        for index, value in enumerate(values):
            try:
                new = None if value is None else self.convert(value)
            except _REFUSALS:
                raise TypeMismatch(index, value, self.name) from None
            same = same and new is value
            converted.append(new)
        return values if same else converted

    def _first_refused(self, values: list[Any]) -> TypeMismatch:
        for index, value in enumerate(values):
            try:
                pa.array([value], self.arrow_type)
            except _REFUSALS:
                return TypeMismatch(index, value, self.name)
        return TypeMismatch(0, values, self.name)


class NumberColumn(Column):
    """Numbers of a fixed width."""

    def __init__(self, name: str, arrow_type: pa.DataType) -> None:
        super().__init__(name)
        self.arrow_type = arrow_type  # type: ignore[misc]

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """As promised by Column, without a separate look at the types: Arrow refuses what is no number."""
        try:
            return pa.array(values, self.arrow_type)
        except _REFUSALS:
            return super().to_arrow(values)


class IntegerColumn(NumberColumn):
    """Whole numbers; other numbers lose their fraction, as in PyFlink's coders."""

    exact = frozenset((int, _NONE))

    def conform(self, values: list[Any]) -> list[Any]:
        """As promised by Column; the range is checked too, so that an overflow does not depend on chaining."""
        conformed = super().conform(values)
        try:
            pa.array(conformed, self.arrow_type)
        except _REFUSALS:
            raise self._first_refused(conformed) from None
        return conformed

    def convert(self, value: Any) -> int:
        """Its whole part."""
        return int(_number(value))


class FloatColumn(NumberColumn):
    """Floating point numbers; the narrow kind rounds to what 32 bits can hold."""

    exact = frozenset((float, _NONE))

    def conform(self, values: list[Any]) -> list[Any]:
        """As promised by Column; a 32-bit column gives the rounded values, as they will come out of Arrow."""
        conformed = super().conform(values)
        if self.arrow_type == pa.float32():
            rounded = python_values(pa.array(conformed, self.arrow_type))
            return conformed if rounded == conformed else rounded
        return conformed

    def convert(self, value: Any) -> float:
        """The nearest float."""
        if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
            raise TypeError(value)
        return float(value)


class BooleanColumn(Column):
    """True and False; numbers count as true unless zero."""

    arrow_type = pa.bool_()
    exact = frozenset((bool, _NONE))

    def convert(self, value: Any) -> bool:
        """Whether the number is not zero."""
        return int(_number(value)) != 0


class TextColumn(Column):
    """Strings."""

    arrow_type = pa.string()
    exact = frozenset((str, _NONE))

    def convert(self, value: Any) -> str:
        """The characters of an instance of a subclass of str."""
        return str.__str__(value)


class BytesColumn(Column):
    """Byte strings."""

    arrow_type = pa.binary()
    exact = frozenset((bytes, _NONE))

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """As promised by Column; few large values are copied at most once, one is not copied."""
        if len(values) <= _FEW and set(map(type, values)) <= self.exact:
            sizes = [0 if value is None else len(value) for value in values]
            if _LARGE <= sum(sizes) < 1 << 31:
                offsets = pa.array(accumulate(sizes, initial=0), pa.int32())
                data = b"".join(value for value in values if value is not None)  # of one, itself
                there = pa.array([value is not None for value in values])
                parts = [there.buffers()[1], offsets.buffers()[1], pa.py_buffer(data)]
                return pa.Array.from_buffers(self.arrow_type, len(values), parts)
        return super().to_arrow(values)

    def convert(self, value: Any) -> bytes:
        """The bytes of any other holder of bytes."""
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(value)
        return bytes(value)


class BigIntegerColumn(Column):
    """Whole numbers of any size, as signed big-endian bytes."""

    arrow_type = pa.binary()
    exact = frozenset((int, _NONE))

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """As promised by Column."""
        conformed = self.conform(list(values))
        return pa.array(
            [v if v is None else v.to_bytes(v.bit_length() // 8 + 1, "big", signed=True) for v in conformed],
            self.arrow_type,
        )

    def from_arrow(self, array: pa.Array) -> list[Any]:
        """As promised by Column."""
        return [v if v is None else int.from_bytes(v, "big", signed=True) for v in python_values(array)]

    def convert(self, value: Any) -> int:
        """Its whole part."""
        return int(_number(value))


class BigDecimalColumn(Column):
    """Decimals of any precision, as text, so that 1.10 stays 1.10."""

    arrow_type = pa.string()
    exact = frozenset((Decimal, _NONE))

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """As promised by Column."""
        return pa.array([v if v is None else str(v) for v in self.conform(list(values))], self.arrow_type)

    def from_arrow(self, array: pa.Array) -> list[Any]:
        """As promised by Column."""
        return [v if v is None else Decimal(v) for v in python_values(array)]

    def convert(self, value: Any) -> Decimal:
        """The decimal that a number or text spells."""
        return Decimal(str(value))


class InstantColumn(Column):
    """Instants to the nanosecond over their whole range, which no Arrow timestamp covers."""

    arrow_type = pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())])
    exact = frozenset((Instant, _NONE))

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """As promised by Column."""
        conformed = self.conform(list(values))
        seconds = pa.array([0 if v is None else v.seconds for v in conformed], pa.int64())
        nanos = pa.array([0 if v is None else v.nanos for v in conformed], pa.int32())
        mask = pa.array([v is None for v in conformed], pa.bool_())
        return pa.StructArray.from_arrays([seconds, nanos], fields=list(self.arrow_type), mask=mask)

    def from_arrow(self, array: pa.Array) -> list[Any]:
        """As promised by Column."""
        pairs = zip(python_values(array.field(0)), python_values(array.field(1)), strict=True)
        instants: list[Any] = [Instant(seconds, nanos) for seconds, nanos in pairs]
        for index in null_indexes(array):
            instants[index] = None
        return instants

    def convert(self, value: Any) -> Instant:
        """An instance of a subclass as a plain Instant."""
        if not isinstance(value, Instant):
            raise TypeError(value)
        return Instant(value.seconds, value.nanos)


class DateColumn(Column):
    """Dates; of a datetime only the date is kept."""

    arrow_type = pa.date32()
    exact = frozenset((datetime.date, _NONE))

    def convert(self, value: Any) -> datetime.date:
        """The date of a datetime."""
        if not isinstance(value, datetime.date):
            raise TypeError(value)
        return datetime.date(value.year, value.month, value.day)


class TimeColumn(Column):
    """Times of day to the millisecond, without zone."""

    arrow_type = pa.time32("ms")
    exact = frozenset((_NONE,))

    def convert(self, value: Any) -> datetime.time:
        """The time cut to milliseconds, its zone dropped."""
        if not isinstance(value, datetime.time):
            raise TypeError(value)
        if type(value) is datetime.time and value.tzinfo is None and not value.microsecond % 1_000:
            return value
        return datetime.time(value.hour, value.minute, value.second, value.microsecond // 1_000 * 1_000)


class TimestampColumn(Column):
    """Dates with time to the millisecond, without zone."""

    arrow_type = pa.timestamp("ms")
    exact = frozenset((_NONE,))

    def convert(self, value: Any) -> datetime.datetime:
        """The timestamp cut to milliseconds, its zone dropped."""
        if not isinstance(value, datetime.datetime):
            raise TypeError(value)
        if type(value) is datetime.datetime and value.tzinfo is None and not value.microsecond % 1_000:
            return value
        micros = value.microsecond // 1_000 * 1_000
        return datetime.datetime.combine(value.date(), value.time().replace(microsecond=micros))


class LocalColumn(Column):
    """Dates, times and datetimes exactly as Python holds them; one with a zone is refused, not shifted."""

    exact = frozenset((_NONE,))

    def __init__(self, name: str, arrow_type: pa.DataType, python_type: type) -> None:
        super().__init__(name)
        self.arrow_type = arrow_type  # type: ignore[misc]
        self._python_type = python_type

    def convert(self, value: Any) -> Any:
        """The value itself."""
        if type(value) is not self._python_type or getattr(value, "tzinfo", None) is not None:
            raise TypeError(value)
        return value


class ObjectColumn(Column):
    """Python objects of any kind, each as the codec's bytes."""

    arrow_type = pa.binary()
    exact = frozenset()

    def conform(self, values: list[Any]) -> list[Any]:
        """The same list: everything fits."""
        return values

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """As promised by Column."""
        if _NONE not in set(map(type, values)):
            return pa.array(codec.encode_many(values), self.arrow_type)
        encoded = iter(codec.encode_many(value for value in values if value is not None))
        return pa.array([None if value is None else next(encoded) for value in values], self.arrow_type)

    def from_arrow(self, array: pa.Array) -> list[Any]:
        """As promised by Column."""
        if not array.null_count:
            return codec.decode_many(python_values(array))
        return [None if value is None else codec.decode(value) for value in python_values(array)]

    def convert(self, value: Any) -> Any:
        """The value itself."""
        return value


def null_indexes(array: pa.Array) -> list[int]:
    """Where an array is null."""
    if not array.null_count:
        return []
    return list(array.is_null().to_numpy(zero_copy_only=False).nonzero()[0].tolist())


def _number(value: Any) -> Any:
    if not hasattr(value, "__int__") and not hasattr(value, "__index__"):
        raise TypeError(value)
    return value

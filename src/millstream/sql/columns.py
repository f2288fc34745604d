"""Logical types as Arrow columns and Python values.

Promises: every logical type has one Arrow type. Internal values are hashable, so that rows can be keys: arrays are
tuples, maps tuples of pairs, rows tuples. External values are what users see: lists, dicts, `Row`.
Does not know: expressions."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.serialization import codec
from millstream.sql.syntax import parse_type
from millstream.sql.types import data_types as t
from millstream.sql.types.structured_objects import maker
from millstream.sql.types.variants import Variant
from millstream.times import Instant
from millstream.types.arrow_types import TypeMismatch, python_values
from millstream.types.bitmap import Bitmap
from millstream.types.composite_types import KIND_FIELD
from millstream.types.factory import RowTypeInfo, Types
from millstream.types.row import Row
from millstream.types.type_information import TypeInformation

_UTC = datetime.UTC
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=_UTC)
_WIDE = Context(prec=90)
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3
_MOST_KNOWN = 1000
_known_fields: dict[int, tuple[t.RowType, list[pa.Field]]] = {}


def arrow_type(kind: t.DataType) -> pa.DataType:
    """The Arrow type of a column of a logical type."""
    match kind:
        case t.CharType() | t.VarCharType() | t.VariantType():
            return pa.string()
        case t.BooleanType():
            return pa.bool_()
        case t.BinaryType() | t.VarBinaryType() | t.RawType() | t.BitmapType():
            return pa.binary()
        case t.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case t.TinyIntType():
            return pa.int8()
        case t.SmallIntType():
            return pa.int16()
        case t.IntType() | t.YearMonthIntervalType():
            return pa.int32()
        case t.BigIntType():
            return pa.int64()
        case t.FloatType():
            return pa.float32()
        case t.DoubleType():
            return pa.float64()
        case t.DateType():
            return pa.date32()
        case t.TimeType():
            return pa.time32("ms")
        case t.TimestampType():
            return pa.timestamp(unit_of(kind.precision))
        case t.LocalZonedTimestampType():
            return pa.timestamp(unit_of(kind.precision), "UTC")
        case t.DayTimeIntervalType():
            return pa.duration("ms")
        case t.ArrayType():
            return pa.list_(arrow_type(kind.element))
        case t.MultisetType():
            return pa.map_(arrow_type(kind.element), pa.int32())
        case t.MapType():
            return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
        case t.RowType():
            return pa.struct([(str(i), arrow_type(f.data_type)) for i, f in enumerate(kind.fields)])
    return pa.null()


def unit_of(precision: int) -> str:
    """The Arrow unit that holds so many digits of a second."""
    return "ms" if precision <= 3 else "us" if precision <= 6 else "ns"


def is_nested(kind: t.DataType) -> bool:
    """Whether values are made of values."""
    return isinstance(kind, t.ArrayType | t.MultisetType | t.MapType | t.RowType)


# ------------------------------------------------------------------------------------------------- internal values


def frozen(value: Any) -> Any:
    """A nested Arrow value as a hashable one."""
    if isinstance(value, list):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple(map(frozen, value.values()))
    if isinstance(value, tuple):
        return tuple(map(frozen, value))
    return value


def internal_values(array: pa.Array | pa.ChunkedArray, kind: t.DataType) -> list[Any]:
    """A column as internal Python values."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    found = python_values(array)
    return list(map(frozen, found)) if is_nested(kind) else found


def column(values: Sequence[Any], kind: t.DataType) -> pa.Array:
    """Internal values as a column."""
    return pa.array(values, arrow_type(kind))


# ------------------------------------------------------------------------------------------------- external values


def external(kind: t.DataType) -> Callable[[Any], Any] | None:
    """How an internal value becomes one that users see; None where it already is."""
    match kind:
        case t.ArrayType():
            inner = external(kind.element)
            return list if inner is None else lambda value: [None if v is None else inner(v) for v in value]
        case t.MultisetType():
            return _external_map(external(kind.element), None)
        case t.MapType():
            return _external_map(external(kind.key), external(kind.value))
        case t.RowType():
            makers, whole = [external(each) for each in kind.types], maker(kind)
            return lambda value: whole(
                [v if m is None or v is None else m(v) for m, v in zip(makers, value, strict=True)]
            )
        case t.RawType():
            return codec.decode
        case t.BitmapType():
            return Bitmap.from_bytes
        case t.VariantType():
            return Variant
        case t.TimestampType() | t.LocalZonedTimestampType() if kind.precision > 6:
            return _python_time
    return None


def _python_time(value: Any) -> Any:
    return value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value


def _external_map(key: Callable[[Any], Any] | None, value: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    def made(pairs: Any) -> dict[Any, Any]:
        return {(k if key is None else key(k)): (v if value is None or v is None else value(v)) for k, v in pairs}

    return made


def converter(kind: t.DataType) -> Callable[[Any], Any]:
    """How a value that a user gives becomes internal; raises TypeError or ValueError where it does not fit."""
    match kind:
        case t.CharType() | t.VarCharType():
            return _text
        case t.BooleanType():
            return _boolean
        case t.IntegerType():
            return _integer(kind.bits)
        case t.FloatType():
            return lambda value: float(np.float32(value))
        case t.DoubleType():
            return float
        case t.DecimalType():
            return _decimal(kind)
        case t.BinaryType() | t.VarBinaryType():
            return _bytes
        case t.DateType():
            return _date
        case t.TimeType():
            return _time
        case t.TimestampType():
            return _timestamp
        case t.LocalZonedTimestampType():
            return _instant
        case t.DayTimeIntervalType():
            return _duration
        case t.YearMonthIntervalType():
            return int
        case t.ArrayType():
            element = optional(converter(kind.element))
            return lambda value: tuple(element(v) for v in value)
        case t.MultisetType():
            element = converter(kind.element)
            return lambda value: tuple((element(k), int(n)) for k, n in dict(value).items())
        case t.MapType():
            key, item = converter(kind.key), optional(converter(kind.value))
            return lambda value: tuple((key(k), item(v)) for k, v in dict(value).items())
        case t.RowType():
            return _row(kind)
        case t.RawType():
            return codec.encode
        case t.BitmapType():
            return _bitmap
        case t.VariantType():
            return _variant
    return lambda value: value


def optional(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same conversion, with None for None."""
    return lambda value: None if value is None else convert(value)


def _plain(kind: t.DataType) -> type | None:
    """The Python type whose values are taken as they are, if they fit; None where each has to be looked at."""
    match kind:
        case t.CharType() | t.VarCharType():
            return str
        case t.BooleanType():
            return bool
        case t.IntegerType():
            return int
        case t.DoubleType():
            return float
    return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(value)
    return bool(value)


def _integer(bits: int) -> Callable[[Any], int]:
    limit = 1 << (bits - 1)

    def convert(value: Any) -> int:
        whole = hasattr(value, "__index__") or (isinstance(value, float | Decimal) and value == int(value))
        if isinstance(value, bool) or not whole:
            raise TypeError(value)
        number = int(value)
        if not -limit <= number < limit:
            raise ValueError(value)
        return number

    return convert


def _decimal(kind: t.DecimalType) -> Callable[[Any], Decimal | None]:
    return lambda value: rounded(value if isinstance(value, Decimal) else Decimal(str(value)), kind)


def rounded(value: Decimal, kind: t.DecimalType) -> Decimal | None:
    """A decimal with the scale of the type, half up; None where it has too many digits, as in Flink."""
    try:
        made = value.quantize(Decimal(1).scaleb(-kind.scale), rounding=ROUND_HALF_UP, context=_WIDE)
    except InvalidOperation:
        return None
    return made if abs(made) < 10 ** (kind.precision - kind.scale) else None


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(value)
    return bytes(value)


def _date(value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    if not isinstance(value, datetime.date):
        raise TypeError(value)
    return value


def _time(value: Any) -> datetime.time:
    if not isinstance(value, datetime.time):
        raise TypeError(value)
    return value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=None)


def _timestamp(value: Any) -> datetime.datetime:
    if not isinstance(value, datetime.datetime):
        raise TypeError(value)
    return value.replace(tzinfo=None)


def _instant(value: Any) -> datetime.datetime:
    if isinstance(value, Instant):
        return _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if isinstance(value, int) and not isinstance(value, bool):
        return _EPOCH + datetime.timedelta(milliseconds=value)
    if not isinstance(value, datetime.datetime):
        raise TypeError(value)
    return value.replace(tzinfo=_UTC) if value.tzinfo is None else value.astimezone(_UTC)


def _variant(value: Any) -> str:
    if not isinstance(value, Variant):
        raise TypeError(value)
    return value.text


def _bitmap(value: Any) -> bytes:
    if not isinstance(value, Bitmap):
        raise TypeError(value)
    return value.to_bytes()


def _duration(value: Any) -> datetime.timedelta:
    if isinstance(value, int) and not isinstance(value, bool):
        return datetime.timedelta(milliseconds=value)
    if not isinstance(value, datetime.timedelta):
        raise TypeError(value)
    return value


def _row(kind: t.RowType) -> Callable[[Any], tuple[Any, ...]]:
    makers = [optional(converter(each)) for each in kind.types]
    names = kind.names

    def convert(value: Any) -> tuple[Any, ...]:
        if isinstance(value, dict):
            values: Sequence[Any] = [value.get(name) for name in names]
        elif isinstance(value, Row) and getattr(value, "_fields", None) and set(names) <= set(value._fields):
            values = [value[name] for name in names]
        elif isinstance(value, Row | tuple | list):
            values = list(value)
        else:
            values = [getattr(value, name) for name in names]
        if len(values) != len(makers):
            raise ValueError(value)
        return tuple(make(v) for make, v in zip(makers, values, strict=True))

    return convert


# ------------------------------------------------------------------------------------------------------------ types


class SqlTypeInfo(TypeInformation):
    """A logical type as the type of a stream's or a state's values; `internal` ones come out hashable."""

    json_tags = ("SQL",)

    def __init__(self, kind: t.DataType, *, internal: bool = False) -> None:
        self.kind = t.plain(kind)
        self.internal = internal
        self._arrow_type = arrow_type(self.kind)
        self._plain = _plain(self.kind)

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the logical type."""
        return self._arrow_type

    def internals(self, values: Sequence[Any]) -> list[Any]:
        """Values that a user gives as internal ones; `TypeMismatch` where one does not fit."""
        if self._as_they_are(values) is not None:
            return list(values)
        convert = converter(self.kind)
        made: list[Any] = []
        for index, value in enumerate(values):
            try:
                made.append(None if value is None else convert(value))
            except (TypeError, ValueError, AttributeError, OverflowError, InvalidOperation):
                raise TypeMismatch(index, value, str(self.kind)) from None
        return made

    def _as_they_are(self, values: Sequence[Any]) -> pa.Array | None:
        """The column of values that are internal already; None where each has to be looked at."""
        if self._plain is None or not set(map(type, values)) <= {self._plain, type(None)}:
            return None
        try:
            return pa.array(values, self._arrow_type)
        except (ValueError, OverflowError):
            return None

    def conform(self, values: list[Any]) -> list[Any]:
        """As TypeInformation promises."""
        made = self.internals(values)
        show = None if self.internal else external(self.kind)
        shown = made if show is None else [None if v is None else show(v) for v in made]
        return values if shown == values else shown

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """As TypeInformation promises."""
        if self.internal:
            return pa.array(values, self._arrow_type)
        found = self._as_they_are(values)
        return pa.array(self.internals(values), self._arrow_type) if found is None else found

    def _from_array(self, array: pa.Array) -> list[Any]:
        found = internal_values(array, self.kind)
        show = None if self.internal else external(self.kind)
        return found if show is None else [None if value is None else show(value) for value in found]

    def to_json(self) -> dict[str, Any]:
        """As TypeInformation promises."""
        return {"type": "SQL", "sql": str(self.kind), "internal": self.internal}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> SqlTypeInfo:
        return SqlTypeInfo(parse_type(description["sql"]), internal=bool(description["internal"]))

    def __repr__(self) -> str:
        return str(self.kind)


def row_type_info(row: t.RowType) -> RowTypeInfo:
    """The type of a table's rows on their way: the columns, then the kind of change."""
    return RowTypeInfo([SqlTypeInfo(kind) for kind in row.types], row.names)


def key_type_info(kinds: Sequence[t.DataType]) -> TypeInformation:
    """The type of keys made of these columns: one value, or a tuple."""
    made: list[TypeInformation] = [SqlTypeInfo(kind, internal=True) for kind in kinds]
    return made[0] if len(made) == 1 else Types.TUPLE(made)


def tuple_type_info(kinds: Sequence[t.DataType]) -> TypeInformation:
    """The type of rows as internal tuples, for state."""
    return Types.TUPLE([SqlTypeInfo(kind, internal=True) for kind in kinds])


# ------------------------------------------------------------------------------------------------------------- rows


def kinds_of(array: pa.Array, width: int) -> list[int]:
    """The kinds of change of rows, as numbers."""
    kinds = array.field(width)
    if kinds.null_count == len(kinds):
        return [INSERT] * len(kinds)
    return list(kinds.fill_null(0).to_numpy().tolist())


def all_inserts(array: pa.Array, width: int) -> bool:
    """Whether every row is an insert."""
    kinds = array.field(width)
    return bool(kinds.null_count == len(kinds)) or not np.any(kinds.fill_null(0).to_numpy())


def tuples_of(array: pa.Array, row: t.RowType) -> list[tuple[Any, ...]]:
    """Rows as internal tuples."""
    if not len(row):
        return [()] * len(array)
    return list(zip(*(internal_values(array.field(i), kind) for i, kind in enumerate(row.types)), strict=True))


def struct_of(arrays: Sequence[pa.Array], kinds: pa.Array | None, row: t.RowType, count: int) -> pa.Array:
    """Columns and kinds of change as the array of a batch."""
    tail = pa.nulls(count, pa.int8()) if kinds is None else kinds
    return pa.StructArray.from_arrays([*arrays, tail], fields=_fields(row))


def _fields(row: t.RowType) -> list[pa.Field]:
    """The fields of a batch's array; of a type that was asked for lately, what was answered then."""
    known = _known_fields.get(id(row))
    if known is None or known[0] is not row:
        if len(_known_fields) >= _MOST_KNOWN:
            _known_fields.clear()
        fields = [pa.field(name, arrow_type(kind)) for name, kind in zip(row.names, row.types, strict=True)]
        known = _known_fields[id(row)] = (row, [*fields, pa.field(KIND_FIELD, pa.int8())])
    return known[1]


def array_of(rows: Sequence[tuple[Any, ...]], kinds: Sequence[int] | None, row: t.RowType) -> pa.Array:
    """Internal tuples and their kinds of change as the array of a batch."""
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in row.types]
    arrays = [pa.array(values, arrow_type(kind)) for values, kind in zip(columns, row.types, strict=True)]
    tail = None
    if kinds is not None and any(kinds):
        tail = pa.array(kinds, pa.int8())
    return struct_of(arrays, tail, row, len(rows))


def scalar_value(scalar: pa.Scalar) -> Any:
    """The Python value of a constant."""
    return python_values(pa.nulls(1, scalar.type) if not scalar.is_valid else pa.repeat(scalar, 1))[0]

"""What two types have in common.

Promises: `common_type` is what CASE, UNION, IN and comparisons bring their operands to.
Does not know: values, casts."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.sql.types import data_types as t


def common_type(kinds: Sequence[t.DataType]) -> t.DataType | None:
    """The type all of these can be brought to; None where there is none."""
    found: t.DataType | None = None
    for kind in kinds:
        found = kind if found is None else _common(found, kind)
        if found is None:
            return None
    return found


def _common(one: t.DataType, other: t.DataType) -> t.DataType | None:
    null = one.null or other.null
    if isinstance(one, t.NullType):
        return t.plain(other).nullable()
    if isinstance(other, t.NullType):
        return t.plain(one).nullable()
    one, other = t.plain(one), t.plain(other)
    if one.same(other):
        return one.with_null(null)
    found = _widened(one, other)
    return None if found is None else found.with_null(null)


def _widened(one: t.DataType, other: t.DataType) -> t.DataType | None:
    match one, other:
        case t.NumericType(), t.NumericType():
            return _number(one, other)
        case (t.CharType() | t.VarCharType(), t.CharType() | t.VarCharType()):
            length = max(one.length, other.length)
            fixed = isinstance(one, t.CharType) and isinstance(other, t.CharType) and one.length == other.length
            return t.CharType(length) if fixed else t.VarCharType(length)
        case (t.BinaryType() | t.VarBinaryType(), t.BinaryType() | t.VarBinaryType()):
            return t.VarBinaryType(max(one.length, other.length))
        case t.TimestampType(), t.TimestampType():
            return t.TimestampType(max(one.precision, other.precision))
        case (t.TimestampType() | t.LocalZonedTimestampType(), t.TimestampType() | t.LocalZonedTimestampType()):
            return t.LocalZonedTimestampType(max(one.precision, other.precision))
        case (t.DateType(), t.TimestampType() | t.LocalZonedTimestampType()):
            return other
        case (t.TimestampType() | t.LocalZonedTimestampType(), t.DateType()):
            return one
        case t.TimeType(), t.TimeType():
            return t.TimeType(max(one.precision, other.precision))
        case t.YearMonthIntervalType(), t.YearMonthIntervalType():
            return t.YearMonthIntervalType()
        case t.DayTimeIntervalType(), t.DayTimeIntervalType():
            return t.DayTimeIntervalType("DAY TO SECOND", max(one.day_precision, other.day_precision), 6)
        case t.ArrayType(), t.ArrayType():
            element = _common(one.element, other.element)
            return None if element is None else t.ArrayType(element)
        case t.MultisetType(), t.MultisetType():
            element = _common(one.element, other.element)
            return None if element is None else t.MultisetType(element)
        case t.MapType(), t.MapType():
            key, value = _common(one.key, other.key), _common(one.value, other.value)
            return None if key is None or value is None else t.MapType(key, value)
        case (t.StructuredType(), t.RowType()) | (t.RowType(), t.StructuredType()):
            return _structured(one, other)
        case t.RowType(), t.RowType() if len(one) == len(other):
            kinds = [_common(a, b) for a, b in zip(one.types, other.types, strict=True)]
            return None if None in kinds else t.row_of(one.names, [k for k in kinds if k is not None])
    return None


def _structured(one: t.DataType, other: t.DataType) -> t.DataType | None:
    """What objects of one class have in common: the class, if their fields have the same names and types."""
    if not isinstance(one, t.StructuredType) or not isinstance(other, t.StructuredType):
        return None
    pairs = list(zip(one.types, other.types, strict=False))
    if one.class_name != other.class_name or one.names != other.names or not all(a.same(b) for a, b in pairs):
        return None
    kinds = [a.with_null(a.null or b.null) for a, b in pairs]
    return t.StructuredType(t.row_of(one.names, kinds).fields, one.class_name)


def _number(one: t.NumericType, other: t.NumericType) -> t.DataType:
    if t.is_approximate(one) or t.is_approximate(other):
        both = t.is_approximate(one) and t.is_approximate(other)
        if both:
            return t.DOUBLE if t.DOUBLE in (one.nullable(), other.nullable()) else t.FLOAT
        approximate = one if t.is_approximate(one) else other
        exact = other if approximate is one else one
        return t.DOUBLE if isinstance(exact, t.DecimalType) else approximate.nullable()
    if isinstance(one, t.IntegerType) and isinstance(other, t.IntegerType):
        return one.nullable() if one.bits >= other.bits else other.nullable()
    a, b = t.as_decimal(one), t.as_decimal(other)
    scale = max(a.scale, b.scale)
    return t.decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)

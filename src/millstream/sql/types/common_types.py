"""Common types: the type to which values of different types are cast implicitly.

Promises: CASE, UNION, IN and comparisons cast their operands to the result of `find_common_type`.
Does not know: values, and how they are cast."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.sql.types import data_types as t


def find_common_type(data_types: Sequence[t.DataType]) -> t.DataType | None:
    """Return the type to which all of these can be cast implicitly; None if there is none."""
    common: t.DataType | None = None
    for data_type in data_types:
        common = data_type if common is None else _find_common(common, data_type)
        if common is None:
            return None
    return common


def find_leading_type(data_types: Sequence[t.DataType]) -> t.DataType | None:
    """Return the type of an arithmetic operation or of CASE: the common type, but of FLOAT and DOUBLE the first one."""
    common = find_common_type(data_types)
    approximate = [data_type for data_type in data_types if t.is_approximate(data_type)]
    has_decimal = any(isinstance(data_type, t.DecimalType) for data_type in data_types)
    if isinstance(common, t.DoubleType) and approximate and not has_decimal:
        return approximate[0].with_null(common.null)
    return common


def _find_common(one: t.DataType, other: t.DataType) -> t.DataType | None:
    null = one.null or other.null
    if isinstance(one, t.NullType):
        return t.strip_time_attribute(other).nullable()
    if isinstance(other, t.NullType):
        return t.strip_time_attribute(one).nullable()
    one, other = t.strip_time_attribute(one), t.strip_time_attribute(other)
    if one.same(other):
        return one.with_null(null)
    wider = _widen(one, other)
    return None if wider is None else wider.with_null(null)


def _widen(one: t.DataType, other: t.DataType) -> t.DataType | None:
    """Return the common type of two different types, without regard to nullability."""
    match one, other:
        case t.NumericType(), t.NumericType():
            return _widen_numbers(one, other)
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
            element = _find_common(one.element, other.element)
            return None if element is None else t.ArrayType(element)
        case t.MultisetType(), t.MultisetType():
            element = _find_common(one.element, other.element)
            return None if element is None else t.MultisetType(element)
        case t.MapType(), t.MapType():
            key, value = _find_common(one.key, other.key), _find_common(one.value, other.value)
            return None if key is None or value is None else t.MapType(key, value)
        case (t.StructuredType(), t.RowType()) | (t.RowType(), t.StructuredType()):
            return _merge_structured_types(one, other)
        case t.RowType(), t.RowType() if len(one) == len(other):
            field_types = [_find_common(a, b) for a, b in zip(one.types, other.types, strict=True)]
            if None in field_types:
                return None
            return t.row_of(one.names, [field_type for field_type in field_types if field_type is not None])
    return None


def _merge_structured_types(one: t.DataType, other: t.DataType) -> t.DataType | None:
    """Return the common type of two structured types: they must have the same class, field names and field types."""
    if not isinstance(one, t.StructuredType) or not isinstance(other, t.StructuredType):
        return None
    pairs = list(zip(one.types, other.types, strict=False))
    if one.class_name != other.class_name or one.names != other.names or not all(a.same(b) for a, b in pairs):
        return None
    field_types = [a.with_null(a.null or b.null) for a, b in pairs]
    return t.StructuredType(t.row_of(one.names, field_types).row_fields, one.class_name)


def _widen_numbers(one: t.NumericType, other: t.NumericType) -> t.DataType:
    if t.is_approximate(one) or t.is_approximate(other):
        if t.is_approximate(one) and t.is_approximate(other):
            return t.DOUBLE if t.DOUBLE in (one.nullable(), other.nullable()) else t.FLOAT
        approximate = one if t.is_approximate(one) else other
        exact = other if approximate is one else one
        return t.DOUBLE if isinstance(exact, t.DecimalType) else approximate.nullable()
    if isinstance(one, t.IntegerType) and isinstance(other, t.IntegerType):
        return one.nullable() if one.bits >= other.bits else other.nullable()
    a, b = t.as_decimal(one), t.as_decimal(other)
    scale = max(a.scale, b.scale)
    return t.create_decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)

"""DataTypes: the factory of all logical types, under PyFlink's names.

Promises: every type PyFlink's DataTypes makes.
Does not know: how a type is laid out."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from millstream.sql.types import data_types as t
from millstream.sql.types.data_types import (
    ArrayType,
    AtomicType,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    FractionalType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    NullType,
    NumericType,
    RowField,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)
from millstream.sql.types.data_types import DayTimeIntervalType as _DayTime
from millstream.sql.types.data_types import IntegerType as IntegralType
from millstream.sql.types.data_types import YearMonthIntervalType as _YearMonth
from millstream.table.type_calls import take_pyflink_calls
from millstream.types.row import Row, RowKind

__all__ = [
    "ArrayType",
    "AtomicType",
    "BigIntType",
    "BinaryType",
    "BooleanType",
    "CharType",
    "DataType",
    "DataTypes",
    "DateType",
    "DayTimeIntervalType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "FractionalType",
    "IntType",
    "IntegralType",
    "ListViewType",
    "LocalZonedTimestampType",
    "MapType",
    "MapViewType",
    "MultisetType",
    "NullType",
    "NumericType",
    "Resolution",
    "Row",
    "RowField",
    "RowKind",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "VarBinaryType",
    "VarCharType",
    "YearMonthIntervalType",
]


class DayTimeIntervalType(_DayTime):
    """Spans of days, hours, minutes and seconds."""

    class DayTimeResolution(Enum):
        """The units a span is made of."""

        DAY = 1
        DAY_TO_HOUR = 2
        DAY_TO_MINUTE = 3
        DAY_TO_SECOND = 4
        HOUR = 5
        HOUR_TO_MINUTE = 6
        HOUR_TO_SECOND = 7
        MINUTE = 8
        MINUTE_TO_SECOND = 9
        SECOND = 10


class YearMonthIntervalType(_YearMonth):
    """Spans of years and months."""

    class YearMonthResolution(Enum):
        """The units a span is made of."""

        YEAR = 1
        MONTH = 2
        YEAR_TO_MONTH = 3


class Resolution:
    """A unit of an interval with its precision."""

    class IntervalUnit(Enum):
        """Units."""

        SECOND = 1
        MINUTE = 2
        HOUR = 3
        DAY = 4
        MONTH = 5
        YEAR = 6

    def __init__(self, unit: Resolution.IntervalUnit, precision: int = -1) -> None:
        self._unit, self._precision = unit, precision

    @property
    def unit(self) -> Resolution.IntervalUnit:
        """The unit."""
        return self._unit

    @property
    def precision(self) -> int:
        """The digits; -1 for the usual number."""
        return self._precision

    def __str__(self) -> str:
        return f"{self.unit.name}({self.precision})" if self.precision >= 0 else self.unit.name


take_pyflink_calls(DayTimeIntervalType)
take_pyflink_calls(YearMonthIntervalType)


class ListViewType(DataType):
    """The type of a ListView in an accumulator."""

    def __init__(self, element_type: DataType) -> None:
        object.__setattr__(self, "null", False)
        object.__setattr__(self, "_element_type", element_type)


class MapViewType(DataType):
    """The type of a MapView in an accumulator."""

    def __init__(self, key_type: DataType, value_type: DataType) -> None:
        object.__setattr__(self, "null", False)
        object.__setattr__(self, "_key_type", key_type)
        object.__setattr__(self, "_value_type", value_type)


class DataTypes:
    """Makes logical types."""

    @staticmethod
    def NULL() -> NullType:
        """The type of NULL."""
        return NullType()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        """Strings of a fixed length."""
        return CharType(length, null=nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        """Strings up to a length."""
        return VarCharType(length, null=nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        """Strings of any length."""
        return VarCharType(t.MAX_LENGTH, null=nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        """TRUE and FALSE."""
        return BooleanType(null=nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        """A fixed number of bytes."""
        return BinaryType(length, null=nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        """Up to a number of bytes."""
        return VarBinaryType(length, null=nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        """Any number of bytes."""
        return VarBinaryType(t.MAX_LENGTH, null=nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DecimalType:
        """Exact numbers."""
        return DecimalType(precision, scale, null=nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        """Whole numbers of 8 bits."""
        return TinyIntType(null=nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        """Whole numbers of 16 bits."""
        return SmallIntType(null=nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        """Whole numbers of 32 bits."""
        return IntType(null=nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        """Whole numbers of 64 bits."""
        return BigIntType(null=nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        """Floating point numbers of 32 bits."""
        return FloatType(null=nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        """Floating point numbers of 64 bits."""
        return DoubleType(null=nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        """Days."""
        return DateType(null=nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        """Times of day."""
        return TimeType(precision, null=nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        """Date and time without a zone."""
        return TimestampType(precision, null=nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Points in time."""
        return LocalZonedTimestampType(precision, null=nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Points in time."""
        return LocalZonedTimestampType(precision, null=nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        """Lists."""
        return ArrayType(element_type, null=nullable)

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> ListViewType:
        """A list in an accumulator."""
        return ListViewType(element_type)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        """Dicts."""
        return MapType(key_type, value_type, null=nullable)

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> MapViewType:
        """A dict in an accumulator."""
        return MapViewType(key_type, value_type)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> MultisetType:
        """Bags."""
        return MultisetType(element_type, null=nullable)

    @staticmethod
    def ROW(row_fields: Sequence[Any] = (), nullable: bool = True) -> RowType:
        """Named fields."""
        fields = [f if isinstance(f, RowField) else RowField(f"f{i}", f) for i, f in enumerate(row_fields)]
        return RowType(tuple(fields), null=nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        """A field of a row."""
        return RowField(name, data_type, description)

    @staticmethod
    def SECOND(precision: int = 6) -> Resolution:
        """Seconds, in an interval."""
        return Resolution(Resolution.IntervalUnit.SECOND, precision)

    @staticmethod
    def MINUTE() -> Resolution:
        """Minutes, in an interval."""
        return Resolution(Resolution.IntervalUnit.MINUTE)

    @staticmethod
    def HOUR() -> Resolution:
        """Hours, in an interval."""
        return Resolution(Resolution.IntervalUnit.HOUR)

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:
        """Days, in an interval."""
        return Resolution(Resolution.IntervalUnit.DAY, precision)

    @staticmethod
    def MONTH() -> Resolution:
        """Months, in an interval."""
        return Resolution(Resolution.IntervalUnit.MONTH)

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:
        """Years, in an interval."""
        return Resolution(Resolution.IntervalUnit.YEAR, precision)

    @staticmethod
    def INTERVAL(upper_resolution: Resolution, lower_resolution: Resolution | None = None) -> DataType:
        """Spans of time."""
        unit = upper_resolution.unit.name
        name = unit if lower_resolution is None else f"{unit} TO {lower_resolution.unit.name}"
        precision = max(upper_resolution.precision, 2)
        if unit in ("YEAR", "MONTH"):
            return YearMonthIntervalType(name, precision)
        return DayTimeIntervalType(name, precision if unit == "DAY" else 2)

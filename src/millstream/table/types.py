"""DataTypes: the factory of SQL data types, under PyFlink's names.

Promises: every type that PyFlink's DataTypes creates.
Does not know: how a type is stored."""

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
from millstream.table.type_calls import accept_pyflink_parameters
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
    """The type of intervals of days, hours, minutes and seconds.

    Example:
        >>> str(DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND()))
        'INTERVAL DAY(2) TO SECOND(6)'

    """

    class DayTimeResolution(Enum):
        """The fields of a day-time interval."""

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
    """The type of intervals of years and months.

    Example:
        >>> str(DataTypes.INTERVAL(DataTypes.YEAR(), DataTypes.MONTH()))
        'INTERVAL YEAR(2) TO MONTH'

    """

    class YearMonthResolution(Enum):
        """The fields of a year-month interval."""

        YEAR = 1
        MONTH = 2
        YEAR_TO_MONTH = 3


class Resolution:
    """A unit of an interval type and its precision.

    Example:
        >>> DataTypes.SECOND(3).precision
        3

    """

    class IntervalUnit(Enum):
        """The units of interval types."""

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
        """Return the unit."""
        return self._unit

    @property
    def precision(self) -> int:
        """Return the number of digits; -1 means the default."""
        return self._precision

    def __str__(self) -> str:
        return f"{self.unit.name}({self.precision})" if self.precision >= 0 else self.unit.name


accept_pyflink_parameters(DayTimeIntervalType)
accept_pyflink_parameters(YearMonthIntervalType)


class ListViewType(DataType):
    """The type of a ListView in an accumulator.

    Example:
        >>> accumulator_type = DataTypes.ROW([DataTypes.FIELD("names", DataTypes.LIST_VIEW(DataTypes.STRING()))])

    """

    _element_type: DataType

    def __init__(self, element_type: DataType) -> None:
        object.__setattr__(self, "null", False)
        object.__setattr__(self, "_element_type", element_type)

    def text(self) -> str:
        """Return the text of the type."""
        return f"LIST_VIEW<{self._element_type}>"


class MapViewType(DataType):
    """The type of a MapView in an accumulator.

    Example:
        >>> counts = DataTypes.FIELD("counts", DataTypes.MAP_VIEW(DataTypes.STRING(), DataTypes.BIGINT()))

    """

    _key_type: DataType
    _value_type: DataType

    def __init__(self, key_type: DataType, value_type: DataType) -> None:
        object.__setattr__(self, "null", False)
        object.__setattr__(self, "_key_type", key_type)
        object.__setattr__(self, "_value_type", value_type)

    def text(self) -> str:
        """Return the text of the type."""
        return f"MAP_VIEW<{self._key_type}, {self._value_type}>"


class DataTypes:
    """Create SQL data types.

    Each method creates a nullable type unless `nullable` is False.

    Example:
        >>> key = DataTypes.FIELD("id", DataTypes.BIGINT(nullable=False))
        >>> print(DataTypes.ROW([key, DataTypes.FIELD("name", DataTypes.STRING())]))
        ROW<`id` BIGINT NOT NULL, `name` STRING>

    """

    @staticmethod
    def NULL() -> NullType:
        """Create the type of an untyped NULL."""
        return NullType()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        """Create the type CHAR of strings with a fixed length.

        Args:
            length: The number of characters.
            nullable: Whether values can be NULL.

        """
        return CharType(length, null=nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        """Create the type VARCHAR of strings with a maximum length.

        Args:
            length: The maximum number of characters.
            nullable: Whether values can be NULL.

        """
        return VarCharType(length, null=nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        """Create the type STRING of strings of any length.

        Args:
            nullable: Whether values may be NULL.

        """
        return VarCharType(t.MAX_LENGTH, null=nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        """Create the type BOOLEAN.

        Args:
            nullable: Whether values may be NULL.

        """
        return BooleanType(null=nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        """Create the type BINARY of byte strings with a fixed length.

        Args:
            length: The number of bytes.
            nullable: Whether values can be NULL.

        """
        return BinaryType(length, null=nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        """Create the type VARBINARY of byte strings with a maximum length.

        Args:
            length: The maximum number of bytes.
            nullable: Whether values can be NULL.

        """
        return VarBinaryType(length, null=nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        """Create the type BYTES of byte strings of any length.

        Args:
            nullable: Whether values may be NULL.

        """
        return VarBinaryType(t.MAX_LENGTH, null=nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DecimalType:
        """Create the type DECIMAL of exact decimal numbers.

        Args:
            precision: The total number of digits, from 1 to 38.
            scale: The number of digits after the decimal point.
            nullable: Whether values can be NULL.

        """
        return DecimalType(precision, scale, null=nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        """Create the type TINYINT of signed integers of 8 bits.

        Args:
            nullable: Whether values may be NULL.

        """
        return TinyIntType(null=nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        """Create the type SMALLINT of signed integers of 16 bits.

        Args:
            nullable: Whether values may be NULL.

        """
        return SmallIntType(null=nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        """Create the type INT of signed integers of 32 bits.

        Args:
            nullable: Whether values may be NULL.

        """
        return IntType(null=nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        """Create the type BIGINT of signed integers of 64 bits.

        Args:
            nullable: Whether values may be NULL.

        """
        return BigIntType(null=nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        """Create the type FLOAT of floating-point numbers of 32 bits.

        Args:
            nullable: Whether values may be NULL.

        """
        return FloatType(null=nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        """Create the type DOUBLE of floating-point numbers of 64 bits.

        Args:
            nullable: Whether values may be NULL.

        """
        return DoubleType(null=nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        """Create the type DATE.

        Args:
            nullable: Whether values may be NULL.

        """
        return DateType(null=nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        """Create the type TIME of times of day.

        Args:
            precision: The number of digits of fractional seconds.
            nullable: Whether values can be NULL.

        """
        return TimeType(precision, null=nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        """Create the type TIMESTAMP of dates with time, without a time zone.

        Args:
            precision: The number of digits of fractional seconds.
            nullable: Whether values can be NULL.

        """
        return TimestampType(precision, null=nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Create the type TIMESTAMP_LTZ of points in time, which are displayed in the session's time zone.

        Args:
            precision: The number of digits of fractional seconds.
            nullable: Whether values can be NULL.

        """
        return LocalZonedTimestampType(precision, null=nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Create the type TIMESTAMP_LTZ of points in time, which are displayed in the session's time zone.

        Args:
            precision: The number of digits of fractional seconds.
            nullable: Whether values can be NULL.

        """
        return LocalZonedTimestampType(precision, null=nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        """Create the type ARRAY of elements of one type.

        Args:
            element_type: The type of the elements.
            nullable: Whether values may be NULL.

        """
        return ArrayType(element_type, null=nullable)

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> ListViewType:
        """Create the type of a `ListView` in an accumulator.

        Args:
            element_type: The type of the elements.

        """
        return ListViewType(element_type)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        """Create the type MAP from keys to values.

        Args:
            key_type: The type of the keys.
            value_type: The type of the values.
            nullable: Whether values may be NULL.

        """
        return MapType(key_type, value_type, null=nullable)

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> MapViewType:
        """Create the type of a `MapView` in an accumulator.

        Args:
            key_type: The type of the keys.
            value_type: The type of the values.

        """
        return MapViewType(key_type, value_type)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> MultisetType:
        """Create the type MULTISET of elements of one type, each with a multiplicity.

        Args:
            element_type: The type of the elements.
            nullable: Whether values may be NULL.

        """
        return MultisetType(element_type, null=nullable)

    @staticmethod
    def ROW(row_fields: Sequence[Any] = (), nullable: bool = True) -> RowType:
        """Create the type ROW of named fields.

        Args:
            row_fields: Fields of `DataTypes.FIELD`, or types, whose fields are named `f0`, `f1` and so on.
            nullable: Whether values can be NULL.

        """
        fields = [
            field if isinstance(field, RowField) else RowField(f"f{i}", field) for i, field in enumerate(row_fields)
        ]
        return RowType(tuple(fields), null=nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        """Create a field of a row type.

        Args:
            name: The name.
            data_type: The type.
            description: A comment on the field.

        """
        return RowField(name, data_type, description)

    @staticmethod
    def SECOND(precision: int = 6) -> Resolution:
        """Create the unit SECOND of an interval type.

        Args:
            precision: The number of digits of fractional seconds.

        """
        return Resolution(Resolution.IntervalUnit.SECOND, precision)

    @staticmethod
    def MINUTE() -> Resolution:
        """Create the unit MINUTE of an interval type."""
        return Resolution(Resolution.IntervalUnit.MINUTE)

    @staticmethod
    def HOUR() -> Resolution:
        """Create the unit HOUR of an interval type."""
        return Resolution(Resolution.IntervalUnit.HOUR)

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:
        """Create the unit DAY of an interval type.

        Args:
            precision: The number of digits of the days.

        """
        return Resolution(Resolution.IntervalUnit.DAY, precision)

    @staticmethod
    def MONTH() -> Resolution:
        """Create the unit MONTH of an interval type."""
        return Resolution(Resolution.IntervalUnit.MONTH)

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:
        """Create the unit YEAR of an interval type.

        Args:
            precision: The number of digits of the years.

        """
        return Resolution(Resolution.IntervalUnit.YEAR, precision)

    @staticmethod
    def INTERVAL(upper_resolution: Resolution, lower_resolution: Resolution | None = None) -> DataType:
        """Create an interval type, such as INTERVAL DAY TO SECOND.

        Args:
            upper_resolution: The largest unit.
            lower_resolution: The smallest unit; by default the same.

        """
        unit = upper_resolution.unit.name
        name = unit if lower_resolution is None else f"{unit} TO {lower_resolution.unit.name}"
        precision = max(upper_resolution.precision, 2)
        if unit in ("YEAR", "MONTH"):
            return YearMonthIntervalType(name, precision)
        return DayTimeIntervalType(name, precision if unit == "DAY" else 2)

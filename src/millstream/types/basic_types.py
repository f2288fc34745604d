"""Leaf types: numbers, strings, times and pickled Python objects.

Promises: Flink's basic types under their names. Values that PyFlink's coders convert or truncate are converted or
truncated here too.
Does not know: composite types."""

from __future__ import annotations

import datetime
from abc import abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any

import pyarrow as pa

from millstream.types.arrow_types import (
    BigDecimalColumn,
    BigIntegerColumn,
    BooleanColumn,
    Column,
    DateColumn,
    FloatColumn,
    InstantColumn,
    IntegerColumn,
    LocalColumn,
    NanosecondColumn,
    ObjectColumn,
    TextColumn,
    TimeColumn,
    TimestampColumn,
)
from millstream.types.type_information import LeafTypeInfo


class BasicType(Enum):
    """The basic types, with the text that Flink shows for each.

    Example:
        >>> BasicType.LONG.value
        'Long'

    """

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


_COLUMNS: dict[BasicType, Callable[[str], Column]] = {
    BasicType.STRING: TextColumn,
    BasicType.BYTE: lambda name: IntegerColumn(name, pa.int8()),
    BasicType.BOOLEAN: BooleanColumn,
    BasicType.SHORT: lambda name: IntegerColumn(name, pa.int16()),
    BasicType.INT: lambda name: IntegerColumn(name, pa.int32()),
    BasicType.LONG: lambda name: IntegerColumn(name, pa.int64()),
    BasicType.FLOAT: lambda name: FloatColumn(name, pa.float32()),
    BasicType.DOUBLE: lambda name: FloatColumn(name, pa.float64()),
    BasicType.CHAR: TextColumn,
    BasicType.BIG_INT: BigIntegerColumn,
    BasicType.BIG_DEC: BigDecimalColumn,
    BasicType.INSTANT: InstantColumn,
}


class BasicTypeInfo(LeafTypeInfo):
    """The type information of a basic type.

    Example:
        >>> BasicTypeInfo(BasicType.LONG)
        Long

    """

    json_tags = tuple(member.name for member in BasicType)

    def __init__(self, basic_type: BasicType) -> None:
        self.basic_type = basic_type
        super().__init__(_COLUMNS[basic_type](basic_type.value), basic_type.value)

    def to_json(self) -> dict[str, Any]:
        """Return the name of the basic type."""
        return {"type": self.basic_type.name}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> BasicTypeInfo:
        return BasicTypeInfo(BasicType[description["type"]])


class _TaggedLeaf(LeafTypeInfo):
    def __init__(self) -> None:
        super().__init__(self._create_column(), type(self).__name__)

    @abstractmethod
    def _create_column(self) -> Column:
        """Return the column that converts values of this type."""

    def to_json(self) -> dict[str, Any]:
        """Return the tag of the type."""
        return {"type": self.json_tags[0]}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> _TaggedLeaf:  # noqa: ARG003
        return cls()


class DateTypeInfo(_TaggedLeaf):
    """The type of SQL dates.

    Example:
        >>> from millstream.common import Types
        >>> Types.SQL_DATE().arrow_type
        DataType(date32[day])

    """

    json_tags = ("SQL_DATE",)

    def _create_column(self) -> Column:
        return DateColumn("DateTypeInfo")


class TimeTypeInfo(_TaggedLeaf):
    """The type of SQL times of day with a precision of milliseconds.

    Example:
        >>> from millstream.common import Types
        >>> Types.SQL_TIME()
        TimeTypeInfo

    """

    json_tags = ("SQL_TIME",)

    def _create_column(self) -> Column:
        return TimeColumn("TimeTypeInfo")


class TimestampTypeInfo(_TaggedLeaf):
    """The type of SQL timestamps with a precision of milliseconds.

    Example:
        >>> from millstream.common import Types
        >>> Types.SQL_TIMESTAMP()
        TimestampTypeInfo

    """

    json_tags = ("SQL_TIMESTAMP",)

    def _create_column(self) -> Column:
        return TimestampColumn("TimestampTypeInfo")


class NanosecondTimestampTypeInfo(_TaggedLeaf):
    """The type of timestamps without time zone, with a precision of nanoseconds."""

    json_tags = ("NANOSECOND_TIMESTAMP",)

    def _create_column(self) -> Column:
        return NanosecondColumn("NanosecondTimestampTypeInfo")


class PickledBytesTypeInfo(_TaggedLeaf):
    """The type of any Python objects, which are pickled.

    Example:
        >>> from millstream.common import Types
        >>> Types.PICKLED_BYTE_ARRAY()
        PickledByteArrayTypeInfo

    """

    json_tags = ("PICKLED_BYTE_ARRAY",)

    def _create_column(self) -> Column:
        return ObjectColumn("PickledByteArrayTypeInfo")

    @property
    def is_columnar(self) -> bool:
        """Return False: an object is stored as one byte string."""
        return False

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


class LocalTimeTypeInfo(LeafTypeInfo):
    """The type of dates, times or datetimes without time zone, with a precision of microseconds.

    Example:
        >>> LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE)
        LocalTimeTypeInfo<LOCAL_DATE>

    """

    class TimeType(Enum):
        """Whether values are dates, times or datetimes."""

        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    json_tags = tuple(member.name for member in TimeType)

    def __init__(self, time_type: TimeType) -> None:
        self.time_type = time_type
        text = f"LocalTimeTypeInfo<{time_type.name}>"
        arrow_type, python_type = _LOCAL_TYPES[time_type.name]
        super().__init__(LocalColumn(text, arrow_type, python_type), text)

    def to_json(self) -> dict[str, Any]:
        """Return the name of the time type."""
        return {"type": self.time_type.name}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> LocalTimeTypeInfo:
        return LocalTimeTypeInfo(cls.TimeType[description["type"]])


_LOCAL_TYPES: dict[str, tuple[pa.DataType, type]] = {
    "LOCAL_DATE": (pa.date32(), datetime.date),
    "LOCAL_TIME": (pa.time64("us"), datetime.time),
    "LOCAL_DATE_TIME": (pa.timestamp("us"), datetime.datetime),
}

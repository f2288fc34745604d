"""Leaf types: numbers, text, times and untyped Python objects.

Promises: Flink's basic types under their names; what PyFlink's coders convert or cut, these convert or cut.
Does not know: composites."""

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
    ObjectColumn,
    TextColumn,
    TimeColumn,
    TimestampColumn,
)
from millstream.types.type_information import LeafTypeInfo


class BasicType(Enum):
    """The basic types, with the text that Flink shows for each."""

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
    """One of Flink's basic types."""

    json_tags = tuple(kind.name for kind in BasicType)

    def __init__(self, basic_type: BasicType) -> None:
        self._basic_type = basic_type
        super().__init__(_COLUMNS[basic_type](basic_type.value), basic_type.value)

    def to_json(self) -> dict[str, Any]:
        """As TypeInformation promises."""
        return {"type": self._basic_type.name}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> BasicTypeInfo:
        return BasicTypeInfo(BasicType[description["type"]])


class _TaggedLeaf(LeafTypeInfo):
    def __init__(self) -> None:
        super().__init__(self._make_column(), type(self).__name__)

    @abstractmethod
    def _make_column(self) -> Column:
        """The column that values of this type are kept in."""

    def to_json(self) -> dict[str, Any]:
        """As TypeInformation promises."""
        return {"type": self.json_tags[0]}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> _TaggedLeaf:  # noqa: ARG003
        return cls()


class DateTypeInfo(_TaggedLeaf):
    """A SQL date."""

    json_tags = ("SQL_DATE",)

    def _make_column(self) -> Column:
        return DateColumn("DateTypeInfo")


class TimeTypeInfo(_TaggedLeaf):
    """A SQL time of day, to the millisecond."""

    json_tags = ("SQL_TIME",)

    def _make_column(self) -> Column:
        return TimeColumn("TimeTypeInfo")


class TimestampTypeInfo(_TaggedLeaf):
    """A SQL timestamp, to the millisecond."""

    json_tags = ("SQL_TIMESTAMP",)

    def _make_column(self) -> Column:
        return TimestampColumn("TimestampTypeInfo")


class PickledBytesTypeInfo(_TaggedLeaf):
    """Python objects of any kind."""

    json_tags = ("PICKLED_BYTE_ARRAY",)

    def _make_column(self) -> Column:
        return ObjectColumn("PickledByteArrayTypeInfo")

    @property
    def is_columnar(self) -> bool:
        """False: an object is one run of bytes."""
        return False

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


class LocalTimeTypeInfo(LeafTypeInfo):
    """A date, time or datetime without zone, kept exactly (to the microsecond)."""

    class TimeType(Enum):
        """Which of the three."""

        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    json_tags = tuple(kind.name for kind in TimeType)

    def __init__(self, time_type: TimeType) -> None:
        self._time_type = time_type
        text = f"LocalTimeTypeInfo<{time_type.name}>"
        arrow_type, python_type = _LOCAL[time_type.name]
        super().__init__(LocalColumn(text, arrow_type, python_type), text)

    def to_json(self) -> dict[str, Any]:
        """As TypeInformation promises."""
        return {"type": self._time_type.name}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> LocalTimeTypeInfo:
        return LocalTimeTypeInfo(cls.TimeType[description["type"]])


_LOCAL: dict[str, tuple[pa.DataType, type]] = {
    "LOCAL_DATE": (pa.date32(), datetime.date),
    "LOCAL_TIME": (pa.time64("us"), datetime.time),
    "LOCAL_DATE_TIME": (pa.timestamp("us"), datetime.datetime),
}

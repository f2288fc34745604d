"""Spark SQL spelling of types, literals and calls.

Promises: a type has a spelling only if Spark holds its values exactly; a literal of any content is one token that
cannot end early.
Does not know: plans; which functions Spark computes as Flink does, because each function declares its own spelling.

A scalar function declares `spark=` in `registry.define`: a template such as "CHAR_LENGTH({0})", or a function of a
`SparkCall`. Aggregates override `Aggregation.spark`. A call without a spelling is computed by our own functions."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from millstream.engine.relational import RAISED
from millstream.sql.expressions.nodes import AggregateCall, Expression
from millstream.sql.types import data_types as t

_MICROSECOND_DIGITS = 6
_PLAIN = re.compile(r"[A-Za-z0-9 _,.:;#%()\-+*/=<>!?@&|{}\[\]]")
_SAFE_INT = 1 << 31
_NAMES: tuple[tuple[type[t.DataType], str], ...] = (
    (t.BooleanType, "BOOLEAN"),
    (t.TinyIntType, "TINYINT"),
    (t.SmallIntType, "SMALLINT"),
    (t.IntType, "INT"),
    (t.BigIntType, "BIGINT"),
    (t.FloatType, "FLOAT"),
    (t.DoubleType, "DOUBLE"),
    (t.CharType, "STRING"),
    (t.VarCharType, "STRING"),
    (t.BinaryType, "BINARY"),
    (t.VarBinaryType, "BINARY"),
    (t.DateType, "DATE"),
)


def get_spark_type(data_type: t.DataType) -> str | None:
    """Return the name of Spark's type with the same values; None if there is none."""
    match data_type:
        case t.DecimalType():
            return f"DECIMAL({data_type.precision},{data_type.scale})"
        case t.TimestampType():
            return "TIMESTAMP_NTZ" if data_type.precision <= _MICROSECOND_DIGITS else None
        case t.LocalZonedTimestampType():
            return "TIMESTAMP_LTZ" if data_type.precision <= _MICROSECOND_DIGITS else None
        case t.ArrayType():
            element = get_spark_type(data_type.element)
            return None if element is None else f"ARRAY<{element}>"
        case t.RowType():
            fields = [get_spark_type(field_type) for field_type in data_type.types]
            if None in fields or not fields:
                return None
            return f"STRUCT<{', '.join(f'`{i}`: {field}' for i, field in enumerate(fields))}>"
    return next((name for cls, name in _NAMES if isinstance(data_type, cls)), None)


def spell_string(value: str) -> str:
    """Spell a string of any content."""
    characters = []
    for c in value:
        if _PLAIN.match(c):
            characters.append(c)
        else:
            characters.append(f"\\u{ord(c):04X}" if ord(c) < 1 << 16 else f"\\U{ord(c):08X}")
    return f"'{''.join(characters)}'"


def spell_literal(value: Any, data_type: t.DataType) -> str | None:
    """Spell a literal; None if Spark cannot hold it exactly."""
    name = get_spark_type(data_type)
    if name is None:
        return None
    if value is None:
        return f"CAST(NULL AS {name})"
    match data_type:
        case t.BooleanType():
            return "TRUE" if value else "FALSE"
        case t.IntType() if abs(value) < _SAFE_INT:
            return str(value) if value >= 0 else f"({value})"
        case t.IntegerType() | t.FloatType() | t.DoubleType():
            return f"CAST('{_spell_number(value)}' AS {name})"
        case t.DecimalType():
            return f"CAST('{Decimal(value):f}' AS {name})"
        case t.CharType() | t.VarCharType():
            return spell_string(value)
        case t.BinaryType() | t.VarBinaryType():
            return f"X'{value.hex()}'"
        case t.DateType():
            return f"DATE'{value.isoformat()}'"
        case t.TimestampType():
            return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        case t.LocalZonedTimestampType():
            timestamp = value.astimezone(datetime.UTC).replace(tzinfo=None)
            return f"TIMESTAMP_LTZ'{timestamp.isoformat(sep=' ')} UTC'"
    return None


def spell_error(reason: str, type_name: str) -> str:
    """Spell a call that fails the query, in the place of a value of a type."""
    return f"CAST(raise_error('{RAISED}{reason}') AS {type_name})"


def _spell_number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(float(value)), repr(float(value)))


class NoSparkSpelling(Exception):
    """Raised while a call is spelled: Spark does not compute what Flink computes, or an argument has no spelling."""


@dataclass(frozen=True)
class SparkCall:
    """A call of a scalar function that is to be spelled in Spark SQL."""

    function: str
    type: t.DataType
    args: tuple[Expression, ...]
    spell: Callable[[Expression], str | None]
    constant: Callable[[Expression], Any]  # the value of an expression without columns, None for others

    @property
    def arg_types(self) -> list[t.DataType]:
        """The types of the arguments."""
        return [arg.type for arg in self.args]

    def text(self, index: int) -> str:
        """Return the spelling of an argument."""
        text = self.spell(self.args[index])
        if text is None:
            raise NoSparkSpelling(self.args[index])
        return text

    def texts(self) -> list[str]:
        """Return the spelling of every argument."""
        return [self.text(index) for index in range(len(self.args))]

    def result_type(self) -> str:
        """Return the spelling of the result's type."""
        name = get_spark_type(self.type)
        if name is None:
            raise NoSparkSpelling(self.type)
        return name


SparkSpelling = str | Callable[[SparkCall], str]


def spell_call(spelling: SparkSpelling | None, call: SparkCall) -> str | None:
    """Spell a call as its function declares it; None if it has no spelling."""
    if spelling is None:
        return None
    try:
        return spelling(call) if callable(spelling) else spelling.format(*call.texts())
    except NoSparkSpelling:
        return None


def is_scalar(data_type: t.DataType) -> bool:
    """Whether Spark compares and orders values of a type as Flink does, except for NaN."""
    if t.is_text(data_type) or t.is_timestamp(data_type):
        return True
    return isinstance(data_type, t.NumericType | t.BooleanType | t.DateType)


@dataclass(frozen=True)
class SparkAggregate:
    """A call of an aggregate function that is to be spelled in Spark SQL.

    `args` is the list of columns, `tail` the clause after the call: FILTER (...), OVER (...) or nothing."""

    call: AggregateCall
    args: str
    tail: str
    type_name: str

    @property
    def inside(self) -> str:
        """The text between the parentheses of the call."""
        return f"DISTINCT {self.args}" if self.call.distinct else self.args


@dataclass(frozen=True)
class SparkOverCall:
    """A call of a function that exists with OVER only, such as ROW_NUMBER; `order` is empty without ORDER BY."""

    call: AggregateCall
    args: tuple[str, ...]
    partition: str
    order: str

    def window(self, default_order: str = "") -> str:
        """Return the text between the parentheses of OVER."""
        order = self.order or default_order
        return " ".join(part for part in (self.partition, f"ORDER BY {order}" if order else "") if part)

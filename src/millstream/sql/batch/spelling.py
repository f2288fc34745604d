"""Types and constants as Spark writes them, and columns on their way to Spark and back.

Promises: a type that Spark does not hold exactly has no spelling; a constant of any content is one token that cannot
end early.
Does not know: plans, functions."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millstream.sql import types as t
from millstream.sql.columns import arrow_type

_MICROS = 6
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


def spark_type(kind: t.DataType) -> str | None:
    """The type's name; None where Spark has no type with the same values."""
    match kind:
        case t.DecimalType():
            return f"DECIMAL({kind.precision},{kind.scale})"
        case t.TimestampType():
            return "TIMESTAMP_NTZ" if kind.precision <= _MICROS else None
        case t.LocalZonedTimestampType():
            return "TIMESTAMP_LTZ" if kind.precision <= _MICROS else None
        case t.ArrayType():
            inner = spark_type(kind.element)
            return None if inner is None else f"ARRAY<{inner}>"
        case t.RowType():
            parts = [spark_type(each) for each in kind.types]
            if None in parts or not parts:
                return None
            return f"STRUCT<{', '.join(f'`{i}`: {part}' for i, part in enumerate(parts))}>"
    return next((name for cls, name in _NAMES if isinstance(kind, cls)), None)


def columns_text(row: t.RowType) -> str | None:
    """The columns of a step, c0 to cN; None where one cannot travel."""
    kinds = [spark_type(kind) for kind in row.types]
    if None in kinds:
        return None
    return ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds)) or "d INT"


def quoted(name: str) -> str:
    """A name of any content."""
    return f"`{name.replace('`', '``')}`"


def string(value: str) -> str:
    """A string of any content."""
    made = []
    for c in value:
        if _PLAIN.match(c):
            made.append(c)
        else:
            made.append(f"\\u{ord(c):04X}" if ord(c) < 1 << 16 else f"\\U{ord(c):08X}")
    return f"'{''.join(made)}'"


def literal(value: Any, kind: t.DataType) -> str | None:
    """A constant; None where Spark cannot hold it exactly."""
    name = spark_type(kind)
    if name is None:
        return None
    if value is None:
        return f"CAST(NULL AS {name})"
    match kind:
        case t.BooleanType():
            return "TRUE" if value else "FALSE"
        case t.IntType() if abs(value) < _SAFE_INT:
            return str(value) if value >= 0 else f"({value})"
        case t.IntegerType() | t.FloatType() | t.DoubleType():
            return f"CAST('{_number(value)}' AS {name})"
        case t.DecimalType():
            return f"CAST('{Decimal(value):f}' AS {name})"
        case t.CharType() | t.VarCharType():
            return string(value)
        case t.BinaryType() | t.VarBinaryType():
            return f"X'{value.hex()}'"
        case t.DateType():
            return f"DATE'{value.isoformat()}'"
        case t.TimestampType():
            return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        case t.LocalZonedTimestampType():
            moment = value.astimezone(datetime.UTC).replace(tzinfo=None)
            return f"TIMESTAMP_LTZ'{moment.isoformat(sep=' ')} UTC'"
    return None


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(float(value)), repr(float(value)))


def spark_arrow(kind: t.DataType) -> pa.DataType:
    """The Arrow type in which Spark takes and gives values of a type."""
    match kind:
        case t.TimestampType():
            return pa.timestamp("us")
        case t.LocalZonedTimestampType():
            return pa.timestamp("us", "UTC")
        case t.ArrayType():
            return pa.list_(spark_arrow(kind.element))
        case t.RowType():
            return pa.struct([(str(i), spark_arrow(each)) for i, each in enumerate(kind.types)])
    return arrow_type(kind)


def to_spark(columns: list[pa.Array], row: t.RowType, count: int) -> pa.RecordBatch:
    """Columns as a batch for Spark."""
    if not columns:
        return pa.RecordBatch.from_arrays([pa.nulls(count, pa.int32())], names=["d"])
    wanted = [spark_arrow(kind) for kind in row.types]
    made = [
        column if column.type == kind else column.cast(kind, safe=False)
        for column, kind in zip(columns, wanted, strict=True)
    ]
    return pa.RecordBatch.from_arrays(made, names=[f"c{i}" for i in range(len(made))])


def from_spark(batch: pa.RecordBatch, row: t.RowType) -> list[pa.Array]:
    """A batch from Spark as columns."""
    wanted = [arrow_type(kind) for kind in row.types]
    return [
        column if column.type == kind else column.cast(kind, safe=False)
        for column, kind in zip(batch.columns, wanted, strict=False)
    ]

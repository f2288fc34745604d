"""Conversion of columns to and from Spark: names and Arrow types.

Promises: a row type with a column that Spark cannot represent exactly has no spelling.
Does not know: plans, functions."""

from __future__ import annotations

import pyarrow as pa

from millstream.sql.columns import arrow_type
from millstream.sql.functions.spark import get_spark_type
from millstream.sql.types import data_types as t


def spell_columns(row: t.RowType) -> str | None:
    """Spell the columns c0 to cN of a step; None if Spark cannot represent one of them."""
    type_names = [get_spark_type(data_type) for data_type in row.types]
    if None in type_names:
        return None
    return ", ".join(f"c{i} {name}" for i, name in enumerate(type_names)) or "d INT"


def get_spark_arrow_type(data_type: t.DataType) -> pa.DataType:
    """Return the Arrow type in which Spark exchanges values of a type."""
    match data_type:
        case t.TimestampType():
            return pa.timestamp("us")
        case t.LocalZonedTimestampType():
            return pa.timestamp("us", "UTC")
        case t.ArrayType():
            return pa.list_(get_spark_arrow_type(data_type.element))
        case t.RowType():
            return pa.struct(
                [(str(i), get_spark_arrow_type(field_type)) for i, field_type in enumerate(data_type.types)]
            )
    return arrow_type(data_type)


def to_spark(columns: list[pa.Array], row: t.RowType, count: int) -> pa.RecordBatch:
    """Convert columns to a batch for Spark."""
    if not columns:
        return pa.RecordBatch.from_arrays([pa.nulls(count, pa.int32())], names=["d"])
    arrow_types = [get_spark_arrow_type(data_type) for data_type in row.types]
    converted = [
        column if column.type == target else column.cast(target, safe=False)
        for column, target in zip(columns, arrow_types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(converted, names=[f"c{i}" for i in range(len(converted))])


def from_spark(batch: pa.RecordBatch, row: t.RowType) -> list[pa.Array]:
    """Convert a batch from Spark to columns."""
    arrow_types = [arrow_type(data_type) for data_type in row.types]
    return [
        column if column.type == target else column.cast(target, safe=False)
        for column, target in zip(batch.columns, arrow_types, strict=False)
    ]

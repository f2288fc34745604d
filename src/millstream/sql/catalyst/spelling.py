"""Columns on their way to Spark and back: their names, and their Arrow types in Spark.

Promises: a row that has a column of a type that Spark does not hold exactly has no spelling.
Does not know: plans, functions."""

from __future__ import annotations

import pyarrow as pa

from millstream.sql.columns import arrow_type
from millstream.sql.functions.spark import spark_type
from millstream.sql.types import data_types as t


def columns_text(row: t.RowType) -> str | None:
    """The columns of a step, c0 to cN; None where one cannot travel."""
    kinds = [spark_type(kind) for kind in row.types]
    if None in kinds:
        return None
    return ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds)) or "d INT"


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

"""Steps that the functions of this package compute, on batches that Spark hands over.

Promises: picklable functions from batches to batches; what they compute is what the operators of a stream compute.
Does not know: Spark, plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.connector.source import Records
from millstream.errors import UserError
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.sql.catalyst.columns import from_spark, to_spark
from millstream.sql.columns import arrow_type, row_type_info, struct_of
from millstream.sql.evaluation.evaluate import Condition, Frame, Projection
from millstream.sql.expressions.nodes import Expression
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators import moments
from millstream.sql.operators.window.window_aggregate import WindowTableSpec, assigned, window_columns
from millstream.sql.types import data_types as t
from millstream.types.factory import TypeInformation


class NoTime(UserError):
    """A row without a time in a window."""

    def __init__(self) -> None:
        super().__init__("a row without a time cannot be put into a window: its time attribute is NULL")


@dataclass(frozen=True)
class Calc:
    """A condition, then columns; either may be missing."""

    input: t.RowType
    output: t.RowType
    condition: Expression | None
    exprs: tuple[Expression, ...] | None
    zone: str

    def __call__(self, batches: Iterator[pa.RecordBatch], now: int) -> Iterator[pa.RecordBatch]:
        """Compute."""
        condition = None if self.condition is None else Condition(self.condition)
        projection = None if self.exprs is None else Projection(self.exprs)
        for batch in batches:
            frame = Frame(from_spark(batch, self.input), batch.num_rows, now, self.zone)
            if condition is not None:
                holds = condition.holds(frame)
                frame = frame if holds.all() else frame.take(np.flatnonzero(holds))
            columns = list(frame.columns) if projection is None else projection.columns(frame)
            yield to_spark(columns, self.output, frame.count)


@dataclass(frozen=True)
class Windows:
    """Each row once for each window it is in."""

    input: t.RowType
    output: t.RowType
    window: WindowSpec
    zone: str

    def __call__(self, batches: Iterator[pa.RecordBatch], now: int) -> Iterator[pa.RecordBatch]:
        """Put rows into windows."""
        spec = WindowTableSpec(self.input, self.output, self.window, self.zone)
        zoned = isinstance(self.input.types[self.window.time], t.LocalZonedTimestampType)
        for batch in batches:
            columns = from_spark(batch, self.input)
            times = moments.column_millis(columns[self.window.time])
            if (times == NO_TIMESTAMP).any():
                raise NoTime
            rows, starts, ends = assigned(moments.local_millis(times, self.zone) if zoned else times, self.window)
            chosen = pa.array(rows)
            made = [column.take(chosen) for column in columns]
            yield to_spark([*made, *window_columns(starts, ends, spec, self.zone)], self.output, len(rows))


@dataclass(frozen=True)
class Entered:
    """Records of a source as columns; `adapted` computes a table's columns from those of its source."""

    kind: TypeInformation
    source: t.RowType
    output: t.RowType
    foreign: bool
    adapted: tuple[Expression, ...] | None
    zone: str

    def __call__(self, records: Records, now: int) -> pa.RecordBatch:
        """Convert."""
        array = self._array(records)
        columns = [array.field(i) for i in range(len(self.source))]
        if self.adapted is not None:
            columns = Projection(self.adapted).columns(Frame(columns, len(array), now, self.zone))
        return to_spark(columns, self.output, len(array))

    def _array(self, records: Records) -> pa.Array:
        columnar = isinstance(records.values, pa.Array)
        if columnar and not self.foreign:
            return records.values
        if columnar and getattr(self.kind, "field_names", None) == self.source.names and not records.values.null_count:
            fields = [records.values.field(i) for i in range(len(self.source))]
            if [field.type for field in fields] == [arrow_type(kind) for kind in self.source.types]:
                return struct_of(fields, None, self.source, len(records.values))
        rows = Batch(self.kind, array=records.values).rows() if columnar else list(records.values)
        return (row_type_info(self.source) if self.foreign else self.kind).to_arrow(list(rows))

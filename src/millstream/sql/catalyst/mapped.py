"""Steps that our own functions compute on batches inside Spark.

Promises: picklable functions from batches to batches, which compute what streaming operators compute.
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
from millstream.sql.columns import arrow_type, combine_columns, create_row_type_info
from millstream.sql.evaluation.evaluate import Condition, Frame, Projection
from millstream.sql.expressions.nodes import Expression
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators import timestamps
from millstream.sql.operators.window.window_aggregate import WindowTableSpec, assign_windows, create_window_columns
from millstream.sql.types import data_types as t
from millstream.types.factory import TypeInformation


class NoTime(UserError):
    """The time attribute of a row is NULL, so it has no window."""

    def __init__(self) -> None:
        super().__init__("a row cannot be assigned to a window: its time attribute is NULL")


@dataclass(frozen=True)
class Calc:
    """A condition, then a projection; each can be missing."""

    input: t.RowType
    output: t.RowType
    condition: Expression | None
    exprs: tuple[Expression, ...] | None
    zone: str

    def __call__(self, batches: Iterator[pa.RecordBatch], now: int) -> Iterator[pa.RecordBatch]:
        """Filter and project the batches."""
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
    """Each row once for each of its windows."""

    input: t.RowType
    output: t.RowType
    window: WindowSpec
    zone: str

    def __call__(self, batches: Iterator[pa.RecordBatch], now: int) -> Iterator[pa.RecordBatch]:
        """Assign the rows of batches to windows."""
        spec = WindowTableSpec(self.input, self.output, self.window, self.zone)
        zoned = isinstance(self.input.types[self.window.time], t.LocalZonedTimestampType)
        for batch in batches:
            columns = from_spark(batch, self.input)
            times = timestamps.read_column_millis(columns[self.window.time])
            if (times == NO_TIMESTAMP).any():
                raise NoTime
            rows, starts, ends = assign_windows(
                timestamps.to_local_millis(times, self.zone) if zoned else times, self.window
            )
            row_indexes = pa.array(rows)
            repeated = [column.take(row_indexes) for column in columns]
            yield to_spark([*repeated, *create_window_columns(starts, ends, spec, self.zone)], self.output, len(rows))


@dataclass(frozen=True)
class Entered:
    """Converts records of a source to columns; `adapted` computes a table's columns from those of its source."""

    record_type: TypeInformation
    source: t.RowType
    output: t.RowType
    foreign: bool
    adapted: tuple[Expression, ...] | None
    zone: str

    def __call__(self, records: Records, now: int) -> pa.RecordBatch:
        """Convert records to a batch for Spark."""
        array = self._array(records)
        columns = [array.field(i) for i in range(len(self.source))]
        if self.adapted is not None:
            columns = Projection(self.adapted).columns(Frame(columns, len(array), now, self.zone))
        return to_spark(columns, self.output, len(array))

    def _array(self, records: Records) -> pa.Array:
        columnar = isinstance(records.values, pa.Array)
        if columnar and not self.foreign:
            return records.values
        if (
            columnar
            and getattr(self.record_type, "field_names", None) == self.source.names
            and not records.values.null_count
        ):
            fields = [records.values.field(i) for i in range(len(self.source))]
            if [field.type for field in fields] == [arrow_type(data_type) for data_type in self.source.types]:
                return combine_columns(fields, None, self.source, len(records.values))
        rows = Batch(self.record_type, array=records.values).rows() if columnar else list(records.values)
        return (create_row_type_info(self.source) if self.foreign else self.record_type).to_arrow(list(rows))

"""Conversion of records to rows of a table.

Promises: values are checked against the types of the columns; a row keeps its row kind. Columns whose types agree are
passed on without a look at their values.
Does not know: sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.formats.format_types import FieldSelection
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import arrow_type, combine_columns, create_row_type_info
from millstream.sql.operators.spec import STATELESS, PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class EnterSpec(SqlOperatorSpec):
    """How records become rows.

    With `wrapped`, a record is the only column; with `timed`, the record's timestamp is the last column. If records
    have only some of the table's columns and fields, `shown` is the complete row type."""

    schema: t.RowType
    wrapped: bool = False
    timed: bool = False
    shown: t.RowType | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept."""
        return STATELESS

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return EnterOperator(context, self)


class RecordConverter:
    """Converts batches of records to arrays of rows."""

    def __init__(self, spec: EnterSpec) -> None:
        self._spec = spec
        width = len(spec.schema) - (1 if spec.timed else 0)
        self._inner = t.row_of(spec.schema.names[:width], spec.schema.types[:width], null=False)
        self._type_info = create_row_type_info(self._inner)
        self._shown = self._inner if spec.shown is None else spec.shown
        self._read = _create_columns_reader(self._inner, self._shown)

    def array(self, batch: Batch) -> pa.Array:
        """Return the rows of a batch as a struct array."""
        array = self._find_columns(batch)
        if array is None:
            rows = batch.rows()
            array = self._type_info.to_arrow([(row,) for row in rows] if self._spec.wrapped else list(rows))
            if self._shown is not self._inner:
                width = len(self._inner)
                columns = self._read([array.field(i) for i in range(width)], len(array))
                array = combine_columns(columns or [], array.field(width), self._shown, len(array))
        if self._spec.timed:
            width = len(self._inner)
            times = np.array(batch.times(), dtype=np.int64)
            timestamps = pa.array(times, mask=times == NO_TIMESTAMP).cast(pa.timestamp("ms"))
            timestamps = timestamps.cast(arrow_type(self._spec.schema.types[width]))
            columns = [array.field(i) for i in range(width)]
            array = combine_columns([*columns, timestamps], array.field(width), self._spec.schema, len(array))
        return array

    def _find_columns(self, batch: Batch) -> pa.Array | None:
        """Return the rows of a columnar batch; None if its columns are not those of the table."""
        if (
            self._spec.wrapped
            or not batch.columnar
            or getattr(batch.record_type, "field_names", None) != self._inner.names
        ):
            return None
        array, count = batch.array(), len(self._inner)
        if array.null_count or array.type.num_fields != count + 1:
            return None
        columns = self._read([array.field(i) for i in range(count)], len(array))
        return None if columns is None else combine_columns(columns, array.field(count), self._shown, len(array))


class EnterOperator(Operator):
    """Converts records to rows."""

    def __init__(self, context: OperatorContext, spec: EnterSpec) -> None:
        super().__init__(context)
        self._entrance = RecordConverter(spec)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Emit the records as rows."""
        self.out.emit(Batch(self.context.output_type, array=self._entrance.array(batch)))


def narrow_row_type(row: t.RowType, wanted: FieldSelection) -> t.RowType:
    """Return a row type with the wanted fields, and the wanted fields of its rows."""
    data_types = []
    for index, part in wanted:
        data_type = row.types[index]
        data_types.append(
            narrow_row_type(data_type, part) if part is not None and isinstance(data_type, t.RowType) else data_type
        )
    return t.row_of([row.names[index] for index, _ in wanted], data_types, null=row.null)


def _create_columns_reader(
    source: t.RowType, target: t.RowType
) -> Callable[[Sequence[pa.Array], int], list[pa.Array] | None]:
    """Return a function that maps columns of one row type to those of another by name, without reading values.

    Missing columns are NULL. The function returns None if values would have to be converted."""
    source_indexes = {name: index for index, name in enumerate(source.names)}
    plan: list[tuple[int | None, Any]] = []
    for name, data_type in zip(target.names, target.types, strict=True):
        index = source_indexes.get(name)
        plan.append(
            (None, _create_nulls_function(arrow_type(data_type)))
            if index is None
            else (index, _create_reader(source.types[index], data_type))
        )

    def read(arrays: Sequence[pa.Array], count: int) -> list[pa.Array] | None:
        columns = [convert(count) if index is None else convert(arrays[index]) for index, convert in plan]
        return None if any(column is None for column in columns) else columns

    return read


def _create_nulls_function(data_type: pa.DataType) -> Callable[[int], pa.Array]:
    """Return a function that creates columns of NULL, as slices of one array."""
    longest = pa.nulls(0, data_type)

    def some(count: int) -> pa.Array:
        nonlocal longest
        if len(longest) < count:
            longest = pa.nulls(count, data_type)
        return longest.slice(0, count)

    return some


def _create_reader(source: t.DataType, target: t.DataType) -> Callable[[pa.Array], pa.Array | None]:
    target_type = arrow_type(target)
    if not isinstance(source, t.RowType) or not isinstance(target, t.RowType):
        return lambda array: array if array.type == target_type else None
    children, count, fields = _create_columns_reader(source, target), len(source), list(target_type)

    def read(array: pa.Array) -> pa.Array | None:
        if array.type == target_type:
            return array
        if not pa.types.is_struct(array.type):
            return None
        columns = children([array.field(i) for i in range(count)], len(array))
        mask = array.is_null() if array.null_count else None
        return None if columns is None else pa.StructArray.from_arrays(columns, fields=fields, mask=mask)

    return read

"""Enforces the constraints of a sink's columns.

Promises: Flink's ConstraintEnforcer: no NULL is written to a NOT NULL column, and if it is configured, no text or bytes
of another length than declared.
Does not know: the sink."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import UserError
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import combine_columns
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.spec import STATELESS, PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t


class NullWritten(UserError):
    """A NULL would be written to a NOT NULL column."""

    hint = "filter such rows, or set 'table.exec.sink.not-null-enforcer' = 'DROP' to drop them"

    def __init__(self, table: str, column: str) -> None:
        self.table, self.column = table, column
        super().__init__(f"column '{column}' of '{table}' is NOT NULL, but a row has NULL there")


class TooLong(UserError):
    """A value has another length than its column allows."""

    hint = "set 'table.exec.sink.type-length-enforcer' = 'TRIM_PAD' to truncate or pad values"

    def __init__(self, table: str, column: str, data_type: str) -> None:
        self.table, self.column = table, column
        super().__init__(
            f"column '{column}' of '{table}' is {data_type}, but a row has a value of another length there"
        )


@dataclass(frozen=True)
class ConstraintSpec(SqlOperatorSpec):
    """`required` columns are NOT NULL; `drop` drops rows with NULL there. `lengths` is IGNORE, TRIM_PAD or ERROR."""

    schema: t.RowType
    target: t.RowType
    table: str
    required: tuple[int, ...]
    drop: bool = False
    lengths: str = "IGNORE"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept."""
        return STATELESS

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return ConstraintOperator(context, self)


class ConstraintOperator(TableOperator):
    """Checks rows before they are written."""

    def __init__(self, context: OperatorContext, spec: ConstraintSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec

    def on_batch(self, batch: Batch, side: int) -> None:
        """Check the rows, and pass them on."""
        array = self._check_nulls(batch.array())
        if self._spec.lengths != "IGNORE" and len(array):
            array = self._check_lengths(array)
        self.emit_array(array)

    def _check_nulls(self, array: pa.Array) -> pa.Array:
        spec = self._spec
        keep = np.ones(len(array), bool)
        for column_index in spec.required:
            column = array.field(column_index)
            if column.null_count:
                if not spec.drop:
                    raise NullWritten(spec.table, spec.target.names[column_index])
                keep &= column.is_valid().to_numpy(zero_copy_only=False)
        if keep.all():
            return array
        self.context.metrics.count("dropped.null", int(len(keep) - keep.sum()))
        return array.take(pa.array(np.flatnonzero(keep)))

    def _check_lengths(self, array: pa.Array) -> pa.Array:
        width = len(self.output)
        columns = [array.field(i) for i in range(width)]
        for index, data_type in enumerate(self._spec.target.types):
            if isinstance(data_type, t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType):
                columns[index] = self._check_length(columns[index], data_type, index)
        return combine_columns(columns, array.field(width), self.output, len(array))

    def _check_length(
        self, column: pa.Array, data_type: t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType, index: int
    ) -> pa.Array:
        is_text = isinstance(data_type, t.CharType | t.VarCharType)
        lengths = pc.utf8_length(column) if is_text else pc.binary_length(column)
        is_fixed = isinstance(data_type, t.CharType | t.BinaryType)
        is_wrong = pc.not_equal(lengths, data_type.length) if is_fixed else pc.greater(lengths, data_type.length)
        if not is_wrong.fill_null(False).to_numpy(zero_copy_only=False).any():
            return column
        if self._spec.lengths == "ERROR":
            raise TooLong(self._spec.table, self._spec.target.names[index], str(data_type))
        if is_text:
            cut = pc.utf8_slice_codeunits(column, 0, data_type.length)
            return pc.utf8_rpad(cut, data_type.length) if is_fixed else cut
        cut = pc.binary_slice(column, 0, data_type.length)
        if not is_fixed:
            return cut
        missing = pc.subtract(data_type.length, pc.binary_length(cut))
        return pc.binary_join_element_wise(cut, pc.binary_repeat(pa.scalar(b"\0"), missing), b"")

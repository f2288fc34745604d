"""What a table promises about its columns, enforced before rows are written to it.

Promises: Flink's ConstraintEnforcer: no NULL reaches a NOT NULL column, and where it was asked for, no text or bytes
are longer than declared.
Does not know: the sink."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import UserError
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import struct_of
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.spec import STATELESS, PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t


class NullWritten(UserError):
    """A NULL is on its way into a column that takes none."""

    hint = "filter such rows, or set 'table.exec.sink.not-null-enforcer' = 'DROP' to leave them out"

    def __init__(self, table: str, column: str) -> None:
        self.table, self.column = table, column
        super().__init__(f"column '{column}' of '{table}' is NOT NULL, but a row has NULL there")


class TooLong(UserError):
    """A value is longer than its column."""

    hint = "set 'table.exec.sink.type-length-enforcer' = 'TRIM_PAD' to cut values off"

    def __init__(self, table: str, column: str, kind: str) -> None:
        self.table, self.column = table, column
        super().__init__(f"column '{column}' of '{table}' is {kind}, but a row has a value of another length there")


@dataclass(frozen=True)
class ConstraintSpec(SqlOperatorSpec):
    """`required` columns take no NULL: `drop` leaves such rows out. `lengths` is IGNORE, TRIM_PAD or ERROR."""

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
        """The operator."""
        return ConstraintOperator(context, self)


class ConstraintOperator(TableOperator):
    """Stateless."""

    def __init__(self, context: OperatorContext, spec: ConstraintSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec

    def on_batch(self, batch: Batch, side: int) -> None:
        """Check, and let through."""
        array = self._without_nulls(batch.array())
        if self._spec.lengths != "IGNORE" and len(array):
            array = self._fitting(array)
        self.emit_array(array)

    def _without_nulls(self, array: pa.Array) -> pa.Array:
        spec = self._spec
        keep = np.ones(len(array), bool)
        for place in spec.required:
            column = array.field(place)
            if column.null_count:
                if not spec.drop:
                    raise NullWritten(spec.table, spec.target.names[place])
                keep &= column.is_valid().to_numpy(zero_copy_only=False)
        if keep.all():
            return array
        self.context.metrics.count("dropped.null", int(len(keep) - keep.sum()))
        return array.take(pa.array(np.flatnonzero(keep)))

    def _fitting(self, array: pa.Array) -> pa.Array:
        width = len(self.output)
        columns = [array.field(i) for i in range(width)]
        for place, kind in enumerate(self._spec.target.types):
            if isinstance(kind, t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType):
                columns[place] = self._fitted(columns[place], kind, place)
        return struct_of(columns, array.field(width), self.output, len(array))

    def _fitted(
        self, column: pa.Array, kind: t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType, place: int
    ) -> pa.Array:
        text = isinstance(kind, t.CharType | t.VarCharType)
        lengths = pc.utf8_length(column) if text else pc.binary_length(column)
        fixed = isinstance(kind, t.CharType | t.BinaryType)
        wrong = pc.not_equal(lengths, kind.length) if fixed else pc.greater(lengths, kind.length)
        if not wrong.fill_null(False).to_numpy(zero_copy_only=False).any():
            return column
        if self._spec.lengths == "ERROR":
            raise TooLong(self._spec.table, self._spec.target.names[place], str(kind))
        if text:
            cut = pc.utf8_slice_codeunits(column, 0, kind.length)
            return pc.utf8_rpad(cut, kind.length) if fixed else cut
        cut = pc.binary_slice(column, 0, kind.length)
        if not fixed:
            return cut
        missing = pc.subtract(kind.length, pc.binary_length(cut))
        return pc.binary_join_element_wise(cut, pc.binary_repeat(pa.scalar(b"\0"), missing), b"")

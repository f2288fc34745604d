"""Records of any type become rows of a table.

Promises: values are checked against the columns' types; a row keeps its kind of change.
Does not know: where records come from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.sql import types as t
from millstream.sql.columns import row_type_info, struct_of


@dataclass(frozen=True)
class EnterSpec(OperatorSpec):
    """`wrapped` records are the only column; `timed` adds the record's timestamp as a last column."""

    schema: t.RowType
    wrapped: bool = False
    timed: bool = False

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return EnterOperator(context, self)


class EnterOperator(Operator):
    """Stateless."""

    def __init__(self, context: OperatorContext, spec: EnterSpec) -> None:
        super().__init__(context)
        self._spec = spec
        width = len(spec.schema) - (1 if spec.timed else 0)
        self._inner = t.row_of(spec.schema.names[:width], spec.schema.types[:width], null=False)
        self._kind = row_type_info(self._inner)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Convert."""
        rows = batch.rows()
        array = self._kind.to_arrow([(row,) for row in rows] if self._spec.wrapped else list(rows))
        if self._spec.timed:
            width = len(self._inner)
            times = np.array(batch.times(), dtype=np.int64)
            moments = (
                pa.array(times, mask=times == NO_TIMESTAMP).cast(pa.timestamp("ms")).cast(pa.timestamp("ms", "UTC"))
            )
            columns = [array.field(i) for i in range(width)]
            array = struct_of([*columns, moments], array.field(width), self._spec.schema, len(array))
        self.out.emit(Batch(self.context.output_type, array=array))

"""Operators that convert between rows and changes: TO_CHANGELOG, FROM_CHANGELOG, and UPDATE and DELETE by key.

Promises: rows are converted one by one, in order; an unknown code fails the job.
Does not know: who writes or reads the codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import UserError
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import INSERT, combine_columns, scalar_value
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.spec import STATELESS, PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t


class UnknownChange(UserError):
    """A row has a code that is not assigned to a row kind."""

    hint = "name it in op_mapping, or filter such rows before FROM_CHANGELOG"

    def __init__(self, column: str, code: str | None, known: tuple[str, ...]) -> None:
        self.column, self.code, self.known = column, code, known
        code_text = "NULL" if code is None else f"'{code}'"
        super().__init__(
            f"column '{column}' has {code_text}, which is not the code of a row kind; the codes are {', '.join(known)}"
        )


@dataclass(frozen=True)
class ToChangelogSpec(SqlOperatorSpec):
    """Adds the code of the row kind as first column; changes whose row kind has no code are dropped."""

    input: t.RowType
    output: t.RowType
    codes: tuple[tuple[int, str], ...]

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits(free={"changes": ", ".join(f"{left} = {right}" for left, right in self.codes)})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return ToChangelogOperator(context, self)


class ToChangelogOperator(TableOperator):
    """Converts changes to rows."""

    def __init__(self, context: OperatorContext, spec: ToChangelogSpec) -> None:
        super().__init__(context, spec.output)
        self._width = len(spec.input)
        self._codes = pa.array([code for _, code in spec.codes], pa.string())
        self._code_indexes = np.full(4, -1, np.int32)
        for index, (row_kind, _) in enumerate(spec.codes):
            self._code_indexes[row_kind] = index

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add the codes as first column."""
        array = batch.array()
        code_indexes = self._code_indexes[array.field(self._width).fill_null(INSERT).to_numpy()]
        if (code_indexes < 0).any():
            kept = np.flatnonzero(code_indexes >= 0)
            array, code_indexes = array.take(pa.array(kept)), code_indexes[kept]
        columns = [array.field(i) for i in range(self._width)]
        columns.insert(0, self._codes.take(pa.array(code_indexes)))
        self.emit_array(combine_columns(columns, None, self.output, len(array)))


@dataclass(frozen=True)
class FromChangelogSpec(SqlOperatorSpec):
    """Converts rows to changes; the column `op` of the input holds the code of the row kind."""

    input: t.RowType
    output: t.RowType
    op: int
    codes: tuple[tuple[str, int], ...]

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits(free={"changes": ", ".join(f"{left} = {right}" for left, right in self.codes)})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return FromChangelogOperator(context, self)


class FromChangelogOperator(TableOperator):
    """Converts rows to changes."""

    def __init__(self, context: OperatorContext, spec: FromChangelogSpec) -> None:
        super().__init__(context, spec.output)
        self._spec = spec
        self._codes = pa.array([code for code, _ in spec.codes], pa.string())
        self._row_kinds = pa.array([row_kind for _, row_kind in spec.codes], pa.int8())

    def on_batch(self, batch: Batch, side: int) -> None:
        """Set the row kinds by the codes."""
        array, spec = batch.array(), self._spec
        codes = array.field(spec.op)
        code_indexes = pc.index_in(codes, value_set=self._codes)
        if code_indexes.null_count:
            first = int(np.flatnonzero(code_indexes.is_null().to_numpy(zero_copy_only=False))[0])
            known = tuple(code for code, _ in spec.codes)
            raise UnknownChange(spec.input.names[spec.op], scalar_value(codes[first]), known)
        columns = [array.field(i) for i in range(len(spec.input)) if i != spec.op]
        self.emit_array(combine_columns(columns, self._row_kinds.take(code_indexes), self.output, len(array)))


@dataclass(frozen=True)
class SetRowKindSpec(SqlOperatorSpec):
    """Sets the same row kind for all rows."""

    schema: t.RowType
    row_kind: int

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept."""
        return STATELESS

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return SetRowKindOperator(context, self)


class SetRowKindOperator(TableOperator):
    """Sets the row kind."""

    def __init__(self, context: OperatorContext, spec: SetRowKindSpec) -> None:
        super().__init__(context, spec.schema)
        self._row_kind = spec.row_kind

    def on_batch(self, batch: Batch, side: int) -> None:
        """Set the row kind of each row."""
        array = batch.array()
        columns = [array.field(i) for i in range(len(self.output))]
        row_kinds = pa.array(np.full(len(array), self._row_kind, np.int8))
        self.emit_array(combine_columns(columns, row_kinds, self.output, len(array)))

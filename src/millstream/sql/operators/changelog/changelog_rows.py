"""Changes of a table as rows with a code of the change in them, and such rows as changes.

Promises: each row is turned by itself, in the order in which rows come; a code that stands for no change stops the job.
Does not know: who writes or reads the codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import UserError
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import INSERT, scalar_value, struct_of
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t


class UnknownChange(UserError):
    """A row's code stands for no kind of change."""

    hint = "name it in op_mapping, or filter such rows before FROM_CHANGELOG"

    def __init__(self, column: str, code: str | None, known: tuple[str, ...]) -> None:
        self.column, self.code, self.known = column, code, known
        shown = "NULL" if code is None else f"'{code}'"
        super().__init__(f"column '{column}' has {shown}, which stands for no change; known are {', '.join(known)}")


@dataclass(frozen=True)
class ToChangelogSpec(SqlOperatorSpec):
    """The code of each change goes in front of its row; changes of a kind without a code are left out."""

    input: t.RowType
    output: t.RowType
    codes: tuple[tuple[int, str], ...]

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits(free={"changes": ", ".join(f"{one} = {other}" for one, other in self.codes)})

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return ToChangelogOperator(context, self)


class ToChangelogOperator(TableOperator):
    """Stateless."""

    def __init__(self, context: OperatorContext, spec: ToChangelogSpec) -> None:
        super().__init__(context, spec.output)
        self._width = len(spec.input)
        self._words = pa.array([code for _, code in spec.codes], pa.string())
        self._places = np.full(4, -1, np.int32)
        for place, (kind, _) in enumerate(spec.codes):
            self._places[kind] = place

    def on_batch(self, batch: Batch, side: int) -> None:
        """Put the codes beside the rows."""
        array = batch.array()
        places = self._places[array.field(self._width).fill_null(INSERT).to_numpy()]
        if (places < 0).any():
            kept = np.flatnonzero(places >= 0)
            array, places = array.take(pa.array(kept)), places[kept]
        columns = [array.field(i) for i in range(self._width)]
        columns.insert(0, self._words.take(pa.array(places)))
        self.emit_array(struct_of(columns, None, self.output, len(array)))


@dataclass(frozen=True)
class FromChangelogSpec(SqlOperatorSpec):
    """The column `op` of the input tells the kind of change."""

    input: t.RowType
    output: t.RowType
    op: int
    codes: tuple[tuple[str, int], ...]

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits(free={"changes": ", ".join(f"{one} = {other}" for one, other in self.codes)})

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return FromChangelogOperator(context, self)


class FromChangelogOperator(TableOperator):
    """Stateless."""

    def __init__(self, context: OperatorContext, spec: FromChangelogSpec) -> None:
        super().__init__(context, spec.output)
        self._spec = spec
        self._words = pa.array([code for code, _ in spec.codes], pa.string())
        self._told = pa.array([kind for _, kind in spec.codes], pa.int8())

    def on_batch(self, batch: Batch, side: int) -> None:
        """Read the codes off the rows."""
        array, spec = batch.array(), self._spec
        told = array.field(spec.op)
        places = pc.index_in(told, value_set=self._words)
        if places.null_count:
            first = int(np.flatnonzero(places.is_null().to_numpy(zero_copy_only=False))[0])
            known = tuple(code for code, _ in spec.codes)
            raise UnknownChange(spec.input.names[spec.op], scalar_value(told[first]), known)
        columns = [array.field(i) for i in range(len(spec.input)) if i != spec.op]
        self.emit_array(struct_of(columns, self._told.take(places), self.output, len(array)))

"""INTERSECT and EXCEPT, with and without ALL.

Promises: the result follows from the numbers of occurrences of each row on both sides, and is updated when they change.
Does not know: columns; the whole row is the key."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER
from millstream.sql.operators.base import TableOperator, read_rows_with_kinds
from millstream.sql.operators.expiry import find_expiry
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec, StateTraits, format_flag
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


@dataclass(frozen=True)
class SetSpec(SqlOperatorSpec):
    """INTERSECT or EXCEPT."""

    schema: t.RowType
    operator: str
    all: bool
    ttl: int | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        rows = {f"rows of input {i + 1}": plan.rows(i) for i in range(len(plan.inputs))}
        operation = f"{self.operator} {self.all}"
        return StateTraits({"operation": operation, **rows, "expires": format_flag(self.ttl is not None)})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return SetOperator(context, self)


class SetOperator(TableOperator):
    """State: by row, the number of occurrences on each side."""

    def __init__(self, context: OperatorContext, spec: SetSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._table = context.state.table("counts", Types.PICKLED_BYTE_ARRAY())
        self._expiry = find_expiry(context, "counts", spec.ttl)

    def begin_epoch(self) -> None:
        """Delete expired rows."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.take_expired():
                self._table.delete(None, key)

    def _compute_result_count(self, left: int, right: int) -> int:
        left, right = max(left, 0), max(right, 0)
        if self._spec.operator == "INTERSECT":
            return min(left, right) if self._spec.all else int(left > 0 and right > 0)
        return max(left - right, 0) if self._spec.all else int(left > 0 and right == 0)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Count rows, and emit the changes of the result."""
        live, dirty = self._table.by_key()
        is_single = len(self.output) == 1
        rows, row_kinds = read_rows_with_kinds(batch, self.output)
        for row, row_kind in zip(rows, row_kinds, strict=True):
            key = row[0] if is_single else row
            stored = live[key]
            if self._expiry is not None:
                stored = stored if self._expiry.is_alive(key) else ABSENT
                self._expiry.touch(key)
            counts = [0, 0] if stored is ABSENT else stored
            before = self._compute_result_count(*counts)
            counts[side] += 1 if row_kind in (INSERT, UPDATE_AFTER) else -1
            after = self._compute_result_count(*counts)
            live[key] = counts if any(counts) else ABSENT
            dirty.add(key)
            for _ in range(after - before):
                self.put(INSERT, row)
            for _ in range(before - after):
                self.put(DELETE, row)
        self.flush()

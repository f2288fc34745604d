"""INTERSECT and EXCEPT, of distinct rows or of all.

Promises: the result of the counts of each row on both sides, corrected whenever they change.
Does not know: columns; a row is its key."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER
from millstream.sql.operators.base import TableOperator, rows_with_kinds
from millstream.sql.operators.expiry import expiry_of
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec, StateTraits, yes
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
        return StateTraits({"operation": operation, **rows, "expires": yes(self.ttl is not None)})

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return SetOperator(context, self)


class SetOperator(TableOperator):
    """State: by row, how often it is on each side."""

    def __init__(self, context: OperatorContext, spec: SetSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._table = context.state.table("counts", Types.PICKLED_BYTE_ARRAY())
        self._expiry = expiry_of(context, "counts", spec.ttl)

    def begin_epoch(self) -> None:
        """Forget rows that have lived long enough."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.expired():
                self._table.delete(None, key)

    def _wanted(self, left: int, right: int) -> int:
        left, right = max(left, 0), max(right, 0)
        if self._spec.operator == "INTERSECT":
            return min(left, right) if self._spec.all else int(left > 0 and right > 0)
        return max(left - right, 0) if self._spec.all else int(left > 0 and right == 0)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Count, and tell what that changes."""
        live, dirty = self._table.by_key()
        single = len(self.output) == 1
        rows, kinds = rows_with_kinds(batch, self.output)
        for row, kind in zip(rows, kinds, strict=True):
            key = row[0] if single else row
            found = live[key]
            if self._expiry is not None:
                found = found if self._expiry.alive(key) else ABSENT
                self._expiry.touch(key)
            counts = [0, 0] if found is ABSENT else found
            before = self._wanted(*counts)
            counts[side] += 1 if kind in (INSERT, UPDATE_AFTER) else -1
            after = self._wanted(*counts)
            live[key] = counts if any(counts) else ABSENT
            dirty.add(key)
            for _ in range(after - before):
                self.put(INSERT, row)
            for _ in range(before - after):
                self.put(DELETE, row)
        self.flush()

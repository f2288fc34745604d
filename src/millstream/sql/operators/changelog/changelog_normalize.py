"""Converts an upsert stream to a changelog with UPDATE_BEFORE rows.

Promises: Flink's ChangelogNormalize. The first row of a key is an insert, a later one an update of the row before it
(unless they are equal), and a delete has the previous row. Deletes of unknown keys are dropped.
Does not know: sources."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from millstream.sql.expressions.stable_text import format_columns
from millstream.sql.operators.base import TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.spec import PlanContext, RowPassingSpec, StateTraits
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


@dataclass(frozen=True)
class ChangelogNormalizeSpec(RowPassingSpec):
    """Normalizes by primary key; `ttl` is the state TTL in milliseconds."""

    schema: t.RowType
    keys: tuple[int, ...]
    ttl: int | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits({"key": format_columns(self.keys, plan.inputs[0], self.schema), "rows": plan.rows()})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return ChangelogNormalizeOperator(context, self)


class ChangelogNormalizeOperator(TableOperator):
    """State: by key, (current row, time of its arrival)."""

    def __init__(self, context: OperatorContext, spec: ChangelogNormalizeSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._table = context.state.table("row", Types.PICKLED_BYTE_ARRAY())

    def on_batch(self, batch: Batch, side: int) -> None:
        """Compare rows with the current ones, and emit the changes."""
        spec, now = self._spec, self.context.now
        live, dirty = self._table.by_key()
        rows, row_kinds = read_rows_with_kinds(batch, spec.schema)
        for row, row_kind in zip(rows, row_kinds, strict=True):
            if row_kind == UPDATE_BEFORE:
                continue
            key = get_key(row, spec.keys)
            entry = live[key]
            has_row = entry is not ABSENT and (spec.ttl is None or now - entry[1] < spec.ttl)
            if row_kind == DELETE:
                if not has_row:
                    continue
                self.put(DELETE, tuple(entry[0]))
                live[key] = ABSENT
            elif not has_row:
                self.put(INSERT, row)
                live[key] = (row, now)
            else:
                old = tuple(entry[0])
                if old == row and spec.ttl is None:
                    continue
                self.put(UPDATE_BEFORE, old)
                self.put(UPDATE_AFTER, row)
                live[key] = (row, now)
            dirty.add(key)
        self.flush()

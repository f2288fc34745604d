"""GROUP BY without windows: one row for each group, updated when the result changes.

Promises: Flink's changelog: +I for a new group, -U and +U when its result changes, -D when its last row is retracted;
after each row, or with mini-batches once for each group and mini-batch, which ends
with the epoch, with a watermark, or when it has `mini_batch_size` rows.
Does not know: windows, watermarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.expressions.stable_text import format_call, format_columns
from millstream.sql.functions.aggregates import create_aggregation
from millstream.sql.operators.aggregate.columnar_distinct import ColumnarDistinctAggregateOperator, can_count
from millstream.sql.operators.aggregate.columnar_groups import ColumnarGroupAggregateOperator
from millstream.sql.operators.aggregate.partials import can_aggregate
from millstream.sql.operators.base import TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.expiry import find_expiry
from millstream.sql.operators.mini_batch import MiniBatch
from millstream.sql.operators.spec import (
    ColumnTexts,
    PlanContext,
    SqlOperatorSpec,
    StateTraits,
    format_flag,
    map_keys_first,
)
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


@dataclass(frozen=True)
class GroupAggregateSpec(SqlOperatorSpec):
    """Aggregates by key columns. `retracts` is whether rows may be retracted, `before` whether -U is emitted.

    With `partial`, the input rows are partial aggregates: the keys, then the partial columns. `input` and `keys`
    describe the rows before the local aggregate."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    retracts: bool
    before: bool = True
    mini_batch: bool = False
    ttl: int | None = None
    mini_batch_size: int | None = None
    partial: bool = False

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "key": format_columns(self.keys, columns, self.input),
                "aggregates": ", ".join(format_call(call, columns) for call in self.calls),
                "retracts": format_flag(self.retracts),
                "mini-batch": format_flag(self.mini_batch),
                "expires": format_flag(self.ttl is not None),
            }
        )

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        return [*(columns[i] for i in self.keys), *(format_call(call, columns) for call in self.calls)]

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of input columns in the output."""
        return map_keys_first(plan.partition_keys)  # with two phases, the local aggregate has put the keys first

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator, the columnar one if possible."""
        if not self.columnar:
            return GroupAggregateOperator(context, self)
        distinct = any(call.distinct for call in self.calls)
        return (ColumnarDistinctAggregateOperator if distinct else ColumnarGroupAggregateOperator)(context, self)

    @property
    def columnar(self) -> bool:
        """Return whether the operator works on columns."""
        key_types = [self.input.types[i] for i in self.keys]
        is_append_only = self.mini_batch and bool(self.keys) and not self.retracts and self.ttl is None
        return is_append_only and (can_aggregate(self.calls, key_types) or can_count(self.calls, key_types))


class GroupAggregateOperator(TableOperator):
    """State: by key, [number of rows, time of the last change, accumulators]."""

    def __init__(self, context: OperatorContext, spec: GroupAggregateSpec) -> None:
        super().__init__(context, spec.output, spec=spec)
        self._spec = spec
        self._functions = [create_aggregation(call, retracts=spec.retracts) for call in spec.calls]
        self._plans = [
            (function, call.args, call.filter) for function, call in zip(self._functions, spec.calls, strict=True)
        ]
        self._table = context.state.table("groups", Types.PICKLED_BYTE_ARRAY())
        self._expiry = find_expiry(context, "groups", spec.ttl)
        self._mini_batch = MiniBatch(spec.mini_batch_size)
        self._before: dict[Any, tuple[Any, ...] | None] = {}
        self._keys: dict[Any, tuple[Any, ...]] = {}

    def begin_epoch(self) -> None:
        """Discard changes of a failed attempt, and delete expired groups."""
        super().begin_epoch()
        self._before, self._keys = {}, {}
        self._mini_batch.restart()
        if self._expiry is not None:
            for key in self._expiry.take_expired():
                self._table.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add rows to their groups; emit the changes, with mini-batches those of full ones."""
        for part, is_full in self._mini_batch.split(batch):
            self._add(part)
            if is_full:
                self._emit_changes()

    def _add(self, batch: Batch) -> None:
        spec = self._spec
        live, dirty = self._table.by_key()
        columns, plans, emit_each = spec.keys, self._plans, not spec.mini_batch
        now, expiry = self.context.now, self._expiry
        rows, row_kinds = read_rows_with_kinds(batch, spec.input)
        for row, row_kind in zip(rows, row_kinds, strict=True):
            key = get_key(row, columns)
            group = live[key]
            if expiry is not None:
                if group is not ABSENT and not expiry.is_alive(key):
                    group = ABSENT
                expiry.touch(key)
            is_insert = row_kind in (INSERT, UPDATE_AFTER)
            is_new = group is ABSENT
            if is_new:
                if not is_insert and not self._is_pending(key):
                    continue
                group = [0, now, [function.create() for function in self._functions]]
            if key not in self._before:
                self._before[key] = (
                    None if is_new else tuple(f.value(a) for f, a in zip(self._functions, group[2], strict=True))
                )
                self._keys[key] = tuple(row[i] for i in columns)
            group[0] += 1 if is_insert else -1
            group[1] = now
            for (function, args, condition), acc in zip(plans, group[2], strict=True):
                if condition is not None and row[condition] is not True:
                    continue
                values = tuple([row[i] for i in args])
                if is_insert:
                    function.add(acc, values)
                else:
                    function.retract(acc, values)
            live[key] = group
            dirty.add(key)
            if emit_each:
                self._emit(key, live)
                self._before.clear()
                self._keys.clear()
        self.flush()

    def _is_pending(self, key: Any) -> bool:
        return self._spec.mini_batch and key in self._before

    def _emit(self, key: Any, live: Any) -> None:
        group, before, prefix = live[key], self._before[key], self._keys[key]
        if group is not ABSENT and group[0] > 0:
            after = tuple([f.value(a) for f, a in zip(self._functions, group[2], strict=True)])
            if before is None:
                self.put(INSERT, prefix + after)
            elif before != after or (self._spec.ttl is not None and self._functions):
                if self._spec.before:
                    self.put(UPDATE_BEFORE, prefix + before)
                self.put(UPDATE_AFTER, prefix + after)
            return
        live[key] = ABSENT
        if before is not None:
            self.put(DELETE, prefix + before)

    def end_epoch(self) -> None:
        """Emit the changes of the mini-batch."""
        self._emit_changes()

    def on_watermark(self, watermark: int) -> None:
        """Emit the changes of the mini-batch before the watermark."""
        self._emit_changes()
        super().on_watermark(watermark)

    def _emit_changes(self) -> None:
        self._mini_batch.restart()
        if self._before:
            live, _ = self._table.by_key()
            for key in self._before:
                self._emit(key, live)
            self._before, self._keys = {}, {}
            self.flush()

"""Sorts rows by time, or all rows at the end of a bounded input.

Promises: rows are emitted in order when the watermark has passed them; without a time attribute, at the end of the
input. A row whose time is not after the last emitted row is late, dropped and counted.
Does not know: limits; Top-N has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.memory import MemoryPart
from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.sql.columns import INSERT, UPDATE_AFTER
from millstream.sql.expressions.stable_text import format_order
from millstream.sql.operators.base import TableOperator, read_rows_with_kinds
from millstream.sql.operators.rank.ordering import Order, create_sort_key
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.operators.timestamps import to_millis
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


@dataclass(frozen=True)
class SortSpec(SqlOperatorSpec):
    """The sort order; `time` is the time attribute that comes first, None to sort at the end of the input."""

    schema: t.RowType
    order: Order
    time: int | None
    first: int = 1
    last: int | None = None
    zone: str = "UTC"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        order = format_order(self.order, plan.inputs[0])
        return StateTraits({"order": order, "range": f"{self.first}..{self.last}", "rows": plan.rows()})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return SortOperator(context, self)


@dataclass
class SortMemory(MemoryPart):
    """The time of the last row that was emitted: rows up to it are late."""

    part_name: ClassVar[str] = "sort"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"passed": "emitted_up_to"}

    emitted_up_to: int | None = None


class SortOperator(TableOperator):
    """State: the rows that wait for the watermark, as one list under one key."""

    def __init__(self, context: OperatorContext, spec: SortSpec) -> None:
        super().__init__(context, spec.schema, spec.zone)
        self._spec = spec
        self._sort_key = create_sort_key(spec.order)
        self._table = context.state.table("waiting", Types.PICKLED_BYTE_ARRAY())

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep rows until the watermark passes them; retracted rows are removed."""
        stored = self._table.get(None, None)
        waiting: list[Any] = [] if stored is ABSENT else list(stored)
        rows, row_kinds = read_rows_with_kinds(batch, self._spec.schema)
        for row, row_kind in zip(rows, row_kinds, strict=True):
            if row_kind not in (INSERT, UPDATE_AFTER):
                if row in waiting:
                    waiting.remove(row)
            elif self._is_late(row):
                self.context.metrics.count(LATE_COUNT)
            else:
                waiting.append(row)
        self._table.put(None, None, waiting or ABSENT)

    def _is_late(self, row: tuple[Any, ...]) -> bool:
        """Return whether rows of this time or later have been emitted already."""
        time, emitted_up_to = self._spec.time, self.context.memory.part(SortMemory).emitted_up_to
        return time is not None and emitted_up_to is not None and self._to_millis(row) <= emitted_up_to

    def _to_millis(self, row: tuple[Any, ...]) -> int:
        time = self._spec.time
        assert time is not None
        return to_millis(row[time], self._spec.schema.types[time], self.zone)

    def on_watermark(self, watermark: int) -> None:
        """Emit the rows that the watermark has passed."""
        stored = self._table.get(None, None)
        waiting: list[Any] = [] if stored is ABSENT else list(stored)
        time = self._spec.time
        if watermark == MAX_WATERMARK:
            due, rest = waiting, []
        elif time is None:
            due, rest = [], waiting
        else:
            due = [row for row in waiting if self._to_millis(row) <= watermark]
            rest = [row for row in waiting if self._to_millis(row) > watermark]
        if due:
            if time is not None:
                self.context.memory.part(SortMemory).emitted_up_to = max(map(self._to_millis, due))
            for row in sorted(due, key=self._sort_key)[self._spec.first - 1 : self._spec.last]:
                self.put(INSERT, row)
            self._table.put(None, None, rest or ABSENT)
        self.flush()
        super().on_watermark(watermark)


@dataclass(frozen=True)
class MaterializeSpec(SqlOperatorSpec):
    """Emits the final rows of a changelog as inserts, at the end of the input."""

    schema: t.RowType

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits({"rows": plan.rows()})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return MaterializeOperator(context, self)


class MaterializeOperator(TableOperator):
    """State: the number of occurrences of each row, in the order of first appearance."""

    def __init__(self, context: OperatorContext, spec: MaterializeSpec) -> None:
        super().__init__(context, spec.schema)
        self._table = context.state.table("rows", Types.PICKLED_BYTE_ARRAY())

    def on_batch(self, batch: Batch, side: int) -> None:
        """Count rows."""
        stored = self._table.get(None, None)
        counts: dict[Any, int] = {} if stored is ABSENT else stored
        rows, row_kinds = read_rows_with_kinds(batch, self.output)
        for row, row_kind in zip(rows, row_kinds, strict=True):
            count = counts.get(row, 0) + (1 if row_kind in (INSERT, UPDATE_AFTER) else -1)
            if count:
                counts[row] = count
            else:
                counts.pop(row, None)
        self._table.put(None, None, counts or ABSENT)

    def on_watermark(self, watermark: int) -> None:
        """Emit all rows at the end of the input."""
        if watermark == MAX_WATERMARK:
            counts = self._table.get(None, None)
            if counts is not ABSENT:
                for row, count in counts.items():
                    for _ in range(count):
                        self.put(INSERT, row)
                self._table.put(None, None, ABSENT)
            self.flush()
        super().on_watermark(watermark)

"""Rows in order of time, or all rows in order at the end of a bounded input.

Promises: rows come out in order once the watermark has passed them; without time, once the input has ended. A row that
comes after one of its time or later went out is late, dropped and counted.
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
from millstream.sql.expressions.stable_text import order_text
from millstream.sql.operators.base import TableOperator, rows_with_kinds
from millstream.sql.operators.moments import millis_of
from millstream.sql.operators.rank.ordering import Order, sort_key
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


@dataclass(frozen=True)
class SortSpec(SqlOperatorSpec):
    """By columns; `time` is the time attribute that comes first, None to wait for the end."""

    schema: t.RowType
    order: Order
    time: int | None
    first: int = 1
    last: int | None = None
    zone: str = "UTC"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        order = order_text(self.order, plan.inputs[0])
        return StateTraits({"order": order, "range": f"{self.first}..{self.last}", "rows": plan.rows()})

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return SortOperator(context, self)


@dataclass
class SortMemory(MemoryPart):
    """The time of the last row that was emitted: rows up to it are late."""

    part_name: ClassVar[str] = "sort"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"passed": "emitted_up_to"}

    emitted_up_to: int | None = None


class SortOperator(TableOperator):
    """State: the rows that wait, as one list under one key."""

    def __init__(self, context: OperatorContext, spec: SortSpec) -> None:
        super().__init__(context, spec.schema, spec.zone)
        self._spec = spec
        self._sort_key = sort_key(spec.order)
        self._table = context.state.table("waiting", Types.PICKLED_BYTE_ARRAY())

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep rows until their turn; one that is taken back is forgotten."""
        found = self._table.get(None, None)
        waiting: list[Any] = [] if found is ABSENT else list(found)
        rows, kinds = rows_with_kinds(batch, self._spec.schema)
        for row, kind in zip(rows, kinds, strict=True):
            if kind not in (INSERT, UPDATE_AFTER):
                if row in waiting:
                    waiting.remove(row)
            elif self._late(row):
                self.context.metrics.count(LATE_COUNT)
            else:
                waiting.append(row)
        self._table.put(None, None, waiting or ABSENT)

    def _late(self, row: tuple[Any, ...]) -> bool:
        """Whether rows of this time or later have been let go already."""
        time, passed = self._spec.time, self.context.memory.part(SortMemory).emitted_up_to
        return time is not None and passed is not None and self._millis(row) <= passed

    def _millis(self, row: tuple[Any, ...]) -> int:
        time = self._spec.time
        assert time is not None
        return millis_of(row[time], self._spec.schema.types[time], self.zone)

    def on_watermark(self, watermark: int) -> None:
        """Let go of rows whose time has come."""
        found = self._table.get(None, None)
        waiting: list[Any] = [] if found is ABSENT else list(found)
        time = self._spec.time
        if watermark == MAX_WATERMARK:
            due, rest = waiting, []
        elif time is None:
            due, rest = [], waiting
        else:
            due = [row for row in waiting if self._millis(row) <= watermark]
            rest = [row for row in waiting if self._millis(row) > watermark]
        if due:
            if time is not None:
                self.context.memory.part(SortMemory).emitted_up_to = max(map(self._millis, due))
            for row in sorted(due, key=self._sort_key)[self._spec.first - 1 : self._spec.last]:
                self.put(INSERT, row)
            self._table.put(None, None, rest or ABSENT)
        self.flush()
        super().on_watermark(watermark)


@dataclass(frozen=True)
class MaterializeSpec(SqlOperatorSpec):
    """What is left of a changelog at the end of its input, as inserts."""

    schema: t.RowType

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits({"rows": plan.rows()})

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return MaterializeOperator(context, self)


class MaterializeOperator(TableOperator):
    """State: how often each row is there, in the order of first appearance."""

    def __init__(self, context: OperatorContext, spec: MaterializeSpec) -> None:
        super().__init__(context, spec.schema)
        self._table = context.state.table("rows", Types.PICKLED_BYTE_ARRAY())

    def on_batch(self, batch: Batch, side: int) -> None:
        """Count rows."""
        found = self._table.get(None, None)
        counts: dict[Any, int] = {} if found is ABSENT else found
        rows, kinds = rows_with_kinds(batch, self.output)
        for row, kind in zip(rows, kinds, strict=True):
            left = counts.get(row, 0) + (1 if kind in (INSERT, UPDATE_AFTER) else -1)
            if left:
                counts[row] = left
            else:
                counts.pop(row, None)
        self._table.put(None, None, counts or ABSENT)

    def on_watermark(self, watermark: int) -> None:
        """At the end, tell what is there."""
        if watermark == MAX_WATERMARK:
            found = self._table.get(None, None)
            if found is not ABSENT:
                for row, count in found.items():
                    for _ in range(count):
                        self.put(INSERT, row)
                self._table.put(None, None, ABSENT)
            self.flush()
        super().on_watermark(watermark)

"""Top-N and joins inside windows: each window is told once, when it is over.

Promises: inserts only; rows of a window that is over are late, dropped and counted.
Does not know: how rows got into windows."""

from __future__ import annotations

import heapq
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.sql.columns import INSERT, array_of
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed
from millstream.sql.expressions.nodes import Expression
from millstream.sql.expressions.stable_text import columns_text, order_text
from millstream.sql.operators import moments
from millstream.sql.operators.base import TableOperator, key_of, open_ends, rows_with_kinds
from millstream.sql.operators.join.columnar_join import can_meet
from millstream.sql.operators.join.columnar_window_join import ColumnarWindowJoinOperator
from millstream.sql.operators.join.equi_join import EquiJoinSpec
from millstream.sql.operators.rank.ordering import Order, sort_key
from millstream.sql.operators.spec import PlanContext, RowPassingSpec, StateTraits
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


class WindowedOperator(TableOperator):
    """Rows wait under the moment their window is over (the namespace) and their key."""

    def __init__(self, context: OperatorContext, spec: WindowRankSpec | WindowJoinSpec, state: str) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._zoned, self._processing = spec.zoned, spec.processing
        self._table = context.state.table(state, Types.PICKLED_BYTE_ARRAY())

    def over(self, end: Any) -> int:
        """When a window is over."""
        millis = moments.millis_of(end, t.TimestampType(3))
        return (moments.utc_millis(millis, self.zone) if self._zoned or self._processing else millis) - 1

    def opened(self, over: int) -> bool:
        """Note a window that has rows; False when it is over already."""
        if not self._processing and over <= self.watermark:
            self.context.metrics.count(LATE_COUNT)
            return False
        ends = open_ends(self.context, self._table)
        if over not in ends:
            heapq.heappush(ends, over)
        return True

    def begin_epoch(self) -> None:
        """Tell windows that processing time has passed."""
        super().begin_epoch()
        if self._processing:
            self._until(self.context.now)

    def next_timer(self) -> int | None:
        """When the next window is over."""
        ends = open_ends(self.context, self._table)
        return ends[0] if self._processing and ends else None

    def on_watermark(self, watermark: int) -> None:
        """Tell windows that event time has passed."""
        if not self._processing or watermark == MAX_WATERMARK:
            self._until(watermark)
        super().on_watermark(watermark)

    def _until(self, until: int) -> None:
        ends = open_ends(self.context, self._table)
        while ends and ends[0] <= until:
            self.fire(heapq.heappop(ends))
        self.flush()

    @abstractmethod
    def fire(self, over: int) -> None:
        """Tell one window."""


@dataclass(frozen=True)
class WindowRankSpec(RowPassingSpec):
    """The first rows of each window and partition."""

    input: t.RowType
    output: t.RowType
    partition: tuple[int, ...]
    end: int
    order: Order
    first: int
    last: int
    with_rank: bool
    zoned: bool = False
    processing: bool = False
    zone: str = "UTC"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "key": columns_text(self.partition, columns, self.input),
                "window": columns[self.end],
                "order": order_text(self.order, columns),
                "range": f"{self.first}..{self.last}",
                "rows": plan.rows(),
            }
        )

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return WindowRankOperator(context, self)


class WindowRankOperator(WindowedOperator):
    """State: by window and key, the rows that may be among the first."""

    def __init__(self, context: OperatorContext, spec: WindowRankSpec) -> None:
        super().__init__(context, spec, "rank/windows")
        self._spec = spec
        self._sort_key = sort_key(spec.order)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep rows, as many as can be shown."""
        spec = self._spec
        rows, _ = rows_with_kinds(batch, spec.input)
        for row in rows:
            over = self.over(row[spec.end])
            if not self.opened(over):
                continue
            key = key_of(row, spec.partition)
            found = self._table.get(over, key)
            listed: list[Any] = [] if found is ABSENT else found
            listed.append(row)
            if len(listed) > 2 * spec.last + 64:
                listed = sorted(listed, key=self._sort_key)[: spec.last]
            self._table.put(over, key, listed)

    def fire(self, over: int) -> None:
        """The first rows of each partition."""
        spec = self._spec
        for _, listed in list(self._table.scan(over)):
            ordered = sorted(listed, key=self._sort_key)
            for place, row in enumerate(ordered[spec.first - 1 : spec.last], spec.first):
                self.put(INSERT, (*row, place) if spec.with_rank else tuple(row))
        self._table.clear_namespace(over)


@dataclass(frozen=True)
class WindowJoinSpec(EquiJoinSpec):
    """Rows of equal keys and equal windows."""

    left: t.RowType
    right: t.RowType
    output: t.RowType
    kind: str
    keys: tuple[tuple[int, ...], tuple[int, ...]]
    ends: tuple[int, int]
    condition: Expression | None
    zoned: bool = False
    processing: bool = False
    zone: str = "UTC"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        left, right = plan.inputs
        windows = f"{left[self.ends[0]]}, {right[self.ends[1]]}"
        fixed = {**self.key_traits(plan), "window": windows, **self.row_traits(plan)}
        return StateTraits(fixed, {"where": self.condition_text(plan)})

    def build(self, context: OperatorContext) -> Operator:
        """The operator; on whole columns where keys can be compared as such."""
        if can_meet(self.left, self.right, self.keys):
            return ColumnarWindowJoinOperator(context, self)
        return WindowJoinOperator(context, self)


class WindowJoinOperator(WindowedOperator):
    """State: by window and key, the rows of each side."""

    def __init__(self, context: OperatorContext, spec: WindowJoinSpec) -> None:
        super().__init__(context, spec, "join/windows")
        self._spec = spec
        self._schemas = (spec.left, spec.right)
        self._condition = None if spec.condition is None else Condition(spec.condition)
        names = [str(i) for i in range(len(spec.left) + len(spec.right))]
        self._both = t.row_of(names, [*spec.left.types, *spec.right.types], null=False)
        self._nulls = ((None,) * len(spec.left), (None,) * len(spec.right))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep rows until their window is over."""
        spec = self._spec
        rows, _ = rows_with_kinds(batch, self._schemas[side])
        for row in rows:
            over = self.over(row[spec.ends[side]])
            if not self.opened(over):
                continue
            key = key_of(row, spec.keys[side])
            found = self._table.get(over, key)
            sides: list[list[Any]] = [[], []] if found is ABSENT else found
            sides[side].append(row)
            self._table.put(over, key, sides)

    def fire(self, over: int) -> None:
        """All pairs of a window, and rows without partner where they are wanted."""
        for _, (lefts, rights) in list(self._table.scan(over)):
            self._pairs([tuple(r) for r in lefts], [tuple(r) for r in rights])
        self._table.clear_namespace(over)

    def _pairs(self, lefts: list[tuple[Any, ...]], rights: list[tuple[Any, ...]]) -> None:
        kind, columns = self._spec.kind, self._spec.keys
        places = [
            (i, j)
            for i, left in enumerate(lefts)
            for j in range(len(rights))
            if not any(left[c] is None for c in columns[0])
        ]
        pairs = [lefts[i] + rights[j] for i, j in places]
        if self._condition is not None and pairs:
            try:
                holds = self._condition.holds(self.frame(array_of(pairs, None, self._both), len(self._both)))
            except EvaluationFailed as problem:
                raise self.fail(problem) from None
            kept = [place for place, true in zip(places, holds, strict=True) if true]
            places, pairs = kept, [lefts[i] + rights[j] for i, j in kept]
        met = ({i for i, _ in places}, {j for _, j in places})
        if kind in ("semi", "anti"):
            for i, left in enumerate(lefts):
                if (i in met[0]) == (kind == "semi"):
                    self.put(INSERT, left)
            return
        for pair in pairs:
            self.put(INSERT, pair)
        if kind in ("left", "full"):
            for i, left in enumerate(lefts):
                if i not in met[0]:
                    self.put(INSERT, left + self._nulls[1])
        if kind in ("right", "full"):
            for j, right in enumerate(rights):
                if j not in met[1]:
                    self.put(INSERT, self._nulls[0] + right)

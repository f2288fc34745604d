"""Window Top-N and window joins: each window emits once, when it ends.

Promises: insert-only output; late rows are dropped and counted.
Does not know: how rows are assigned to windows."""

from __future__ import annotations

import heapq
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.sql.columns import INSERT, create_row_array
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed
from millstream.sql.expressions.nodes import Expression
from millstream.sql.expressions.stable_text import format_columns, format_order
from millstream.sql.operators import timestamps
from millstream.sql.operators.base import TableOperator, get_key, read_open_window_ends, read_rows_with_kinds
from millstream.sql.operators.join.columnar_join import can_compare_keys
from millstream.sql.operators.join.columnar_window_join import ColumnarWindowJoinOperator
from millstream.sql.operators.join.equi_join import EquiJoinSpec
from millstream.sql.operators.rank.ordering import Order, create_sort_key
from millstream.sql.operators.spec import PlanContext, RowPassingSpec, StateTraits
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


class WindowedOperator(TableOperator):
    """Keeps rows under the maximum timestamp of their window (the namespace) and their key."""

    def __init__(self, context: OperatorContext, spec: WindowRankSpec | WindowJoinSpec, state: str) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._zoned, self._processing = spec.zoned, spec.processing
        self._table = context.state.table(state, Types.PICKLED_BYTE_ARRAY())

    def max_timestamp(self, end: Any) -> int:
        """Return the maximum timestamp of a window, given its end."""
        millis = timestamps.to_millis(end, t.TimestampType(3))
        return (timestamps.to_utc_millis(millis, self.zone) if self._zoned or self._processing else millis) - 1

    def add_window(self, max_timestamp: int) -> bool:
        """Record that a window has rows; return False if it has fired already, and count the row as late."""
        if not self._processing and max_timestamp <= self.watermark:
            self.context.metrics.count(LATE_COUNT)
            return False
        ends = read_open_window_ends(self.context, self._table)
        if max_timestamp not in ends:
            heapq.heappush(ends, max_timestamp)
        return True

    def begin_epoch(self) -> None:
        """Fire windows that processing time has passed."""
        super().begin_epoch()
        if self._processing:
            self._fire_until(self.context.now)

    def next_timer(self) -> int | None:
        """Return the maximum timestamp of the next window, for processing time."""
        ends = read_open_window_ends(self.context, self._table)
        return ends[0] if self._processing and ends else None

    def on_watermark(self, watermark: int) -> None:
        """Fire windows that event time has passed."""
        if not self._processing or watermark == MAX_WATERMARK:
            self._fire_until(watermark)
        super().on_watermark(watermark)

    def _fire_until(self, until: int) -> None:
        ends = read_open_window_ends(self.context, self._table)
        while ends and ends[0] <= until:
            self.fire(heapq.heappop(ends))
        self.flush()

    @abstractmethod
    def fire(self, max_timestamp: int) -> None:
        """Emit the results of a window."""


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
                "key": format_columns(self.partition, columns, self.input),
                "window": columns[self.end],
                "order": format_order(self.order, columns),
                "range": f"{self.first}..{self.last}",
                "rows": plan.rows(),
            }
        )

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return WindowRankOperator(context, self)


class WindowRankOperator(WindowedOperator):
    """State: by window and key, the rows that may be among the first."""

    def __init__(self, context: OperatorContext, spec: WindowRankSpec) -> None:
        super().__init__(context, spec, "rank/windows")
        self._spec = spec
        self._sort_key = create_sort_key(spec.order)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add rows to their windows; rows that cannot be emitted are dropped now and then."""
        spec = self._spec
        rows, _ = read_rows_with_kinds(batch, spec.input)
        for row in rows:
            max_timestamp = self.max_timestamp(row[spec.end])
            if not self.add_window(max_timestamp):
                continue
            key = get_key(row, spec.partition)
            stored = self._table.get(max_timestamp, key)
            candidates: list[Any] = [] if stored is ABSENT else stored
            candidates.append(row)
            if len(candidates) > 2 * spec.last + 64:
                candidates = sorted(candidates, key=self._sort_key)[: spec.last]
            self._table.put(max_timestamp, key, candidates)

    def fire(self, max_timestamp: int) -> None:
        """Emit the first rows of each partition."""
        spec = self._spec
        for _, candidates in list(self._table.scan(max_timestamp)):
            ordered = sorted(candidates, key=self._sort_key)
            for rank, row in enumerate(ordered[spec.first - 1 : spec.last], spec.first):
                self.put(INSERT, (*row, rank) if spec.with_rank else tuple(row))
        self._table.clear_namespace(max_timestamp)


@dataclass(frozen=True)
class WindowJoinSpec(EquiJoinSpec):
    """A join of rows with equal keys and equal windows."""

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
        """Create the operator; the columnar one if keys can be compared as columns."""
        if can_compare_keys(self.left, self.right, self.keys):
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
        """Keep rows until their window ends."""
        spec = self._spec
        rows, _ = read_rows_with_kinds(batch, self._schemas[side])
        for row in rows:
            max_timestamp = self.max_timestamp(row[spec.ends[side]])
            if not self.add_window(max_timestamp):
                continue
            key = get_key(row, spec.keys[side])
            stored = self._table.get(max_timestamp, key)
            sides: list[list[Any]] = [[], []] if stored is ABSENT else stored
            sides[side].append(row)
            self._table.put(max_timestamp, key, sides)

    def fire(self, max_timestamp: int) -> None:
        """Emit all pairs of a window, and rows without a match in outer joins."""
        for _, (lefts, rights) in list(self._table.scan(max_timestamp)):
            self._emit_pairs([tuple(r) for r in lefts], [tuple(r) for r in rights])
        self._table.clear_namespace(max_timestamp)

    def _emit_pairs(self, lefts: list[tuple[Any, ...]], rights: list[tuple[Any, ...]]) -> None:
        join_type, columns = self._spec.kind, self._spec.keys
        index_pairs = [
            (i, j)
            for i, left in enumerate(lefts)
            for j in range(len(rights))
            if not any(left[c] is None for c in columns[0])
        ]
        pairs = [lefts[i] + rights[j] for i, j in index_pairs]
        if self._condition is not None and pairs:
            try:
                holds = self._condition.holds(
                    self.create_frame(create_row_array(pairs, None, self._both), len(self._both))
                )
            except EvaluationFailed as problem:
                raise self.fail(problem) from None
            kept = [index_pair for index_pair, is_match in zip(index_pairs, holds, strict=True) if is_match]
            index_pairs, pairs = kept, [lefts[i] + rights[j] for i, j in kept]
        matched = ({i for i, _ in index_pairs}, {j for _, j in index_pairs})
        if join_type in ("semi", "anti"):
            for i, left in enumerate(lefts):
                if (i in matched[0]) == (join_type == "semi"):
                    self.put(INSERT, left)
            return
        for pair in pairs:
            self.put(INSERT, pair)
        if join_type in ("left", "full"):
            for i, left in enumerate(lefts):
                if i not in matched[0]:
                    self.put(INSERT, left + self._nulls[1])
        if join_type in ("right", "full"):
            for j, right in enumerate(rights):
                if j not in matched[1]:
                    self.put(INSERT, self._nulls[0] + right)

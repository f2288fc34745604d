"""Interval joins and temporal joins.

Promises: an interval join pairs rows whose times are within the bounds, and emits a row without a match when no match
can arrive any more. A temporal join emits a row when the watermark has passed it, with the version valid at its time.
Does not know: windows."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import Any

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_BEFORE, create_row_array
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed
from millstream.sql.expressions.nodes import Expression
from millstream.sql.operators.base import TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.expiry import find_expiry
from millstream.sql.operators.join.equi_join import EquiJoinSpec
from millstream.sql.operators.spec import PlanContext, StateTraits, format_flag
from millstream.sql.operators.timestamps import to_millis
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types

_SIDES = ("left", "right")


@dataclass(frozen=True)
class IntervalJoinSpec(EquiJoinSpec):
    """Rows match if right + lower <= left <= right + upper, in milliseconds."""

    left: t.RowType
    right: t.RowType
    output: t.RowType
    kind: str
    keys: tuple[tuple[int, ...], tuple[int, ...]]
    times: tuple[int, int]
    lower: int
    upper: int
    condition: Expression | None
    processing: bool = False
    zone: str = "UTC"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        left, right = plan.inputs
        times = f"{left[self.times[0]]}, {right[self.times[1]]}{' PROCTIME' if self.processing else ''}"
        fixed = {**self.key_traits(plan), "times": times, **self.row_traits(plan)}
        return StateTraits(fixed, {"where": self.condition_text(plan), "bounds": f"{self.lower}..{self.upper}"})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return IntervalJoinOperator(context, self)


class _ConditionalJoin(TableOperator):
    """A join of two sides with a condition over both rows."""

    def __init__(
        self,
        context: OperatorContext,
        spec: IntervalJoinSpec | TemporalJoinSpec,
    ) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._schemas = sides = (spec.left, spec.right)
        self._condition = None if spec.condition is None else Condition(spec.condition)
        names = [str(i) for i in range(len(sides[0]) + len(sides[1]))]
        self._both = t.row_of(names, [*sides[0].types, *sides[1].types], null=False)

    def _matches(self, pairs: list[tuple[Any, ...]]) -> list[bool]:
        if self._condition is None or not pairs:
            return [True] * len(pairs)
        array = create_row_array(pairs, None, self._both)
        try:
            return list(self._condition.holds(self.create_frame(array, len(self._both))).tolist())
        except EvaluationFailed as problem:
            raise self.fail(problem) from None


class IntervalJoinOperator(_ConditionalJoin):
    """State: by side and key, [time, row, has a match] in order of time."""

    def __init__(self, context: OperatorContext, spec: IntervalJoinSpec) -> None:
        super().__init__(context, spec)
        self._spec = spec
        self._tables = [context.state.table(f"interval/{side}", Types.PICKLED_BYTE_ARRAY()) for side in _SIDES]
        self._outer = (spec.kind in ("left", "full"), spec.kind in ("right", "full"))
        self._nulls = ((None,) * len(spec.left), (None,) * len(spec.right))
        # a row of each side matches rows of the other from its time + reach[0] to its time + reach[1]
        self._reach = ((-spec.upper, -spec.lower), (spec.lower, spec.upper))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Join each row with the rows of the other side."""
        spec = self._spec
        rows, _ = read_rows_with_kinds(batch, self._schemas[side])
        for row in rows:
            time = (
                self.context.now
                if spec.processing
                else to_millis(row[spec.times[side]], self._schemas[side].types[spec.times[side]])
            )
            self._join_row(side, row, time)
        self.flush()

    def _join_row(self, side: int, row: tuple[Any, ...], time: int) -> None:
        columns = self._spec.keys[side]
        key = get_key(row, columns)
        low, high = self._reach[side]
        has_match = False
        if not any(row[i] is None for i in columns):
            stored_others = self._tables[1 - side].get(None, key)
            others: list[Any] = [] if stored_others is ABSENT else stored_others
            near = [entry for entry in others if time + low <= entry[0] <= time + high]
            pairs = [(*row, *e[1]) if side == 0 else (*e[1], *row) for e in near]
            for entry, pair, is_match in zip(near, pairs, self._matches(pairs), strict=True):
                if is_match:
                    has_match = entry[2] = True
                    self.put(INSERT, pair)
            if has_match:
                self._tables[1 - side].put(None, key, others)
        if self._compute_last_match_time(side, time) > self.watermark:
            stored = self._tables[side].get(None, key)
            entries: list[Any] = [] if stored is ABSENT else stored
            insort(entries, [time, row, has_match], key=lambda e: e[0])
            self._tables[side].put(None, key, entries)
        elif self._outer[side] and not has_match:
            self.put(INSERT, self._fill_with_nulls(side, row))

    def _compute_last_match_time(self, side: int, time: int) -> int:
        """Return the last time that a matching row can have."""
        return time + self._reach[side][1]

    def _fill_with_nulls(self, side: int, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return row + self._nulls[1] if side == 0 else self._nulls[0] + row

    def on_watermark(self, watermark: int) -> None:
        """Delete rows that cannot match any more, and emit those without a match in outer joins."""
        for side in (0, 1):
            for key, entries in list(self._tables[side].scan(None)):
                expired = [
                    e
                    for e in entries
                    if self._compute_last_match_time(side, e[0]) < watermark or watermark == MAX_WATERMARK
                ]
                if not expired:
                    continue
                for _, row, has_match in expired:
                    if self._outer[side] and not has_match:
                        self.put(INSERT, self._fill_with_nulls(side, tuple(row)))
                remaining = [e for e in entries if e not in expired]
                self._tables[side].put(None, key, remaining or ABSENT)
        self.flush()
        super().on_watermark(watermark)


@dataclass(frozen=True)
class TemporalJoinSpec(EquiJoinSpec):
    """Left rows with the version of the right side that was valid at their time."""

    left: t.RowType
    right: t.RowType
    output: t.RowType
    kind: str
    keys: tuple[tuple[int, ...], tuple[int, ...]]
    times: tuple[int, int | None]
    condition: Expression | None
    processing: bool = False
    zone: str = "UTC"
    ttl: int | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        left, right = plan.inputs
        version = "" if self.times[1] is None else right[self.times[1]]
        times = f"{left[self.times[0]]}, {version}{' PROCTIME' if self.processing else ''}"
        fixed = {
            **self.key_traits(plan),
            "times": times,
            **self.row_traits(plan),
            "expires": format_flag(self.ttl is not None),
        }
        return StateTraits(fixed, {"where": self.condition_text(plan)})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return TemporalJoinOperator(context, self)


class TemporalJoinOperator(_ConditionalJoin):
    """State: by key, left rows that wait for the watermark, and versions of the right side as (time, row or None) in
    order of time."""

    def __init__(self, context: OperatorContext, spec: TemporalJoinSpec) -> None:
        super().__init__(context, spec)
        self._spec = spec
        self._waiting = context.state.table("temporal/left", Types.PICKLED_BYTE_ARRAY())
        self._versions = context.state.table("temporal/right", Types.PICKLED_BYTE_ARRAY())
        self._expiry = find_expiry(context, "temporal", spec.ttl)

    def begin_epoch(self) -> None:
        """Delete expired keys."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.take_expired():
                self._waiting.delete(None, key)
                self._versions.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep left rows until the watermark passes them, and add versions."""
        spec = self._spec
        rows, row_kinds = read_rows_with_kinds(batch, self._schemas[side])
        for row, row_kind in zip(rows, row_kinds, strict=True):
            key = get_key(row, spec.keys[side])
            if self._expiry is not None:
                self._expiry.touch(key)
            if side == 1:
                self._add_version(key, row, row_kind)
            elif spec.processing:
                self._emit_joined(key, row, row_kind, None)
            else:
                stored = self._waiting.get(None, key)
                waiting: list[Any] = [] if stored is ABSENT else stored
                waiting.append((to_millis(row[spec.times[0]], spec.left.types[spec.times[0]]), row, row_kind))
                self._waiting.put(None, key, waiting)
        self.flush()

    def _add_version(self, key: Any, row: tuple[Any, ...], row_kind: int) -> None:
        if row_kind == UPDATE_BEFORE:
            return
        time_index = self._spec.times[1]
        time = 0 if time_index is None else to_millis(row[time_index], self._spec.right.types[time_index])
        stored = self._versions.get(None, key)
        versions: list[Any] = [] if stored is ABSENT else stored
        versions = [v for v in versions if v[0] != time]
        insort(versions, (time, None if row_kind == DELETE else row), key=lambda v: v[0])
        self._versions.put(None, key, versions)

    def _emit_joined(self, key: Any, row: tuple[Any, ...], row_kind: int, time: int | None) -> None:
        stored = self._versions.get(None, key)
        versions: list[Any] = [] if stored is ABSENT or any(row[i] is None for i in self._spec.keys[0]) else stored
        position = len(versions) if time is None else bisect_right(versions, time, key=lambda v: v[0])
        version = versions[position - 1][1] if position else None
        if version is not None:
            pair = (*row, *version)
            if self._matches([pair])[0]:
                self.put(row_kind, pair)
                return
        if self._spec.kind == "left":
            self.put(row_kind, (*row, *(None,) * len(self._spec.right)))

    def on_watermark(self, watermark: int) -> None:
        """Emit left rows that the watermark has passed, and delete versions that no later row can need."""
        if not self._spec.processing:
            due: list[tuple[int, Any, Any, int]] = []
            for key, waiting in list(self._waiting.scan(None)):
                ready = [entry for entry in waiting if entry[0] <= watermark]
                if ready:
                    rest = [entry for entry in waiting if entry[0] > watermark]
                    self._waiting.put(None, key, rest or ABSENT)
                    due.extend((time, key, row, row_kind) for time, row, row_kind in ready)
            for time, key, row, row_kind in sorted(due, key=lambda entry: entry[0]):
                self._emit_joined(key, tuple(row), row_kind, time)
            for key, versions in list(self._versions.scan(None)):
                old = bisect_right(versions, watermark, key=lambda v: v[0])
                if old > 1:
                    self._versions.put(None, key, versions[old - 1 :])
            self.flush()
        super().on_watermark(watermark)

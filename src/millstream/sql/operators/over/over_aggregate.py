"""OVER aggregates on append-only input: each row with aggregates over a frame of earlier rows.

Promises: rows are emitted in the order of their time attribute, when the watermark has passed them; RANGE treats rows
of equal time together, ROWS one by one. With processing time, rows are emitted as they arrive.
Does not know: frames that end after the current row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.sql.columns import INSERT
from millstream.sql.expressions.stable_text import format_call, format_order
from millstream.sql.functions.aggregates import create_aggregation
from millstream.sql.logical.nodes import OverCall
from millstream.sql.operators.base import TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.expiry import find_expiry
from millstream.sql.operators.over.frame_cleanup import FrameCleanup
from millstream.sql.operators.spec import ColumnTexts, PlanContext, RowPassingSpec, StateTraits, format_flag
from millstream.sql.operators.timestamps import to_millis
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


def describe_over_calls(calls: Sequence[OverCall], columns: ColumnTexts) -> dict[str, str]:
    """Return partition, order and frames of OVER calls as traits of the state."""
    frames = [
        f"{format_call(over.call, columns)} {'ROWS' if over.rows else 'RANGE'} {over.lower}..{over.upper}"
        for over in calls
    ]
    return {
        "key": ", ".join(columns[i] for i in calls[0].partition),
        "order": format_order(calls[0].order, columns),
        "aggregates": ", ".join(frames),
    }


@dataclass(frozen=True)
class OverSpec(RowPassingSpec):
    """Calls that share partition, order and frame; `time` is the column of the order, None for processing time."""

    input: t.RowType
    output: t.RowType
    calls: tuple[OverCall, ...]
    time: int | None
    ttl: int | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        traits = describe_over_calls(self.calls, plan.inputs[0])
        return StateTraits({**traits, "expires": format_flag(self.ttl is not None)})

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        return [*columns, *(format_call(over.call, columns) for over in self.calls)]

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return OverOperator(context, self)


class OverOperator(TableOperator):
    """State: by key, rows that wait for the watermark; [rows of the frame, accumulators, row count]."""

    def __init__(self, context: OperatorContext, spec: OverSpec) -> None:
        super().__init__(context, spec.output, spec=spec)
        self._spec = spec
        first = spec.calls[0]
        self._partition, self._rows_frame, self._lower = first.partition, first.rows, first.lower
        bounded = first.lower is not None
        self._functions = [
            None if over.call.function in _WITHOUT_ACCUMULATOR else create_aggregation(over.call, retracts=bounded)
            for over in spec.calls
        ]
        self._waiting = context.state.table("waiting", Types.PICKLED_BYTE_ARRAY())
        self._frames = context.state.table("frames", Types.PICKLED_BYTE_ARRAY())
        bounded_range = spec.time is not None and bounded and not first.rows
        self._cleanup = FrameCleanup(context, -(first.lower or 0)) if bounded_range else None
        self._expiry = find_expiry(context, "frames", spec.ttl)

    def begin_epoch(self) -> None:
        """Delete expired frames."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.take_expired():
                self._frames.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep rows until the watermark passes them; with processing time, emit them immediately."""
        spec, watermark = self._spec, self.watermark
        rows, _ = read_rows_with_kinds(batch, spec.input)
        late = 0
        for row in rows:
            key = get_key(row, self._partition)
            if spec.time is None:
                self._process(key, [(self.context.now, row)])
                continue
            time = to_millis(row[spec.time], spec.input.types[spec.time])
            if time <= (watermark if self._lower is None else self._read_emitted_up_to(key)):
                late += 1
                continue
            if self._cleanup is not None:
                self._cleanup.register(key, time)
            stored = self._waiting.get(None, key)
            waiting: list[Any] = [] if stored is ABSENT else stored
            waiting.append((time, row))
            self._waiting.put(None, key, waiting)
        if late:
            self.context.metrics.count(LATE_COUNT, late)
        self.flush()

    def _read_emitted_up_to(self, key: Any) -> int:
        """Return the time of the last emitted row of a key, which is the end of its frame."""
        if self._cleanup is not None:
            return self._cleanup.get_emitted_up_to(key)
        stored = self._frames.get(None, key)
        return MIN_WATERMARK if stored is ABSENT or not stored[0] else int(stored[0][-1][0])

    def on_watermark(self, watermark: int) -> None:
        """Emit the rows that the watermark has passed, in order."""
        if self._spec.time is not None:
            due: list[tuple[int, Any, Any]] = []
            for key, waiting in list(self._waiting.scan(None)):
                ready = [entry for entry in waiting if entry[0] <= watermark]
                if ready:
                    rest = [entry for entry in waiting if entry[0] > watermark]
                    self._waiting.put(None, key, rest or ABSENT)
                    due.extend((time, key, row) for time, row in ready)
            due.sort(key=lambda entry: entry[0])
            for key, group in _group_by_time_and_key(due):
                if self._cleanup is not None:
                    self._delete_frames(self._cleanup.take_due(group[0][0]))
                    self._cleanup.record_emitted(key, group[0][0])
                self._process(key, group)
            if self._cleanup is not None:
                self._delete_frames(self._cleanup.take_due(watermark))
            self.flush()
        super().on_watermark(watermark)

    def _delete_frames(self, keys: Iterator[Any]) -> None:
        for key in keys:
            self._frames.delete(None, key)

    def _process(self, key: Any, group: list[tuple[int, Any]]) -> None:
        """Emit rows of one key and one time."""
        stored = self._frames.get(None, key)
        if self._expiry is not None:
            stored = stored if self._expiry.is_alive(key) else ABSENT
            self._expiry.touch(key)
        state = [[], [None if f is None else f.create() for f in self._functions], 0] if stored is ABSENT else stored
        steps = [[entry] for entry in group] if self._rows_frame or self._spec.time is None else [group]
        for entries in steps:
            self._add_to_frame(state, entries)
            for time, row in entries:
                if self._rows_frame and len(entries) > 1:
                    raise AssertionError(time)
                self.put(INSERT, (*row, *self._compute_values(state, row, entries)))
        self._frames.put(None, key, state)

    def _add_to_frame(self, state: list[Any], entries: list[tuple[int, Any]]) -> None:
        frame, accs = state[0], state[1]
        for entry in entries:
            state[2] += 1
            self._update_accumulators(accs, entry[1], add=True)
            if self._lower is not None or self._needs_frame():
                frame.append(entry)
        if self._lower is None:
            if self._needs_frame():
                del frame[: max(0, len(frame) - self._compute_frame_size())]
            return
        keep = -self._lower
        if self._rows_frame:
            while len(frame) > keep + 1:
                self._update_accumulators(accs, frame.pop(0)[1], add=False)
        else:
            oldest = entries[0][0] - keep
            while frame and frame[0][0] < oldest:
                self._update_accumulators(accs, frame.pop(0)[1], add=False)

    def _needs_frame(self) -> bool:
        return any(over.call.function in ("LAG", "RANK", "DENSE_RANK") for over in self._spec.calls)

    def _compute_frame_size(self) -> int:
        lags = [int((c.call.options or (1,))[0] or 1) for c in self._spec.calls if c.call.function == "LAG"]
        return max([1, *lags]) + 1

    def _update_accumulators(self, accs: list[Any], row: tuple[Any, ...], *, add: bool) -> None:
        for function, over, acc in zip(self._functions, self._spec.calls, accs, strict=True):
            if function is None or (over.call.filter is not None and row[over.call.filter] is not True):
                continue
            values = tuple(row[i] for i in over.call.args)
            if add:
                function.add(acc, values)
            else:
                function.retract(acc, values)

    def _compute_values(self, state: list[Any], row: tuple[Any, ...], entries: list[Any]) -> list[Any]:
        results: list[Any] = []
        for function, over, acc in zip(self._functions, self._spec.calls, state[1], strict=True):
            if function is not None:
                results.append(function.value(acc))
            elif over.call.function == "LAG":
                offset = int((over.call.options or (1,))[0] or 1)
                default = over.call.options[1] if len(over.call.options) > 1 else None
                frame = state[0]
                results.append(frame[-1 - offset][1][over.call.args[0]] if len(frame) > offset else default)
            else:
                results.append(state[2])
        return results


_WITHOUT_ACCUMULATOR = ("ROW_NUMBER", "RANK", "DENSE_RANK", "LAG")


def _group_by_time_and_key(due: list[tuple[int, Any, Any]]) -> list[tuple[Any, list[tuple[int, Any]]]]:
    groups: dict[tuple[int, Any], list[tuple[int, Any]]] = {}
    for time, key, row in due:
        groups.setdefault((time, key), []).append((time, row))
    return [(key, rows) for (_, key), rows in groups.items()]

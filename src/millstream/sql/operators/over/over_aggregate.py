"""OVER: each row with aggregates of the rows before it, by time.

Promises: rows come out in order of their time attribute, once the watermark has passed them; RANGE takes rows of equal
time together, ROWS one by one. With processing time, rows come out as they came in.
Does not know: frames that reach beyond the current row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.sql.columns import INSERT
from millstream.sql.expressions.stable_text import call_text, order_text
from millstream.sql.functions.aggregates import aggregation
from millstream.sql.logical.nodes import OverCall
from millstream.sql.operators.base import TableOperator, key_of, rows_with_kinds
from millstream.sql.operators.expiry import expiry_of
from millstream.sql.operators.moments import millis_of
from millstream.sql.operators.over.forgetting import Forgetting
from millstream.sql.operators.spec import ColumnTexts, PlanContext, RowPassingSpec, StateTraits, yes
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


def over_traits(calls: Sequence[OverCall], columns: ColumnTexts) -> dict[str, str]:
    """Return partition, order and frames of OVER calls as traits of the state."""
    frames = [
        f"{call_text(over.call, columns)} {'ROWS' if over.rows else 'RANGE'} {over.lower}..{over.upper}"
        for over in calls
    ]
    return {
        "key": ", ".join(columns[i] for i in calls[0].partition),
        "order": order_text(calls[0].order, columns),
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
        traits = over_traits(self.calls, plan.inputs[0])
        return StateTraits({**traits, "expires": yes(self.ttl is not None)})

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        return [*columns, *(call_text(over.call, columns) for over in self.calls)]

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return OverOperator(context, self)


class OverOperator(TableOperator):
    """State: by key, rows that wait; [rows of the frame, accumulators, rows so far, last time]."""

    def __init__(self, context: OperatorContext, spec: OverSpec) -> None:
        super().__init__(context, spec.output, spec=spec)
        self._spec = spec
        first = spec.calls[0]
        self._partition, self._rows_frame, self._lower = first.partition, first.rows, first.lower
        bounded = first.lower is not None
        self._functions = [
            None if each.call.function in _NUMBERING else aggregation(each.call, retracts=bounded)
            for each in spec.calls
        ]
        self._waiting = context.state.table("waiting", Types.PICKLED_BYTE_ARRAY())
        self._frames = context.state.table("frames", Types.PICKLED_BYTE_ARRAY())
        bounded_range = spec.time is not None and bounded and not first.rows
        self._forgetting = Forgetting(context, -(first.lower or 0)) if bounded_range else None
        self._expiry = expiry_of(context, "frames", spec.ttl)

    def begin_epoch(self) -> None:
        """Forget frames that have lived long enough."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.expired():
                self._frames.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Let rows wait for their time, or take them at once."""
        spec, watermark = self._spec, self.watermark
        rows, _ = rows_with_kinds(batch, spec.input)
        late = 0
        for row in rows:
            key = key_of(row, self._partition)
            if spec.time is None:
                self._process(key, [(self.context.now, row)])
                continue
            time = millis_of(row[spec.time], spec.input.types[spec.time])
            if time <= (watermark if self._lower is None else self._passed(key)):
                late += 1
                continue
            if self._forgetting is not None:
                self._forgetting.expect(key, time)
            found = self._waiting.get(None, key)
            waiting: list[Any] = [] if found is ABSENT else found
            waiting.append((time, row))
            self._waiting.put(None, key, waiting)
        if late:
            self.context.metrics.count(LATE_COUNT, late)
        self.flush()

    def _passed(self, key: Any) -> int:
        """Up to which time rows of a key have come out; its frame ends with the last."""
        if self._forgetting is not None:
            return self._forgetting.passed(key)
        found = self._frames.get(None, key)
        return MIN_WATERMARK if found is ABSENT or not found[0] else int(found[0][-1][0])

    def on_watermark(self, watermark: int) -> None:
        """Rows whose time has come, in order."""
        if self._spec.time is not None:
            due: list[tuple[int, Any, Any]] = []
            for key, waiting in list(self._waiting.scan(None)):
                ready = [entry for entry in waiting if entry[0] <= watermark]
                if ready:
                    rest = [entry for entry in waiting if entry[0] > watermark]
                    self._waiting.put(None, key, rest or ABSENT)
                    due.extend((time, key, row) for time, row in ready)
            due.sort(key=lambda entry: entry[0])
            for key, group in _by_time_and_key(due):
                if self._forgetting is not None:
                    self._forget(self._forgetting.due(group[0][0]))
                    self._forgetting.process(key, group[0][0])
                self._process(key, group)
            if self._forgetting is not None:
                self._forget(self._forgetting.due(watermark))
            self.flush()
        super().on_watermark(watermark)

    def _forget(self, keys: Iterator[Any]) -> None:
        for key in keys:
            self._frames.delete(None, key)

    def _process(self, key: Any, group: list[tuple[int, Any]]) -> None:
        """Rows of one key and one time."""
        found = self._frames.get(None, key)
        if self._expiry is not None:
            found = found if self._expiry.alive(key) else ABSENT
            self._expiry.touch(key)
        state = [[], [None if f is None else f.create() for f in self._functions], 0] if found is ABSENT else found
        step = [[entry] for entry in group] if self._rows_frame or self._spec.time is None else [group]
        for entries in step:
            self._enter(state, entries)
            for time, row in entries:
                if self._rows_frame and len(entries) > 1:
                    raise AssertionError(time)
                self.put(INSERT, (*row, *self._values(state, row, entries)))
        self._frames.put(None, key, state)

    def _enter(self, state: list[Any], entries: list[tuple[int, Any]]) -> None:
        frame, accs = state[0], state[1]
        for entry in entries:
            state[2] += 1
            self._each(accs, entry[1], add=True)
            if self._lower is not None or self._remembers():
                frame.append(entry)
        if self._lower is None:
            if self._remembers():
                del frame[: max(0, len(frame) - self._memory())]
            return
        keep = -self._lower
        if self._rows_frame:
            while len(frame) > keep + 1:
                self._each(accs, frame.pop(0)[1], add=False)
        else:
            oldest = entries[0][0] - keep
            while frame and frame[0][0] < oldest:
                self._each(accs, frame.pop(0)[1], add=False)

    def _remembers(self) -> bool:
        return any(each.call.function in ("LAG", "RANK", "DENSE_RANK") for each in self._spec.calls)

    def _memory(self) -> int:
        lags = [int((c.call.options or (1,))[0] or 1) for c in self._spec.calls if c.call.function == "LAG"]
        return max([1, *lags]) + 1

    def _each(self, accs: list[Any], row: tuple[Any, ...], *, add: bool) -> None:
        for function, over, acc in zip(self._functions, self._spec.calls, accs, strict=True):
            if function is None or (over.call.filter is not None and row[over.call.filter] is not True):
                continue
            values = tuple(row[i] for i in over.call.args)
            if add:
                function.add(acc, values)
            else:
                function.retract(acc, values)

    def _values(self, state: list[Any], row: tuple[Any, ...], entries: list[Any]) -> list[Any]:
        made: list[Any] = []
        for function, over, acc in zip(self._functions, self._spec.calls, state[1], strict=True):
            if function is not None:
                made.append(function.value(acc))
            elif over.call.function == "LAG":
                back = int((over.call.options or (1,))[0] or 1)
                default = over.call.options[1] if len(over.call.options) > 1 else None
                frame = state[0]
                made.append(frame[-1 - back][1][over.call.args[0]] if len(frame) > back else default)
            else:
                made.append(state[2])
        return made


_NUMBERING = ("ROW_NUMBER", "RANK", "DENSE_RANK", "LAG")


def _by_time_and_key(due: list[tuple[int, Any, Any]]) -> list[tuple[Any, list[tuple[int, Any]]]]:
    groups: dict[tuple[int, Any], list[tuple[int, Any]]] = {}
    for time, key, row in due:
        groups.setdefault((time, key), []).append((time, row))
    return [(key, rows) for (_, key), rows in groups.items()]

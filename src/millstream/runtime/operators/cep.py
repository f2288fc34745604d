"""The CEP operator: detects patterns in keyed streams.

In event time, events are buffered until the watermark has passed them, and are then matched in the order of their
timestamps; in processing time they are matched on arrival. Events that are buffered at the end of an epoch are stored
in state, by key.

Promises: a match has the timestamp of the event that completes it. A match that is completed by time, or that times
out, has that time, however the input is split into batches. State has all that a key needs to continue.
Does not know: how patterns are written or matched."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from millstream.errors import UserError
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.functions import Function
from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.context import StreamingRuntimeContext
from millstream.runtime.keys import KeySelection
from millstream.runtime.memory import MemoryPart
from millstream.runtime.nfa.events import Events
from millstream.runtime.nfa.match import Match
from millstream.runtime.nfa.matching import Matching
from millstream.runtime.nfa.pattern import PatternPlan
from millstream.runtime.nfa.wakeups import Wakeups
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.serialization import codec
from millstream.state.store import ABSENT
from millstream.state_descriptors.output_tag import OutputTag
from millstream.types.factory import TypeInformation, Types

LATE_COUNT = "numLateRecordsDropped"


class NoTimestamp(UserError):
    """The pattern is in event time, but a record has no timestamp."""

    def __init__(self) -> None:
        super().__init__(
            "a pattern in event time needs records with timestamps",
            hint="call assign_timestamps_and_watermarks before, or in_processing_time()",
        )


class PatternChanged(UserError):
    """State has partial matches of another pattern than that of the program."""

    def __init__(self, operator: str) -> None:
        super().__init__(
            f"the state of '{operator}' has partial matches of another pattern than that of the program",
            hint="set another uid to start without state; conditions may change, but not steps and times",
        )


@dataclass(frozen=True)
class CepSpec(OperatorSpec):
    """One pattern over a stream.

    `function` has process_match(match, context), and optionally process_timed_out_match(match, context);
    `opened` are conditions that must be opened; `comparator` orders events of the same time."""

    key: KeySelection
    input_type: TypeInformation
    plan: PatternPlan
    function: Any
    opened: tuple[Function, ...] = ()
    processing_time: bool = False
    comparator: Callable[[Any, Any], int] | None = None
    late_tag: str | None = None

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return CepOperator(context, self)


class MatchContext:
    """The context of functions that process matches.

    Example:
        >>> from millstream.cep import PatternProcessFunction
        >>> class WithTime(PatternProcessFunction):
        ...     def process_match(self, match, ctx):
        ...         yield ctx.timestamp(), match

    """

    def __init__(self, operator: CepOperator) -> None:
        self._operator = operator
        self.time = NO_TIMESTAMP

    def timestamp(self) -> int:
        """Return the time of the match: that of the event that completed it, or when it timed out."""
        return self.time

    def current_processing_time(self) -> int:
        """Return the processing time of the epoch."""
        return self._operator.context.now

    def get_current_key(self) -> Any:
        """Return the key of the events."""
        return self._operator.context.scope.key

    def output(self, output_tag: OutputTag, value: Any) -> None:
        """Emit a record to a side output.

        Args:
            output_tag: The side output.
            value: The record.

        """
        self._operator.side(output_tag.tag_id, value, self.time)


@dataclass
class PatternMemory(MemoryPart):
    """The pattern of the partial matches in state."""

    part_name: ClassVar[str] = "pattern"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"pattern": "fingerprint"}

    fingerprint: str | None = None


class CepOperator(Operator):
    """Buffers events until their time has come, then matches them with the patterns."""

    def __init__(self, context: OperatorContext, spec: CepSpec) -> None:
        super().__init__(context)
        self.spec = spec
        _declare(spec.input_type)
        untyped = Types.PICKLED_BYTE_ARRAY()
        self.matches = context.state.table("cep/matches", untyped)
        self._queue = context.state.table("cep/queue", untyped)
        self._waiting, self._waiting_dirty = self._queue.by_key()
        self._wakeups = Wakeups(context.state)
        self._collector = rowwise.Collector(context)
        self._on_match = spec.function.process_match
        self._on_timeout = getattr(spec.function, "process_timed_out_match", None)
        self.wants_timed_out = self._on_timeout is not None
        self._calling: MatchContext = MatchContext(self)
        self._order = functools.cmp_to_key(spec.comparator) if spec.comparator is not None else None
        self._arrived: list[Batch] = []
        self._patterns = self.patterns()

    def patterns(self) -> dict[str, Matching]:
        """Return the initial patterns, by name."""
        return {"": Matching(self, self.matches, self.spec.plan, self.spec.input_type)}

    # -------------------------------------------------------------------------------------------- opening and time

    def open(self) -> None:
        """Open the user's function and conditions."""
        for function in self._functions():
            rowwise.call_user_code(self.context, function.open, StreamingRuntimeContext(self.context, keyed=False))

    def close(self) -> None:
        """Close the user's function and conditions."""
        for function in self._functions():
            rowwise.call_user_code(self.context, function.close)

    def _functions(self) -> Iterator[Function]:
        yield from (function for function in (self.spec.function, *self.spec.opened) if isinstance(function, Function))

    def begin_epoch(self) -> None:
        """In processing time, match up to the time of the epoch."""
        self._collector = rowwise.Collector(self.context)  # a failed attempt may have left results
        self._arrived = []
        for pattern in self._patterns.values():
            pattern.reset()
        self.check_patterns()
        if self.spec.processing_time:
            self._advance_time(self.context.now)

    def check_patterns(self) -> None:
        """Refuse partial matches of another pattern."""
        fingerprint = self._patterns[""].fingerprint
        memory = self.context.memory.part(PatternMemory)
        if memory.fingerprint not in (None, fingerprint) and any(True for _ in self.matches.scan(None)):
            raise PatternChanged(self.context.name)
        memory.fingerprint = fingerprint

    def on_watermark(self, watermark: int) -> None:
        """In event time, match up to the watermark; then pass the watermark on."""
        self.context.memory.watermark = watermark
        if not self.spec.processing_time:
            self._advance_time(watermark)
        super().on_watermark(watermark)

    def finish_keys(self) -> None:
        """Match the keys that end up to the end of processing time, too."""
        super().finish_keys()
        if self.spec.processing_time:
            self._advance_time(MAX_WATERMARK)

    def next_timer(self) -> int | None:
        """Return the next processing time at which partial matches must be checked."""
        return self._wakeups.next() if self.spec.processing_time else None

    def _advance_time(self, now: int) -> None:
        """Advance time to `now`: match the events that waited for it."""
        woken = self._wakeups.due(now)
        parts = [*self._from_queue(woken, now), *self._from_arrived(now)]
        self._match(parts, woken, now)

    def _match(self, parts: list[Batch], woken: list[Any], now: int) -> None:
        """Match events with all patterns, and advance the time of the keys that are woken."""
        events = Events(parts, self.spec.key, self.context.name, self._order) if parts else None
        for pattern in self._patterns.values():
            for key, due in pattern.run(events, woken, now):
                self._wakeups.register(key, due)
        self._collector.flush()

    # -------------------------------------------------------------------------------------------------------- events

    def on_batch(self, batch: Batch, side: int) -> None:
        """Match events, or buffer them: until the watermark, or until all events of the same time can be sorted."""
        if not len(batch):
            return
        if not self.spec.processing_time:
            self._arrived.extend(self._in_time(batch))
            return
        now = batch.with_timestamps(np.full(len(batch), self.context.now, dtype=np.int64))
        if self._order is None:
            self._match([now], [], self.context.now)
        else:
            self._arrived.append(now)

    def _in_time(self, batch: Batch) -> Iterator[Batch]:
        """Yield the events that the watermark has not passed; count late events, or emit them to the side output."""
        times = np.full(len(batch), NO_TIMESTAMP) if batch.timestamps is None else batch.timestamps
        late = times <= self.watermark
        if not late.any():
            yield batch
            return
        if (times == NO_TIMESTAMP).any():
            self._refuse_untimed(batch, int(np.argmax(times == NO_TIMESTAMP)))
        tag = self.spec.late_tag
        if tag is None:
            self.context.metrics.count(LATE_COUNT, int(late.sum()))
            first = batch.take(np.flatnonzero(late)[:1])
            for row, time in zip(first.rows(), first.times(), strict=True):
                self.context.metrics.sample(f"late: its time is {time}", row)
        else:
            late_batch = batch.take(np.flatnonzero(late))
            for row, time in zip(late_batch.rows(), late_batch.times(), strict=True):
                self._collector.side(tag, row, time)
            self._collector.flush()
        if not late.all():
            yield batch.take(np.flatnonzero(~late))

    def _refuse_untimed(self, batch: Batch, row_index: int) -> None:
        record = batch.take(np.array([row_index]))
        raise rowwise.failure(
            self.context.name, NoTimestamp(), self.spec.key.keys(record, self.context.name)[0], record.rows()[0]
        )

    def _from_arrived(self, now: int) -> Iterator[Batch]:
        """Yield the events of this epoch whose time has come; the others stay buffered."""
        waiting, self._arrived = self._arrived, []
        for batch in waiting:
            assert batch.timestamps is not None
            later = batch.timestamps > now
            if not later.any():
                yield batch
                continue
            self._arrived.append(batch.take(np.flatnonzero(later)))
            if not later.all():
                yield batch.take(np.flatnonzero(~later))

    def _from_queue(self, woken: list[Any], now: int) -> Iterator[Batch]:
        """Yield the events of earlier epochs whose time has come."""
        due: list[tuple[Any, int, Any]] = []
        for key in woken:
            waiting = self._waiting[key]
            if waiting is ABSENT:
                continue
            due.extend((key, time, event) for time, event in waiting if time <= now)
            later = [entry for entry in waiting if entry[0] > now]
            if len(later) < len(waiting):
                self._queue.put(None, key, later or ABSENT)
            if later:
                self._wakeups.register(key, min(time for time, _ in later))
        if due:
            keys, times, rows = map(list, zip(*due, strict=True))
            yield Batch(self.spec.input_type, rows=rows, timestamps=np.array(times, dtype=np.int64), keys=keys)

    def end_epoch(self) -> None:
        """Store events that are still buffered in state."""
        waiting, self._arrived = self._arrived, []
        for batch in waiting:
            keys = self.spec.key.keys(batch, self.context.name)
            for key, time, event in zip(keys, batch.times(), batch.rows(), strict=True):
                before = self._waiting[key]
                if before is ABSENT:
                    self._waiting[key] = [(time, event)]
                else:
                    before.append((time, event))
                self._waiting_dirty.add(key)
                self._wakeups.register(key, time + 1 if self.spec.processing_time else time)

    # ------------------------------------------------------------------------------------------------------- results

    def matched(self, match: Match, time: int) -> None:
        """Call the function with a match."""
        self._calling.time = time
        self._collector.take(self._on_match(match, self._calling), self._stamp(time))

    def timed_out(self, match: Match, time: int) -> None:
        """Call the function with a partial match that timed out, if it has a method for it."""
        if self._on_timeout is not None:
            self._calling.time = time
            self._collector.take(self._on_timeout(match, self._calling), self._stamp(time))

    def side(self, tag: str, value: Any, time: int) -> None:
        """Emit a record to a side output."""
        self._collector.side(tag, value, self._stamp(time))

    def _stamp(self, time: int) -> int:
        return NO_TIMESTAMP if self.spec.processing_time else time


def _declare(type_info: TypeInformation) -> None:
    """Declare the classes of events, which the stream's type names: events are stored untyped, so the codec needs
    them."""
    if isinstance(cls := getattr(type_info, "cls", None), type):
        codec.declare(cls)
    parts = [getattr(type_info, name, None) for name in ("elem_type", "key_type", "value_type")]
    for part in (*(getattr(type_info, "field_types", None) or ()), *parts):
        if isinstance(part, TypeInformation):
            _declare(part)

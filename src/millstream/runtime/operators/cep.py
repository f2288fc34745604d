"""Patterns over keyed streams: events in, matches out.

In event time events wait until the watermark has passed them, and are then matched in the order of their timestamps; in
processing time they are matched as they come. What waits at the end of an epoch waits in state, by key.

Promises: a match has the timestamp of the event that completes it; a match that time completes or ends has that time,
however the input is cut into batches. All that a key needs to continue is in state.
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
    """State holds partial matches of another pattern than the program has now."""

    def __init__(self, operator: str) -> None:
        super().__init__(
            f"the state of '{operator}' has partial matches of another pattern than the program has now",
            hint="give the operator another uid to begin afresh; conditions may change, steps and times may not",
        )


@dataclass(frozen=True)
class CepSpec(OperatorSpec):
    """One pattern over a stream.

    `function` has process_match(match, context), and process_timed_out_match(match, context) if it wants those too;
    `opened` are conditions that want to be opened; `comparator` orders events of the same time."""

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
    """The context of functions that process matches."""

    def __init__(self, operator: CepOperator) -> None:
        self._operator = operator
        self.time = NO_TIMESTAMP

    def timestamp(self) -> int:
        """The time of the match: of the event that completed it, or when its time was over."""
        return self.time

    def current_processing_time(self) -> int:
        """The processing time of the epoch."""
        return self._operator.context.now

    def get_current_key(self) -> Any:
        """The key of the events."""
        return self._operator.context.scope.key

    def output(self, output_tag: OutputTag, value: Any) -> None:
        """Send a record to a side output."""
        self._operator.side(output_tag.tag_id, value, self.time)


@dataclass
class PatternMemory(MemoryPart):
    """The pattern of the partial matches in state."""

    part_name: ClassVar[str] = "pattern"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"pattern": "fingerprint"}

    fingerprint: str | None = None


class CepOperator(Operator):
    """Gathers events until their time has come, then takes them through the patterns."""

    def __init__(self, context: OperatorContext, spec: CepSpec) -> None:
        super().__init__(context)
        self.spec = spec
        _declare(spec.input_type)
        kind = Types.PICKLED_BYTE_ARRAY()
        self.matches = context.state.table("cep/matches", kind)
        self._queue = context.state.table("cep/queue", kind)
        self._waiting, self._waiting_dirty = self._queue.by_key()
        self._wakeups = Wakeups(context.state)
        self._collector = rowwise.Collector(context.name)
        self._on_match = spec.function.process_match
        self._on_timeout = getattr(spec.function, "process_timed_out_match", None)
        self.wants_timed_out = self._on_timeout is not None
        self._calling: MatchContext = MatchContext(self)
        self._order = functools.cmp_to_key(spec.comparator) if spec.comparator is not None else None
        self._arrived: list[Batch] = []
        self._patterns = self.patterns()

    def patterns(self) -> dict[str, Matching]:
        """The patterns to begin with."""
        return {"": Matching(self, self.matches, self.spec.plan, self.spec.input_type)}

    # -------------------------------------------------------------------------------------------- opening and time

    def open(self) -> None:
        """Open the user's function and conditions."""
        for function in self._functions():
            rowwise.guarded(self.context, function.open, StreamingRuntimeContext(self.context, keyed=False))

    def close(self) -> None:
        """Close them."""
        for function in self._functions():
            rowwise.guarded(self.context, function.close)

    def _functions(self) -> Iterator[Function]:
        yield from (each for each in (self.spec.function, *self.spec.opened) if isinstance(each, Function))

    def begin_epoch(self) -> None:
        """In processing time, time has passed."""
        self._collector = rowwise.Collector(self.context.name)  # an attempt that failed may have left results
        self._arrived = []
        for pattern in self._patterns.values():
            pattern.reset()
        self.check_patterns()
        if self.spec.processing_time:
            self._pass(self.context.now)

    def check_patterns(self) -> None:
        """Refuse partial matches of another pattern."""
        now = self._patterns[""].fingerprint
        memory = self.context.memory.part(PatternMemory)
        if memory.fingerprint not in (None, now) and any(True for _ in self.matches.scan(None)):
            raise PatternChanged(self.context.name)
        memory.fingerprint = now

    def on_watermark(self, watermark: int) -> None:
        """In event time, time has passed; then pass the watermark on."""
        self.context.memory.watermark = watermark
        if not self.spec.processing_time:
            self._pass(watermark)
        super().on_watermark(watermark)

    def finish_keys(self) -> None:
        """Of keys that are over, processing time has passed, too."""
        super().finish_keys()
        if self.spec.processing_time:
            self._pass(MAX_WATERMARK)

    def next_timer(self) -> int | None:
        """When processing time has something to do."""
        return self._wakeups.next() if self.spec.processing_time else None

    def _pass(self, now: int) -> None:
        """Advance time to `now`: match the events that waited for it."""
        woken = self._wakeups.due(now)
        parts = [*self._from_queue(woken, now), *self._from_arrived(now)]
        self._match(parts, woken, now)

    def _match(self, parts: list[Batch], woken: list[Any], now: int) -> None:
        """Give events to all patterns, and time to the keys that are woken."""
        events = Events(parts, self.spec.key, self.context.name, self._order) if parts else None
        for pattern in self._patterns.values():
            for key, due in pattern.run(events, woken, now):
                self._wakeups.register(key, due)
        self._collector.flush(self.context)

    # -------------------------------------------------------------------------------------------------------- events

    def on_batch(self, batch: Batch, side: int) -> None:
        """Match events, or let them wait: for the watermark, or for others of the same moment to be put in order."""
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
        """The events that the watermark has not passed; what becomes of the others is seen to."""
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
        else:
            gone = batch.take(np.flatnonzero(late))
            for row, time in zip(gone.rows(), gone.times(), strict=True):
                self._collector.side(tag, row, time)
            self._collector.flush(self.context)
        if not late.all():
            yield batch.take(np.flatnonzero(~late))

    def _refuse_untimed(self, batch: Batch, place: int) -> None:
        one = batch.take(np.array([place]))
        raise rowwise.failure(
            self.context.name, NoTimestamp(), self.spec.key.keys(one, self.context.name)[0], one.rows()[0]
        )

    def _from_arrived(self, now: int) -> Iterator[Batch]:
        """The events of this epoch whose time has come; the others stay."""
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
        """The events of earlier epochs whose time has come."""
        found: list[tuple[Any, int, Any]] = []
        for key in woken:
            waiting = self._waiting[key]
            if waiting is ABSENT:
                continue
            found.extend((key, time, event) for time, event in waiting if time <= now)
            later = [each for each in waiting if each[0] > now]
            if len(later) < len(waiting):
                self._queue.put(None, key, later or ABSENT)
            if later:
                self._wakeups.register(key, min(time for time, _ in later))
        if found:
            keys, times, rows = map(list, zip(*found, strict=True))
            yield Batch(self.spec.input_type, rows=rows, timestamps=np.array(times, dtype=np.int64), keys=keys)

    def end_epoch(self) -> None:
        """What is still waiting waits in state."""
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
        """Hand a match to the function."""
        self._calling.time = time
        self._collector.take(self._on_match(match, self._calling), self._stamp(time))

    def timed_out(self, match: Match, time: int) -> None:
        """Hand a partial match whose time is over to the function, if it wants it."""
        if self._on_timeout is not None:
            self._calling.time = time
            self._collector.take(self._on_timeout(match, self._calling), self._stamp(time))

    def side(self, tag: str, value: Any, time: int) -> None:
        """A record for a side output."""
        self._collector.side(tag, value, self._stamp(time))

    def _stamp(self, time: int) -> int:
        return NO_TIMESTAMP if self.spec.processing_time else time


def _declare(kind: TypeInformation) -> None:
    """Events wait in state among other values, so the codec must know their classes; the stream's type names them."""
    if isinstance(cls := getattr(kind, "cls", None), type):
        codec.declare(cls)
    parts = [getattr(kind, name, None) for name in ("elem_type", "key_type", "value_type")]
    for part in (*(getattr(kind, "field_types", None) or ()), *parts):
        if isinstance(part, TypeInformation):
            _declare(part)

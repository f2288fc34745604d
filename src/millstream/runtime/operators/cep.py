"""Patterns over keyed streams: events in, matches out.

In event time events wait, by key, until the watermark has passed them, and are then matched in the order of their
timestamps; in processing time they are matched as they come.

Promises: a match is told with the time of the event that completes it; what time alone completes or ends is told with
the time at which it did, however the input was cut; what a key needs to go on is in state, and nothing else.
Does not know: how patterns are written or matched."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.errors import UserError
from millstream.model import codec
from millstream.model.functions import Function
from millstream.model.output import OutputTag
from millstream.model.types import TypeInformation, Types
from millstream.model.watermarks import MAX_WATERMARK
from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.context import StreamingRuntimeContext
from millstream.runtime.keys import KeySelection
from millstream.runtime.nfa.compile import automaton
from millstream.runtime.nfa.match import Live, Match, Matcher
from millstream.runtime.nfa.pattern import PatternPlan
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.state.backend import ABSENT, OperatorState

LATE_COUNT = "numLateRecordsDropped"


class NoTimestamp(UserError):
    """Event time was asked for, but a record has no timestamp."""

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
        """The operator."""
        return CepOperator(context, self)


class MatchContext:
    """What functions are given with a match."""

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


class Wakeups:
    """When each key must be looked at next. The table is the truth; the heap is an index that is checked on use."""

    def __init__(self, state: OperatorState) -> None:
        self._table = state.table("cep/wakeups", Types.LONG(), in_memory=True)
        self._table.listener = lambda _, key, time: self._push(key, time)
        self._times, self._dirty = self._table.namespace(None)
        self._heap: list[tuple[int, int, Any]] = []
        self._pushed = 0

    def _push(self, key: Any, time: int) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (time, self._pushed, key))

    def by(self, key: Any, time: int) -> None:
        """Look at the key at that time, or before it as agreed."""
        time = min(time, MAX_WATERMARK)
        known = self._times[key]
        if known is ABSENT or time < known:
            self._times[key] = time
            self._dirty.add(key)
            self._push(key, time)

    def due(self, until: int) -> Iterator[tuple[Any, int]]:
        """The keys to be looked at up to and with `until`, in the order of their times."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            time, _, key = heapq.heappop(heap)
            if self._times[key] == time:
                self._times[key] = ABSENT
                self._dirty.add(key)
                yield key, time

    def next(self) -> int | None:
        """The time of the first wakeup."""
        heap = self._heap
        while heap and self._times[heap[0][2]] != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None


class Matching:
    """One pattern at work on all keys: finds a key's state, runs the automaton, hands results on."""

    def __init__(self, operator: CepOperator, plan: PatternPlan, namespace: Any = None) -> None:
        self._operator = operator
        self._matcher = Matcher(automaton(plan), lambda: operator.context.now)
        self._namespace = namespace
        self._blank = self._matcher.initial()
        self.fingerprint = self._matcher.automaton.fingerprint()

    def reset(self) -> None:
        """Forget what an attempt that failed may have left."""
        self._blank = self._matcher.initial()

    def run(self, key: Any, events: Iterable[tuple[int, Any]], until: int) -> int | None:
        """Match events of a key, in order, and let time pass to `until`; when the key must be looked at again."""
        matcher, table = self._matcher, self._operator.matches
        live: Any = table.get(self._namespace, key)
        known = live is not ABSENT
        if not known:
            live = self._blank
        matcher.changed = False
        for time, event in events:
            try:
                if matcher.timed and (known or matcher.changed):
                    self._advance(live, time)
                for match in matcher.process(live, event, time):
                    self._operator.matched(match, time)
            except (Exception, SystemExit) as problem:
                raise rowwise.failure(self._operator.context.name, problem, key, event) from problem
        if known or matcher.changed:
            self._advance(live, until)
        if not matcher.changed:
            return matcher.deadline(live) if known else None
        if matcher.is_initial(live):
            if known:
                table.put(self._namespace, key, ABSENT)
            else:
                self._blank = matcher.initial()
            return None
        table.put(self._namespace, key, live)
        if not known:
            self._blank = matcher.initial()
        return matcher.deadline(live)

    def _advance(self, live: Live, time: int) -> None:
        """Let time pass, stopping wherever a partial match runs out of it."""
        matcher, operator = self._matcher, self._operator
        while (due := matcher.deadline(live)) is not None and due <= time:
            matches, late = matcher.advance(live, due)
            for match in matches:
                operator.matched(match, due)
            for match, end in late:
                operator.timed_out(match, end)


class CepOperator(Operator):
    """Follows each event into its key's queue, and from there through the patterns."""

    def __init__(self, context: OperatorContext, spec: CepSpec) -> None:
        super().__init__(context)
        self.spec = spec
        _declare(spec.input_type)
        kind = Types.PICKLED_BYTE_ARRAY()
        self.matches = context.state.table("cep/matches", kind)
        self._queue = context.state.table("cep/queue", kind)
        self._waiting, self._waiting_dirty = self._queue.namespace(None)
        self._wakeups = Wakeups(context.state)
        self._collector = rowwise.Collector(context.name)
        self._on_match = spec.function.process_match
        self._on_timeout = getattr(spec.function, "process_timed_out_match", None)
        self._calling: MatchContext = MatchContext(self)
        self._order = functools.cmp_to_key(spec.comparator) if spec.comparator is not None else None
        self._patterns = self.patterns()

    def patterns(self) -> dict[str, Matching]:
        """The patterns to begin with."""
        return {"": Matching(self, self.spec.plan)}

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
        for pattern in self._patterns.values():
            pattern.reset()
        self.check_patterns()
        if self.spec.processing_time:
            self._pass(self.context.now)

    def check_patterns(self) -> None:
        """Partial matches must be of the pattern they go on with."""
        now = self._patterns[""].fingerprint
        if self.context.memory.setdefault("pattern", now) != now:
            if any(True for _ in self.matches.scan(None)):
                raise PatternChanged(self.context.name)
            self.context.memory["pattern"] = now

    def on_watermark(self, watermark: int) -> None:
        """In event time, time has passed; then pass the watermark on."""
        self.context.memory["watermark"] = watermark
        if not self.spec.processing_time:
            self._pass(watermark)
        super().on_watermark(watermark)

    def next_timer(self) -> int | None:
        """When processing time has something to do."""
        return self._wakeups.next() if self.spec.processing_time else None

    def _pass(self, now: int) -> None:
        for key, _ in self._wakeups.due(now):
            self.context.scope.key = key
            rowwise.guarded(self.context, self._wake, key, now, key=key)
        self._collector.flush(self.context)

    # -------------------------------------------------------------------------------------------------------- events

    def on_batch(self, batch: Batch, side: int) -> None:
        """Match events, or let them wait for the watermark."""
        keys = self.spec.key.keys(batch, self.context.name)
        visit: Any = self._wait
        if not self.spec.processing_time:
            visit = self._wait
        else:
            visit = self._at_once if self._order is None else self._wait_a_moment
        rowwise.each_keyed(self.context, visit, batch, keys, self.context.scope)
        self._collector.flush(self.context)

    def _wait(self, event: Any, time: int) -> None:
        if time > self.watermark:
            self._enqueue(event, time, time)
        elif time == NO_TIMESTAMP:
            raise NoTimestamp
        elif self.spec.late_tag is not None:
            self._collector.side(self.spec.late_tag, event, time)
        else:
            self.context.metrics.count(LATE_COUNT)

    def _at_once(self, event: Any, _: int) -> None:
        key, now = self.context.scope.key, self.context.now
        for pattern in self._patterns.values():
            due = pattern.run(key, ((now, event),), now)
            if due is not None:
                self._wakeups.by(key, due)

    def _wait_a_moment(self, event: Any, _: int) -> None:
        now = self.context.now
        self._enqueue(event, now, now + 1)

    def _enqueue(self, event: Any, time: int, wake: int) -> None:
        key = self.context.scope.key
        waiting = self._waiting[key]
        if waiting is ABSENT:
            self._waiting[key] = [(time, event)]
        else:
            waiting.append((time, event))
        self._waiting_dirty.add(key)
        self._wakeups.by(key, wake)

    def _wake(self, key: Any, now: int) -> None:
        waiting = self._waiting[key]
        due: list[tuple[int, Any]] = []
        later: list[tuple[int, Any]] = []
        if waiting is not ABSENT:
            due = [each for each in waiting if each[0] <= now]
        if due:
            if len(due) > 1:
                due.sort(key=_time if self._order is None else self._time_and_order)
            if len(due) < len(waiting):
                later = [each for each in waiting if each[0] > now]
            self._queue.put(None, key, later or ABSENT)
            if later:
                self._wakeups.by(key, min(time for time, _ in later))
        elif waiting is not ABSENT:
            self._wakeups.by(key, min(time for time, _ in waiting))
        for pattern in self._patterns.values():
            next_time = pattern.run(key, due, now)
            if next_time is not None:
                self._wakeups.by(key, next_time)

    def _time_and_order(self, waiting: tuple[int, Any]) -> tuple[int, Any]:
        assert self._order is not None
        return waiting[0], self._order(waiting[1])

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


def _time(waiting: tuple[int, Any]) -> int:
    return waiting[0]

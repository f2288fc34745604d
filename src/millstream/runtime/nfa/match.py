"""Runs an automaton over the events of one key.

The state of a key is one list of plain values, `[partials, completed, events, nodes, counter]`: it can be stored as it
stands. A partial match is a tuple (state, node, time of its first event, time of its last event, first event).

Promises: Flink's matches in Flink's order; partial matches that can no longer complete are dropped.
Does not know: keys, watermarks, timers, outputs. The caller of `process` calls `advance` to the event's time before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.errors import UserError
from millstream.runtime.nfa import heap
from millstream.runtime.nfa.buffer import NONE, EventForm, SharedBuffer
from millstream.runtime.nfa.compile import Automaton, StateType
from millstream.runtime.nfa.conditions import BatchPredicate
from millstream.runtime.nfa.pattern import SkipKind
from millstream.runtime.nfa.transitions import IGNORE, IGNORED_UNCHANGED, NO_STATE, Choices, Transitions

Match = dict[str, list[Any]]
Partial = tuple[int, int, int, int, int]
Live = list[Any]

_CACHED_NODES = 1 << 12  # nodes that no longer exist; with more, the cache is dropped
_NEVER = 1 << 62  # the rank of the partial match that has no event yet: after all others


class CouldNotSkip(UserError):
    """A match lacks the event that the skip strategy continues from."""


class _Context:
    """The context of conditions; it is moved from one partial match to the next."""

    __slots__ = (
        "_accumulated",
        "_batch_results",
        "_buffer",
        "_cached_nodes",
        "_events",
        "_names",
        "_node",
        "_nodes",
        "_now",
        "_time",
        "results",
    )

    def __init__(self, names: list[str], now: Callable[[], int], buffer: SharedBuffer) -> None:
        self._names, self._now, self._buffer = names, now, buffer
        self.results: dict[int, bool] = {}
        self._time = 0
        self._node = NONE
        self._events: Match | None = None
        self._nodes: list[int] = [NONE]
        self._batch_results: dict[int, dict[int, bool] | None] = {}
        self._cached_nodes: Any = None
        self._accumulated: dict[int, tuple[dict[int, Any], dict[tuple[int, int], Any]]] = {}

    def begin(self, time: int, results: dict[int, bool]) -> None:
        self.results = results
        self._time = time
        self._batch_results = {}
        self._nodes = [NONE]

    def set_partials(self, partials: list[Partial]) -> None:
        """Set the partial matches that the current event is tested for."""
        self._batch_results = {}
        self._nodes = list(dict.fromkeys([partial[1] for partial in partials]))

    def move(self, node: int) -> None:
        self._node, self._events = node, None

    def evaluate(self, test: BatchPredicate, event: Any) -> bool:
        """Return the result of a batch predicate for the current partial match."""
        number = id(test)
        if number not in self._batch_results:
            results = test.evaluate_all(event, self, self._nodes, self._now())
            self._batch_results[number] = None if results is None else dict(zip(self._nodes, results, strict=True))
        by_node = self._batch_results[number]
        return bool(test(event, self)) if by_node is None else by_node[self._node]

    def accumulated(self, test: BatchPredicate, node: int) -> Any:
        """Return what a predicate accumulated along the steps up to a node; cached until another key is matched."""
        buffer = self._buffer
        if self._cached_nodes is not buffer.nodes:
            self._cached_nodes, self._accumulated = buffer.nodes, {}
        cached = self._accumulated.get(id(test))
        if cached is None or len(cached[0]) > _CACHED_NODES + 2 * len(buffer.nodes):
            cached = self._accumulated[id(test)] = ({NONE: test.initial()}, {})
        by_node, by_event = cached
        missing = []
        while node not in by_node:
            missing.append(node)
            node = buffer.nodes[node][2]
        value = by_node[node]
        for node in reversed(missing):
            event, name, _, _ = buffer.nodes[node]
            values = by_event.get((event, name))
            if values is None:
                values = by_event[event, name] = test.values_of(self._names[name], buffer.event(event))
            value = by_node[node] = test.accumulate(value, self._names[name], values)
        return value

    def get_events_for_pattern(self, name: str) -> list[Any]:
        """Return the events of the partial match that were accepted under a name, oldest first."""
        if self._events is None:
            self._events = self._buffer.match(self._node, self._names)
        return list(self._events.get(name, ()))

    def timestamp(self) -> int:
        """Return the time of the current event."""
        return self._time

    def current_processing_time(self) -> int:
        """Return the processing time."""
        return self._now()


class Matcher:
    """Runs an automaton. `now` returns the processing time for conditions, `form` says how events are stored."""

    def __init__(self, automaton: Automaton, now: Callable[[], int] = lambda: 0, form: EventForm | None = None) -> None:
        self.automaton = automaton
        self.transitions = Transitions(automaton)
        self._state_types = [state.state_type for state in automaton.states]
        self._ends = [state_type in (StateType.FINAL, StateType.STOP) for state_type in self._state_types]
        self._gaps = [state.gap for state in automaton.states]
        self._window = automaton.window
        self._has_gaps = any(state.gap is not None for state in automaton.states)
        self.timed = automaton.window > 0 or self._has_gaps  # whether partial matches can time out
        self._skips = automaton.skip.kind is not SkipKind.NO_SKIP
        self._beginning: Partial = (automaton.start, NONE, 0, 0, _NEVER)
        self._buffer = SharedBuffer(form or EventForm())
        self._context = _Context(automaton.names, now, self._buffer)
        self.reports_timeouts = True  # whether the caller needs partial matches that timed out
        self.changed = False  # set when the state of a key changes; the caller clears it

    def initial(self) -> Live:
        """Return the state of a key without events."""
        return [[self._beginning], [], {}, {}, 0]

    def is_initial(self, live: Live) -> bool:
        """Whether the state of a key is empty, so that it need not be stored."""
        return not live[1] and live[0][0][4] == _NEVER  # its rank is the highest, so there is no other

    def deadline(self, live: Live) -> int | None:
        """Return when the first partial match times out."""
        if not self.timed:
            return None
        first: Partial = live[0][0]
        earliest = first[2] + self._window if self._window and first[4] != _NEVER else None
        if self._has_gaps:
            for state, _, _, last, rank in live[0]:
                gap = self._gaps[state]
                if gap and rank != _NEVER and (earliest is None or last + gap < earliest):
                    earliest = last + gap
        return earliest

    # --------------------------------------------------------------------------------------------------- an event

    def process(self, live: Live, event: Any, time: int, results: dict[int, bool] | None = None) -> list[Match]:
        """Return the matches that an event completes; `results` are the known results of predicates."""
        context = self._context
        context.begin(time, {} if results is None else results)
        if live[0][0][4] == _NEVER:
            context.move(NONE)
            if not self.transitions.begins(event, context):
                return []
        return self.process_with_bitmask(live, event, time, None)

    def begins(self, event: Any, time: int, results: dict[int, bool]) -> bool:
        """Whether an event may begin a match; the results of predicates are added to `results`."""
        context = self._context
        context.begin(time, results)
        context.move(NONE)
        return self.transitions.begins(event, context)

    def process_with_bitmask(self, live: Live, event: Any, time: int, bitmask: int | None) -> list[Match]:
        """Like `process`; with `bitmask`, the results of all predicates are known (see
        `Transitions.choose_by_results`)."""
        before, buffer = live[0], self._buffer.of(live[2], live[3])
        after: heap.Heap | None = None  # while nothing changes, neither does the order
        complete: heap.Heap = []
        number = NONE
        state_types, ends, transitions, context = self._state_types, self._ends, self.transitions, self._context
        if bitmask is None:
            context.set_partials(before)
        for index, partial in enumerate(before):
            if bitmask is None:
                context.move(partial[1])
                choices = transitions.choose(partial[0], event, context)
            else:
                choices = transitions.choose_by_results(partial[0], bitmask)
            if choices is IGNORED_UNCHANGED or (not choices and partial[4] == _NEVER):
                if after is not None:
                    heap.add(after, partial)
                continue
            if after is None:
                after = before[:index]
            if not choices:
                buffer.release(partial[1])
                continue
            following, number = self._following(live, partial, choices, event, time, number)
            finished = [partial_match for partial_match in following if ends[partial_match[0]]]
            if not finished:
                heap.add_all(after, following)
                continue
            continuing = [partial_match for partial_match in following if not ends[partial_match[0]]]
            heap.add_all(
                complete,
                [partial_match for partial_match in finished if state_types[partial_match[0]] is StateType.FINAL],
            )
            stops = [partial_match for partial_match in finished if state_types[partial_match[0]] is StateType.STOP]
            if stops:
                for partial_match in (*stops, *continuing):
                    buffer.release(partial_match[1])
            else:
                heap.add_all(after, continuing)
        if after is not None:
            self.changed = True
            live[0] = after
        return self._emit_completed(live, complete) if complete or live[1] else []

    def _following(
        self, live: Live, partial: Partial, chosen: Choices, event: Any, time: int, number: int
    ) -> tuple[list[Partial], int]:
        """Return the partial matches that follow from one; an event is numbered when it is first accepted."""
        _, node, start, last, rank = partial
        buffer = self._buffer
        following: list[Partial] = []
        is_beginning = rank == _NEVER
        for action, target, name, end in chosen:
            if action == IGNORE:
                if not is_beginning:
                    following.append((target, node, start, last, rank))
                    buffer.hold(node)
                continue
            if number == NONE:
                number = live[4]
                live[4] = number + 1
            new_node = live[4]
            live[4] = new_node + 1
            buffer.put(new_node, number, name, node, event, 1 if end == NO_STATE else 2)
            after = (target, new_node, time, time, number) if is_beginning else (target, new_node, start, time, rank)
            following.append(after)
            if end != NO_STATE:
                following.append((end, *after[1:]))
        if is_beginning:
            following.append(self._beginning)
        else:
            buffer.release(node)
        return following, number

    # ------------------------------------------------------------------------------------------------------- time

    def advance(self, live: Live, time: int) -> tuple[list[Match], list[tuple[Match, int]]]:
        """Advance to `time`: return the matches that this completes, and the partial matches that time out with their
        times."""
        due = self.deadline(live)
        if due is None or due > time:
            return [], []
        self.changed = True
        buffer = self._buffer.of(live[2], live[3])
        names, window = self.automaton.names, self._window
        partials: heap.Heap = []
        complete: heap.Heap = []
        timed_out: list[tuple[Match, int]] = []
        for partial in live[0]:
            state, node, start, last, rank = partial
            gap = self._gaps[state]
            by_gap = rank != _NEVER and gap is not None and gap > 0 and time - last >= gap
            by_window = rank != _NEVER and window > 0 and time - start >= window
            if not by_gap and not by_window:
                heap.add(partials, partial)
            elif self._state_types[state] is StateType.PENDING:
                heap.add(complete, partial)
            else:
                end = last + gap if by_gap and gap is not None else start + window
                if self.reports_timeouts:
                    timed_out.append((buffer.match(node, names), end))
                buffer.release(node)
        live[0] = partials
        return self._emit_completed(live, complete), timed_out

    # -------------------------------------------------------------------------------------------- after a match

    def _emit_completed(self, live: Live, complete: heap.Heap) -> list[Match]:
        """Return the matches that can be emitted now; with a skip strategy, a match waits for earlier partial
        matches."""
        partials, completed, buffer = live[0], live[1], self._buffer
        heap.add_all(completed, complete)
        names = self.automaton.names
        matches = []
        while completed:
            if self._skips and partials and completed[0][4] > partials[0][4]:
                break
            node = heap.poll(completed)[1]
            if self._skips:
                last_event = self._last_discarded_event(buffer.path(node))
                if last_event is not None:
                    for entries in (partials, completed):
                        for removed in heap.remove(entries, _begins_by(last_event)):
                            buffer.release(removed[1])
            matches.append(buffer.match(node, names))
            buffer.release(node)
        return matches

    def _last_discarded_event(self, path: list[tuple[int, int]]) -> int | None:
        """Return the event up to which partial matches that began with it are discarded by the skip strategy, or
        None."""
        skip = self.automaton.skip
        if skip.kind is SkipKind.SKIP_PAST_LAST_EVENT:
            return max(event for _, event in path)
        if skip.kind is SkipKind.SKIP_TO_NEXT:
            return path[0][1]
        name_index = self.automaton.names.index(skip.name) if skip.name in self.automaton.names else NONE
        named_events = [event for name, event in path if name == name_index]
        if not named_events:
            if skip.strict:
                msg = f"could not skip to '{skip.name}': the match has no such event"
                raise CouldNotSkip(msg, hint="use a step that is not optional, or drop throw_exception_on_miss")
            return None
        skip_target = named_events[0] if skip.kind is SkipKind.SKIP_TO_FIRST else named_events[-1]
        if skip.strict and skip_target == path[0][1]:
            msg = f"could not skip to '{skip.name}': it is the first event of the match, which would match again"
            raise CouldNotSkip(msg, hint="skip to a later step, or drop throw_exception_on_miss")
        return skip_target - 1


def _begins_by(end: int) -> Callable[[Any], bool]:
    return lambda entry: bool(entry[4] <= end)

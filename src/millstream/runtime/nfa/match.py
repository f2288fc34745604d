"""Runs an automaton over the events of one key.

The state of a key is one list of plain values, `[partials, completed, events, nodes, counter]`: it can be stored as it
stands. A partial match is a tuple (state, node, time of its first event, time of its last event, first event).

Promises: Flink's matches in Flink's order; what can no longer become a match is forgotten.
Does not know: keys, watermarks, timers, outputs; whoever calls `process` has called `advance` to the event's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.errors import UserError
from millstream.runtime.nfa import heap
from millstream.runtime.nfa.buffer import NONE, SharedBuffer
from millstream.runtime.nfa.compile import Action, Automaton, Kind
from millstream.runtime.nfa.pattern import SkipKind

Match = dict[str, list[Any]]
Partial = tuple[int, int, int, int, int]
Live = list[Any]

_NEVER = 1 << 62  # the rank of the partial match that has no event yet: after all others


class CouldNotSkip(UserError):
    """A match lacks the event that matching was to go on from."""


class _Context:
    """What conditions may ask; moved from one partial match to the next."""

    __slots__ = ("_buffer", "_found", "_names", "_node", "_now", "_time", "verdicts")

    def __init__(self, names: list[str], now: Callable[[], int]) -> None:
        self._names, self._now = names, now
        self.verdicts: dict[int, bool] = {}
        self._time = 0
        self._node = NONE
        self._found: Match | None = None
        self._buffer = SharedBuffer({}, {})

    def begin(self, buffer: SharedBuffer, time: int) -> None:
        self.verdicts = {}
        self._buffer, self._time = buffer, time

    def move(self, node: int) -> None:
        self._node, self._found = node, None

    def get_events_for_pattern(self, name: str) -> list[Any]:
        """The events of the partial match that were taken under a name, oldest first."""
        if self._found is None:
            self._found = self._buffer.match(self._node, self._names)
        return list(self._found.get(name, ()))

    def timestamp(self) -> int:
        """The time of the event at hand."""
        return self._time

    def current_processing_time(self) -> int:
        """The processing time."""
        return self._now()


class Matcher:
    """An automaton at work. `now` tells conditions the processing time."""

    def __init__(self, automaton: Automaton, now: Callable[[], int] = lambda: 0) -> None:
        self.automaton = automaton
        self._states = automaton.states
        self._edges = [state.edges for state in automaton.states]
        self._kinds = [state.kind for state in automaton.states]
        self._gaps = [state.gap for state in automaton.states]
        self._proceeds = [
            tuple((target, check) for action, target, check, _ in state.edges if action == Action.PROCEED)
            for state in automaton.states
        ]
        self._window = automaton.window
        self._has_gaps = any(state.gap is not None for state in automaton.states)
        self.timed = automaton.window > 0 or self._has_gaps  # whether partial matches can run out of time
        self._skips = automaton.skip.kind is not SkipKind.NO_SKIP
        self._beginning: Partial = (automaton.start, NONE, 0, 0, _NEVER)
        self._context = _Context(automaton.names, now)
        self.changed = False  # set by whatever changes a key's state, cleared by whoever wants to know

    def initial(self) -> Live:
        """The state of a key that has seen no event."""
        return [[self._beginning], [], {}, {}, 0]

    def is_initial(self, live: Live) -> bool:
        """Whether a key's state says nothing: it need not be kept."""
        return len(live[0]) == 1 and not live[1] and live[0][0][4] == _NEVER

    def deadline(self, live: Live) -> int | None:
        """When the first partial match runs out of time."""
        if not self.timed:
            return None
        first: Partial = live[0][0]
        found = first[2] + self._window if self._window and first[4] != _NEVER else None
        if self._has_gaps:
            for state, _, _, last, rank in live[0]:
                gap = self._gaps[state]
                if gap and rank != _NEVER and (found is None or last + gap < found):
                    found = last + gap
        return found

    # --------------------------------------------------------------------------------------------------- an event

    def process(self, live: Live, event: Any, time: int) -> list[Match]:
        """The matches that an event completes."""
        buffer = SharedBuffer(live[2], live[3])
        self._context.begin(buffer, time)
        if len(live[0]) == 1 and live[0][0][4] == _NEVER and not self._begins(event):
            return []
        partials: heap.Heap = []
        complete: heap.Heap = []
        number = NONE
        kinds = self._kinds
        for partial in live[0]:
            following, number = self._following(live, buffer, partial, event, time, number)
            if len(following) == 1 and following[0] is partial:
                heap.add(partials, partial)
                continue
            self.changed = True
            stopped = False
            kept = []
            for each in following:
                kind = kinds[each[0]]
                if kind is Kind.FINAL:
                    heap.add(complete, each)
                elif kind is Kind.STOP:
                    stopped = True
                    buffer.release(each[1])
                else:
                    kept.append(each)
            if stopped:
                for each in kept:
                    buffer.release(each[1])
            else:
                heap.add_all(partials, kept)
        live[0] = partials
        return self._completed(live, buffer, complete) if complete or live[1] else []

    def _begins(self, event: Any) -> bool:
        """Whether the event may begin a match: asked first, because most events of most keys do not."""
        context = self._context
        context.move(NONE)
        for action, _, check, _ in self._edges[self.automaton.start]:
            if action != Action.IGNORE and (check is None or check(event, context)):
                return True
        return False

    def _following(
        self, live: Live, buffer: SharedBuffer, partial: Partial, event: Any, time: int, number: int
    ) -> tuple[list[Partial], int]:
        """The partial matches that one becomes; an event is numbered when it is first taken."""
        state, node, start, last, rank = partial
        context = self._context
        context.move(node)
        following: list[Partial] = []
        beginning = rank == _NEVER
        edges = self._edges
        waiting = [state]
        chosen = []
        while waiting:
            for edge in edges[waiting.pop()]:
                check = edge[2]
                if check is None or check(event, context):
                    if edge[0] == Action.PROCEED:
                        waiting.append(edge[1])
                    else:
                        chosen.append(edge)
        for action, target, _, name in chosen:
            if action == Action.IGNORE:
                if beginning:
                    continue
                if target == state and len(chosen) == 1:
                    return [partial], number
                following.append((target, node, start, last, rank))
                buffer.hold(node)
                continue
            if number == NONE:
                number = live[4]
                live[4] = number + 1
            taken = live[4]
            live[4] = taken + 1
            buffer.put(taken, number, name, node, event)
            buffer.hold(taken)
            after = (target, taken, time, time, number) if beginning else (target, taken, start, time, rank)
            following.append(after)
            final = self._final_after(target, event)
            if final is not None:
                following.append((final, *after[1:]))
                buffer.hold(taken)
        if beginning:
            following.append(self._beginning if following else partial)
        else:
            buffer.release(node)
        return following, number

    def _final_after(self, state: int, event: Any) -> int | None:
        """The end, when it can be reached without another event."""
        if not self._proceeds[state]:
            return None
        waiting = [state]
        while waiting:
            for target, check in self._proceeds[waiting.pop()]:
                if check is None or check(event, self._context):
                    if self._kinds[target] is Kind.FINAL:
                        return target
                    waiting.append(target)
        return None

    # ------------------------------------------------------------------------------------------------------- time

    def advance(self, live: Live, time: int) -> tuple[list[Match], list[tuple[Match, int]]]:
        """No event before `time` will come: the matches that this completes, and what ran out of time, and when."""
        due = self.deadline(live)
        if due is None or due > time:
            return [], []
        self.changed = True
        buffer = SharedBuffer(live[2], live[3])
        names, window = self.automaton.names, self._window
        partials: heap.Heap = []
        complete: heap.Heap = []
        late: list[tuple[Match, int]] = []
        for partial in live[0]:
            state, node, start, last, rank = partial
            gap = self._gaps[state]
            by_gap = rank != _NEVER and gap is not None and gap > 0 and time - last >= gap
            by_window = rank != _NEVER and window > 0 and time - start >= window
            if not by_gap and not by_window:
                heap.add(partials, partial)
            elif self._kinds[state] is Kind.PENDING:
                heap.add(complete, partial)
            else:
                end = last + gap if by_gap and gap is not None else start + window
                late.append((buffer.match(node, names), end))
                buffer.release(node)
        live[0] = partials
        return self._completed(live, buffer, complete), late

    # -------------------------------------------------------------------------------------------- after a match

    def _completed(self, live: Live, buffer: SharedBuffer, complete: heap.Heap) -> list[Match]:
        """The matches that can be told now; with a skip strategy one waits for partial matches that began earlier."""
        partials, completed = live[0], live[1]
        heap.add_all(completed, complete)
        names = self.automaton.names
        matches = []
        while completed:
            if self._skips and partials and completed[0][4] > partials[0][4]:
                break
            node = heap.poll(completed)[1]
            if self._skips:
                ended = self._ended(buffer.path(node))
                if ended is not None:
                    for entries in (partials, completed):
                        for gone in heap.remove(entries, _ended_by(ended)):
                            buffer.release(gone[1])
            matches.append(buffer.match(node, names))
            buffer.release(node)
        return matches

    def _ended(self, path: list[tuple[int, int]]) -> int | None:
        """Partial matches that began with this event or before it end with the match; None for none."""
        skip = self.automaton.skip
        if skip.kind is SkipKind.SKIP_PAST_LAST_EVENT:
            return max(event for _, event in path)
        if skip.kind is SkipKind.SKIP_TO_NEXT:
            return path[0][1]
        wanted = self.automaton.names.index(skip.name) if skip.name in self.automaton.names else NONE
        found = [event for name, event in path if name == wanted]
        if not found:
            if skip.strict:
                msg = f"could not skip to '{skip.name}': the match has no such event"
                raise CouldNotSkip(msg, hint="use a step that is not optional, or drop throw_exception_on_miss")
            return None
        to = found[0] if skip.kind is SkipKind.SKIP_TO_FIRST else found[-1]
        if skip.strict and to == path[0][1]:
            msg = f"could not skip to '{skip.name}': it is the first event of the match, which would be found again"
            raise CouldNotSkip(msg, hint="skip to a later step, or drop throw_exception_on_miss")
        return to - 1


def _ended_by(end: int) -> Callable[[Any], bool]:
    return lambda entry: bool(entry[4] <= end)

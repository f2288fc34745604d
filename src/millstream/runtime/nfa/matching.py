"""One pattern at work on all keys: finds a key's state, runs the automaton over its events, hands results on.

Promises: a key without a partial match whose events begin none costs nothing but its share of the columns; the state of
a key is read and written once a pass.
Does not know: where events come from, when a pass is made, what becomes of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from millstream.runtime import rowwise
from millstream.runtime.nfa.buffer import EventForm
from millstream.runtime.nfa.compile import automaton
from millstream.runtime.nfa.evaluation import ConditionResults, strict_steps_after_first
from millstream.runtime.nfa.events import Events
from millstream.runtime.nfa.match import Live, Match, Matcher
from millstream.runtime.nfa.pattern import PatternPlan
from millstream.runtime.operator import OperatorContext
from millstream.state.store import ABSENT
from millstream.state.table import StateTable
from millstream.types.factory import TypeInformation


class Results(Protocol):
    """Receives matches."""

    context: OperatorContext
    wants_timed_out: bool

    def matched(self, match: Match, time: int) -> None:
        """A match was completed."""

    def timed_out(self, match: Match, time: int) -> None:
        """A partial match has run out of time."""


class _Visit(NamedTuple):
    """Events of a key that must be matched one by one; `live` is None for a key without state."""

    key: Any
    live: Live | None
    start: int
    end: int


class Matching:
    """A pattern with the partial matches of all keys, in one namespace of a table."""

    def __init__(
        self, results: Results, table: StateTable, plan: PatternPlan, kind: TypeInformation, namespace: Any = None
    ) -> None:
        self._results, self._table, self._namespace = results, table, namespace
        self._matcher = Matcher(automaton(plan), lambda: results.context.now, EventForm(kind))
        self._matcher.tells_late = results.wants_timed_out
        self._directly = strict_steps_after_first(plan)
        self._blank = self._matcher.initial()
        self.fingerprint = self._matcher.automaton.fingerprint()

    def reset(self) -> None:
        """Forget what an attempt that failed may have left."""
        self._blank = self._matcher.initial()

    def run(self, events: Events | None, woken: Iterable[Any], until: int) -> Iterator[tuple[Any, int]]:
        """Match events, and let time pass to `until` for the keys that have some or are woken.

        Gives the keys that must be looked at again, and when."""
        live = self._table.reader(self._namespace)
        seen: set[Any] = set()
        if events is not None and len(events):
            seen.update(events.keys)
            yield from self._match(events, live, until)
        for key in woken:
            if key not in seen and (state := live[key]) is not ABSENT:
                self._results.context.scope.key = key
                self._matcher.changed = False
                due = self._finish(key, state, until, known=True)
                if due is not None:
                    yield key, due

    def _match(self, events: Events, live: Any, until: int) -> Iterator[tuple[Any, int]]:
        results = ConditionResults(self._matcher.transitions, events)
        begins = results.begins
        if results.complete and self._directly:
            begins = results.surviving_begins(self._directly, self._matcher.automaton.window)
        rows: list[Any] = []
        known: list[dict[int, bool]] = []
        if results.must_test_begins:
            rows = events.rows(np.ones(len(events), dtype=bool))
            known = list(map(results.by_event(), range(len(events))))
            begins = self._test_begins(events, rows, known)
        visits = list(_visits(events, live, begins))
        if not visits:
            return
        if not rows:
            wanted = _visited(visits, len(events))
            rows = events.rows(wanted & results.accepted() if results.complete else wanted)
        process: Callable[[Live, Any, int, Any], list[Match]]
        knowledge: Callable[[int], Any]
        if results.complete:
            process, knowledge = self._matcher.process_with_bitmask, results.bitmasks().__getitem__
        else:
            process, knowledge = self._matcher.process, known.__getitem__ if known else results.by_event()
        following = _next_of(begins)
        scope, matcher = self._results.context.scope, self._matcher
        for visit in visits:
            key, live_before, _, _ = visit
            scope.key = key
            state = self._blank if live_before is None else live_before
            matcher.changed = False
            self._follow(visit, state, events, rows, following, process, knowledge)
            due = self._finish(key, state, until, known=live_before is not None)
            if due is not None:
                yield key, due

    def _test_begins(self, events: Events, rows: list[Any], known: list[dict[int, bool]]) -> np.ndarray:
        """Predicate every event whether it may begin a match; what it answers is known from then on."""
        matcher, found = self._matcher, []
        try:
            for row, time, results in zip(rows, events.times, known, strict=True):
                found.append(matcher.begins(row, time, results))
        except (Exception, SystemExit) as problem:
            key = events.keys[int(np.searchsorted(events.starts, len(found), side="right")) - 1]
            raise rowwise.failure(self._results.context.name, problem, key, rows[len(found)]) from problem
        return np.array(found, dtype=bool)

    def _follow(
        self,
        visit: _Visit,
        live: Live,
        events: Events,
        rows: list[Any],
        following: list[int],
        process: Callable[[Live, Any, int, Any], list[Match]],
        knowledge: Callable[[int], Any],
    ) -> None:
        """Match the events of one key; as long as it has no partial match, only those that may begin one."""
        is_initial, times, matched = self._matcher.is_initial, events.times, self._results.matched
        _, _, place, end = visit
        timed = self._matcher.timed
        try:
            while place < end:
                if is_initial(live):
                    place = following[place]
                    if place >= end:
                        return
                    time = times[place]
                else:
                    time = times[place]
                    if timed:
                        self._advance(live, time)
                for match in process(live, rows[place], time, knowledge(place)):
                    matched(match, time)
                place += 1
        except (Exception, SystemExit) as problem:
            event = events.rows(np.arange(len(events)) == place)[place]
            raise rowwise.failure(self._results.context.name, problem, visit.key, event) from problem

    def _finish(self, key: Any, live: Live, until: int, *, known: bool) -> int | None:
        """Advance the time of a key, store its state unless it is empty, and register its next wake-up."""
        matcher = self._matcher
        if not known and not matcher.changed:
            return None
        try:
            due = self._advance(live, until)
        except (Exception, SystemExit) as problem:
            raise rowwise.failure(self._results.context.name, problem, key) from problem
        if matcher.changed:
            if not known:
                self._blank = matcher.initial()
            if not matcher.is_initial(live):
                self._table.put(self._namespace, key, live)
            elif known:
                self._table.put(self._namespace, key, ABSENT)
        return due

    def _advance(self, live: Live, time: int) -> int | None:
        """Let time pass, stopping wherever a partial match runs out of it; when the next one will."""
        matcher, results = self._matcher, self._results
        while (due := matcher.deadline(live)) is not None and due <= time:
            matches, late = matcher.advance(live, due)
            for match in matches:
                results.matched(match, due)
            for match, end in late:
                results.timed_out(match, end)
        return due


def _visits(events: Events, live: Any, begins: np.ndarray) -> Iterator[_Visit]:
    """What must be matched one by one: all events of a key with state, else from the first that begins a match on."""
    places = np.append(np.flatnonzero(begins), len(events))
    firsts = places[np.searchsorted(places, events.starts)].tolist()
    for key, start, end, first in zip(events.keys, events.starts.tolist(), events.ends.tolist(), firsts, strict=True):
        state = live[key]
        if state is not ABSENT:
            yield _Visit(key, state, start, end)
        elif first < end:
            yield _Visit(key, None, first, end)


def _visited(visits: list[_Visit], count: int) -> np.ndarray:
    """The places of the visits."""
    edges = np.zeros(count + 1, dtype=np.int64)
    edges[[visit.start for visit in visits]] += 1
    edges[[visit.end for visit in visits]] -= 1
    return np.cumsum(edges[:-1]) > 0


def _next_of(marked: np.ndarray) -> list[int]:
    """Return, for each index, the first marked index at or after it; the end if there is none."""
    count = len(marked)
    places = np.where(marked, np.arange(count), count)
    return np.minimum.accumulate(places[::-1])[::-1].tolist()  # type: ignore[no-any-return]

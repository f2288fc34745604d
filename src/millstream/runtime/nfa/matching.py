"""Matches one pattern for all keys: reads a key's state, runs the automaton over its events, passes results on.

Promises: a key without a partial match, none of whose events begins one, costs only the evaluation of its columns; the
state of a key is read and written once in a pass.
Does not know: where events come from, when a pass runs, how results are used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from millstream.runtime import rowwise
from millstream.runtime.nfa.buffer import EventForm
from millstream.runtime.nfa.compile import compile_pattern
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
        """Process a complete match."""

    def timed_out(self, match: Match, time: int) -> None:
        """Process a partial match that timed out."""


class _Visit(NamedTuple):
    """Events of a key that must be matched one by one; `live` is None for a key without state."""

    key: Any
    live: Live | None
    start: int
    end: int


class Matching:
    """A pattern with the partial matches of all keys, in one namespace of a table."""

    def __init__(
        self, results: Results, table: StateTable, plan: PatternPlan, event_type: TypeInformation, namespace: Any = None
    ) -> None:
        self._results, self._table, self._namespace = results, table, namespace
        self._matcher = Matcher(compile_pattern(plan), lambda: results.context.now, EventForm(event_type))
        self._matcher.reports_timeouts = results.wants_timed_out
        self._directly = strict_steps_after_first(plan)
        self._blank = self._matcher.initial()
        self.fingerprint = self._matcher.automaton.fingerprint()

    def reset(self) -> None:
        """Discard changes that a failed attempt may have left."""
        self._blank = self._matcher.initial()

    def run(self, events: Events | None, woken: Iterable[Any], until: int) -> Iterator[tuple[Any, int]]:
        """Match events, and advance the time to `until` for the keys that have events or are woken.

        Yields the keys that must be woken again, and when."""
        live = self._table.reader(self._namespace)
        matched_keys: set[Any] = set()
        if events is not None and len(events):
            matched_keys.update(events.keys)
            yield from self._match(events, live, until)
        for key in woken:
            if key not in matched_keys and (state := live[key]) is not ABSENT:
                self._results.context.scope.key = key
                self._matcher.changed = False
                due = self._finish(key, state, until, is_stored=True)
                if due is not None:
                    yield key, due

    def _match(self, events: Events, live: Any, until: int) -> Iterator[tuple[Any, int]]:
        results = ConditionResults(self._matcher.transitions, events)
        begins = results.begins
        if results.complete and self._directly:
            begins = results.surviving_begins(self._directly, self._matcher.automaton.window)
        rows: list[Any] = []
        known_results: list[dict[int, bool]] = []
        if results.must_test_begins:
            rows = events.rows(np.ones(len(events), dtype=bool))
            known_results = list(map(results.by_event(), range(len(events))))
            begins = self._test_begins(events, rows, known_results)
        visits = list(_visits(events, live, begins))
        if not visits:
            return
        if not rows:
            is_visited = _find_visited(visits, len(events))
            rows = events.rows(is_visited & results.accepted() if results.complete else is_visited)
        process: Callable[[Live, Any, int, Any], list[Match]]
        results_of: Callable[[int], Any]
        if results.complete:
            process, results_of = self._matcher.process_with_bitmask, results.bitmasks().__getitem__
        else:
            process, results_of = (
                self._matcher.process,
                known_results.__getitem__ if known_results else results.by_event(),
            )
        following = _next_of(begins)
        scope, matcher = self._results.context.scope, self._matcher
        for visit in visits:
            key, live_before, _, _ = visit
            scope.key = key
            state = self._blank if live_before is None else live_before
            matcher.changed = False
            self._follow(visit, state, events, rows, following, process, results_of)
            due = self._finish(key, state, until, is_stored=live_before is not None)
            if due is not None:
                yield key, due

    def _test_begins(self, events: Events, rows: list[Any], known: list[dict[int, bool]]) -> np.ndarray:
        """Test whether each event may begin a match; results of predicates are added to `known`."""
        matcher, begins = self._matcher, []
        try:
            for row, time, results in zip(rows, events.times, known, strict=True):
                begins.append(matcher.begins(row, time, results))
        except (Exception, SystemExit) as problem:
            key = events.keys[int(np.searchsorted(events.starts, len(begins), side="right")) - 1]
            raise rowwise.failure(self._results.context.name, problem, key, rows[len(begins)]) from problem
        return np.array(begins, dtype=bool)

    def _follow(
        self,
        visit: _Visit,
        live: Live,
        events: Events,
        rows: list[Any],
        following: list[int],
        process: Callable[[Live, Any, int, Any], list[Match]],
        results_of: Callable[[int], Any],
    ) -> None:
        """Match the events of one key; as long as it has no partial match, only those that may begin one."""
        is_initial, times, matched = self._matcher.is_initial, events.times, self._results.matched
        _, _, index, end = visit
        timed = self._matcher.timed
        try:
            while index < end:
                if is_initial(live):
                    index = following[index]
                    if index >= end:
                        return
                    time = times[index]
                else:
                    time = times[index]
                    if timed:
                        self._advance(live, time)
                for match in process(live, rows[index], time, results_of(index)):
                    matched(match, time)
                index += 1
        except (Exception, SystemExit) as problem:
            event = events.rows(np.arange(len(events)) == index)[index]
            raise rowwise.failure(self._results.context.name, problem, visit.key, event) from problem

    def _finish(self, key: Any, live: Live, until: int, *, is_stored: bool) -> int | None:
        """Advance the time of a key, store its state unless it is empty, and register its next wake-up."""
        matcher = self._matcher
        if not is_stored and not matcher.changed:
            return None
        try:
            due = self._advance(live, until)
        except (Exception, SystemExit) as problem:
            raise rowwise.failure(self._results.context.name, problem, key) from problem
        if matcher.changed:
            if not is_stored:
                self._blank = matcher.initial()
            if not matcher.is_initial(live):
                self._table.put(self._namespace, key, live)
            elif is_stored:
                self._table.put(self._namespace, key, ABSENT)
        return due

    def _advance(self, live: Live, time: int) -> int | None:
        """Advance the time, stopping whenever a partial match times out; return when the next one does."""
        matcher, results = self._matcher, self._results
        while (due := matcher.deadline(live)) is not None and due <= time:
            matches, timed_out = matcher.advance(live, due)
            for match in matches:
                results.matched(match, due)
            for match, end in timed_out:
                results.timed_out(match, end)
        return due


def _visits(events: Events, live: Any, begins: np.ndarray) -> Iterator[_Visit]:
    """Yield the events to match one by one: all of a key with state, else from the first that begins a match."""
    begin_indexes = np.append(np.flatnonzero(begins), len(events))
    firsts = begin_indexes[np.searchsorted(begin_indexes, events.starts)].tolist()
    for key, start, end, first in zip(events.keys, events.starts.tolist(), events.ends.tolist(), firsts, strict=True):
        state = live[key]
        if state is not ABSENT:
            yield _Visit(key, state, start, end)
        elif first < end:
            yield _Visit(key, None, first, end)


def _find_visited(visits: list[_Visit], count: int) -> np.ndarray:
    """Return which events are visited."""
    edges = np.zeros(count + 1, dtype=np.int64)
    edges[[visit.start for visit in visits]] += 1
    edges[[visit.end for visit in visits]] -= 1
    return np.cumsum(edges[:-1]) > 0


def _next_of(marked: np.ndarray) -> list[int]:
    """Return, for each index, the first marked index at or after it; the end if there is none."""
    count = len(marked)
    indexes = np.where(marked, np.arange(count), count)
    return np.minimum.accumulate(indexes[::-1])[::-1].tolist()  # type: ignore[no-any-return]

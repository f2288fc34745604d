"""Evaluates the conditions of a pattern on whole columns of events, before the events are matched.

Promises: a predicate with a column function is evaluated for all events at once. Any other predicate is evaluated for
an event only when the automaton needs it.
Does not know: partial matches, state."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from millstream.runtime.nfa.conditions import Condition, Predicate, combine_results, is_simple
from millstream.runtime.nfa.events import Events
from millstream.runtime.nfa.pattern import Contiguity, PatternPlan, SkipKind
from millstream.runtime.nfa.transitions import Transitions


class ConditionResults:
    """Results of predicates for the events of one pass. `begins` says which events may begin a match, as far as is
    known."""

    def __init__(self, transitions: Transitions, events: Events) -> None:
        self._transitions, self._events = transitions, events
        self._columns = {id(test.function): _evaluate(test, events) for test in transitions.tests}
        unknown = any(column is None for column in self._columns.values())
        self.complete = transitions.event_alone and not unknown  # no predicate is evaluated later
        starting = transitions.starting
        begins = self._any(starting)
        self.must_test_begins = begins is None and all(map(is_simple, starting))
        self.begins: np.ndarray = np.ones(len(events), dtype=bool) if begins is None else begins

    def _any(self, conditions: list[Condition]) -> np.ndarray | None:
        """Return which events satisfy one of the conditions; None if that is not known."""
        satisfied = np.zeros(len(self._events), dtype=bool)
        for condition in conditions:
            result = combine_results(condition, lambda predicate: self._columns[id(predicate.function)])
            if result is None:
                return None
            satisfied |= result
        return satisfied

    def surviving_begins(self, conditions: list[Condition], window: int) -> np.ndarray:
        """Return which events begin a match that does not fail at once: the events directly after it, as far as they
        have arrived and are within the window, satisfy `conditions` one by one. Requires `complete`."""
        events, survives = self._events, self.begins.copy()
        ends = np.repeat(events.ends, events.ends - events.starts)
        times = events.time_column
        first = np.flatnonzero(survives)
        for distance, condition in enumerate(conditions, 1):
            satisfied = self._any([condition])
            assert satisfied is not None
            first = first[first + distance < ends[first]]
            if window:
                first = first[times[first + distance] - times[first] < window]
            satisfies = satisfied[first + distance]
            survives[first[~satisfies]] = False
            first = first[satisfies]
        return survives

    def accepted(self) -> np.ndarray:
        """Return which events some state accepts. Requires `complete`."""
        accepted = self._any(self._transitions.taking)
        assert accepted is not None
        return accepted

    def bitmasks(self) -> list[int]:
        """Return the results of all predicates as one bit mask for each event. Requires `complete`."""
        masks = np.zeros(len(self._events), dtype=np.int64)
        for bit, test in enumerate(self._transitions.tests):
            column = self._columns[id(test.function)]
            assert column is not None
            masks |= column.astype(np.int64) << bit
        return masks.tolist()

    def by_event(self) -> Callable[[int], dict[int, bool]]:
        """Return a function from the index of an event to its known results, to which others are added later."""
        known_columns = {number: column.tolist() for number, column in self._columns.items() if column is not None}
        return lambda index: {number: column[index] for number, column in known_columns.items()}


def strict_steps_after_first(plan: PatternPlan) -> list[Condition]:
    """Return the conditions of the steps that follow the first with strict contiguity.

    Empty if the pattern has groups, quantifiers or another skip strategy: then an unfinished match may matter."""
    steps = plan.steps
    plain = (Contiguity.STRICT, Contiguity.RELAXED)
    if not steps or plan.skip.kind not in (SkipKind.NO_SKIP, SkipKind.SKIP_PAST_LAST_EVENT):
        return []
    for step in steps:
        if step.group or step.times or step.optional or step.within_previous or step.contiguity not in plain:
            return []
    return [step.condition for step in itertools.takewhile(lambda s: s.contiguity is Contiguity.STRICT, steps[1:])]


def _evaluate(predicate: Predicate, events: Events) -> Any:
    return None if predicate.column is None else events.column(predicate.column)

"""What is known of events before they are matched: answers to tests for whole columns, and who may begin a match.

Promises: a test that has a column is answered for all events at once; one that has none is asked for an event only when
the automaton would ask it.
Does not know: partial matches, state."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from millstream.runtime.nfa.conditions import Ask, Condition, combined, is_simple
from millstream.runtime.nfa.events import Events
from millstream.runtime.nfa.pattern import Contiguity, PatternPlan, SkipKind
from millstream.runtime.nfa.transitions import Transitions


class Verdicts:
    """Answers for the events of one pass. `begins` says which of them may begin a match, as far as is known."""

    def __init__(self, transitions: Transitions, events: Events) -> None:
        self._transitions, self._events = transitions, events
        self._columns = {id(test.function): _answers(test, events) for test in transitions.tests}
        unknown = any(column is None for column in self._columns.values())
        self.complete = transitions.event_alone and not unknown  # nothing needs to be asked any more
        starting = transitions.starting
        begins = self._any(starting)
        self.asks_first = begins is None and all(map(is_simple, starting))  # every event is asked whether it begins
        self.begins: np.ndarray = np.ones(len(events), dtype=bool) if begins is None else begins

    def _any(self, conditions: list[Condition]) -> np.ndarray | None:
        """Which events satisfy one of the conditions; None when that is not known."""
        found = np.zeros(len(self._events), dtype=bool)
        for condition in conditions:
            answer = combined(condition, lambda ask: self._columns[id(ask.function)])
            if answer is None:
                return None
            found |= answer
        return found

    def not_in_vain(self, conditions: list[Condition], window: int) -> np.ndarray:
        """Which events begin a match that does not fail at once: those directly after them, as far as they are there
        and in time, satisfy the conditions one by one. Only with `complete`."""
        events, found = self._events, self.begins.copy()
        ends = np.repeat(events.ends, events.ends - events.starts)
        times = events.time_column
        first = np.flatnonzero(found)
        for distance, condition in enumerate(conditions, 1):
            satisfied = self._any([condition])
            assert satisfied is not None
            first = first[first + distance < ends[first]]
            if window:
                first = first[times[first + distance] - times[first] < window]
            here = satisfied[first + distance]
            found[first[~here]] = False
            first = first[here]
        return found

    def taken(self) -> np.ndarray:
        """Which events some state would take; only with `complete`."""
        found = self._any(self._transitions.taking)
        assert found is not None
        return found

    def numbers(self) -> list[int]:
        """The answers to all tests as one number for each event; only with `complete`."""
        numbers = np.zeros(len(self._events), dtype=np.int64)
        for bit, test in enumerate(self._transitions.tests):
            column = self._columns[id(test.function)]
            assert column is not None
            numbers |= column.astype(np.int64) << bit
        return numbers.tolist()

    def of_events(self) -> Callable[[int], dict[int, bool]]:
        """For the event at a place: the answers that are known, to which others will be added."""
        known = {number: column.tolist() for number, column in self._columns.items() if column is not None}
        return lambda place: {number: answers[place] for number, answers in known.items()}


def directly_after_the_first(plan: PatternPlan) -> list[Condition]:
    """The conditions of the steps that follow the first directly, one event each; none where more than the first step
    decides about a partial match: a pattern must be one step after the other, or it may matter that one was begun."""
    steps = plan.steps
    plain = (Contiguity.STRICT, Contiguity.RELAXED)
    if not steps or plan.skip.kind not in (SkipKind.NO_SKIP, SkipKind.SKIP_PAST_LAST_EVENT):
        return []
    for step in steps:
        if step.group or step.times or step.optional or step.within_previous or step.contiguity not in plain:
            return []
    return [step.condition for step in itertools.takewhile(lambda s: s.contiguity is Contiguity.STRICT, steps[1:])]


def _answers(test: Ask, events: Events) -> Any:
    return None if test.column is None else events.column(test.column)

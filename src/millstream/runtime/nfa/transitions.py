"""Which edges an event follows out of a state.

Promises: edges in Flink's order. If the results of all predicates are known, as a bit mask, the choice for a state and
a bit mask is made once and then cached.
Does not know: partial matches, keys, time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.runtime.nfa.compile import Action, Automaton, StateType
from millstream.runtime.nfa.conditions import Condition, KnownResults, Predicate, is_simple, predicates_of

TAKE, IGNORE, PROCEED = (int(action) for action in (Action.TAKE, Action.IGNORE, Action.PROCEED))
NO_STATE = -1
MAX_TESTS = 32
_MAX_CACHED = 1 << 16

Choice = tuple[int, int, int, int]  # action, next state, name, final state if it is reached as well
Choices = tuple[Choice, ...]

# The event is ignored and nothing changes; compared by identity.
IGNORED_UNCHANGED: Choices = ((IGNORE, NO_STATE, NO_STATE, NO_STATE),)


class Transitions:
    """The edges of an automaton. `tests` are all predicates of its conditions, each once."""

    def __init__(self, automaton: Automaton) -> None:
        states = automaton.states
        conditions = [condition for state in states for condition in state.conditions]
        predicates = {id(test.function): test for condition in conditions for test in predicates_of(condition)}
        self.tests: tuple[Predicate, ...] = tuple(predicates.values())
        self.event_alone = all(map(is_simple, conditions)) and len(self.tests) <= MAX_TESTS
        start = states[automaton.start]
        self._start = [(edge[2], c) for edge, c in zip(start.edges, start.conditions, strict=True) if edge[0] != IGNORE]
        self.taking: list[Condition] = [
            c for state in states for edge, c in zip(state.edges, state.conditions, strict=True) if edge[0] == TAKE
        ]
        self._edges = [tuple((int(a), target, check, name) for a, target, check, name in s.edges) for s in states]
        self._final = [state.state_type is StateType.FINAL for state in states]
        self._proceed_edges = [
            tuple((edge[1], edge[2]) for edge in edges if edge[0] == PROCEED) for edges in self._edges
        ]
        self._cached: dict[tuple[int, int], Choices] = {}

    @property
    def starting(self) -> list[Condition]:
        """Conditions of which an event must satisfy one to begin a match."""
        return [condition for _, condition in self._start]

    def begins(self, event: Any, context: KnownResults) -> bool:
        """Whether the event may begin a match: tested first, because most events of most keys do not."""
        return any(check is None or check(event, context) for check, _ in self._start)

    def choose(self, state: int, event: Any, context: KnownResults) -> Choices:
        """Return the edges that an event follows."""
        edges = self._edges
        pending = [state]
        chosen: list[tuple[int, int, int]] = []
        while pending:
            for action, target, check, name in edges[pending.pop()]:
                if check is None or check(event, context):
                    if action == PROCEED:
                        pending.append(target)
                    else:
                        chosen.append((action, target, name))
        if len(chosen) == 1 and chosen[0][0] == IGNORE and chosen[0][1] == state:
            return IGNORED_UNCHANGED
        return tuple(
            (action, target, name, NO_STATE if action == IGNORE else self._end_after(target, event, context))
            for action, target, name in chosen
        )

    def _end_after(self, state: int, event: Any, context: KnownResults) -> int:
        """Return the final state, if it can be reached without another event."""
        if not self._proceed_edges[state]:
            return NO_STATE
        pending = [state]
        while pending:
            for target, check in self._proceed_edges[pending.pop()]:
                if check is None or check(event, context):
                    if self._final[target]:
                        return target
                    pending.append(target)
        return NO_STATE

    def choose_by_results(self, state: int, bitmask: int) -> Choices:
        """Return the edges that an event follows if all results are known: bit n is the result of `tests[n]`."""
        choices = self._cached.get((state, bitmask))
        if choices is None:
            if len(self._cached) >= _MAX_CACHED:
                self._cached.clear()
            results = {id(test.function): bool(bitmask >> bit & 1) for bit, test in enumerate(self.tests)}
            choices = self._cached[state, bitmask] = self.choose(state, None, _AllResults(results))
        return choices


@dataclass(slots=True)
class _AllResults:
    """The context of an event for which the results of all predicates are known."""

    results: dict[int, bool]

"""Which edges an event follows out of a state.

Promises: edges in Flink's order. When the answers to all tests are known, as one number with a bit for each, a choice
is made once for a state and a number, and looked up from then on.
Does not know: partial matches, keys, time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.runtime.nfa.compile import Action, Automaton, Kind
from millstream.runtime.nfa.conditions import Condition, KnownResults, Predicate, is_simple, predicates_of

TAKE, IGNORE, PROCEED = (int(action) for action in (Action.TAKE, Action.IGNORE, Action.PROCEED))
NO_STATE = -1
MAX_TESTS = 32
_MAX_REMEMBERED = 1 << 16

Choice = tuple[int, int, int, int]  # what is done with the event, the state after, the name, the end if reached too
Choices = tuple[Choice, ...]

# The event is ignored and nothing changes; compared by identity.
STAYS: Choices = ((IGNORE, NO_STATE, NO_STATE, NO_STATE),)


class Transitions:
    """The edges of an automaton. `tests` are all tests of its conditions, each once."""

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
        self._final = [state.kind is Kind.FINAL for state in states]
        self._proceeds = [tuple((edge[1], edge[2]) for edge in edges if edge[0] == PROCEED) for edges in self._edges]
        self._remembered: dict[tuple[int, int], Choices] = {}

    @property
    def starting(self) -> list[Condition]:
        """The event may begin a match if one of these holds."""
        return [condition for _, condition in self._start]

    def begins(self, event: Any, context: KnownResults) -> bool:
        """Whether the event may begin a match: tested first, because most events of most keys do not."""
        return any(check is None or check(event, context) for check, _ in self._start)

    def choose(self, state: int, event: Any, context: KnownResults) -> Choices:
        """The edges that an event follows."""
        edges = self._edges
        waiting = [state]
        chosen: list[tuple[int, int, int]] = []
        while waiting:
            for action, target, check, name in edges[waiting.pop()]:
                if check is None or check(event, context):
                    if action == PROCEED:
                        waiting.append(target)
                    else:
                        chosen.append((action, target, name))
        if len(chosen) == 1 and chosen[0][0] == IGNORE and chosen[0][1] == state:
            return STAYS
        return tuple(
            (action, target, name, NO_STATE if action == IGNORE else self._end_after(target, event, context))
            for action, target, name in chosen
        )

    def _end_after(self, state: int, event: Any, context: KnownResults) -> int:
        """The end, when it can be reached without another event."""
        if not self._proceeds[state]:
            return NO_STATE
        waiting = [state]
        while waiting:
            for target, check in self._proceeds[waiting.pop()]:
                if check is None or check(event, context):
                    if self._final[target]:
                        return target
                    waiting.append(target)
        return NO_STATE

    def answered(self, state: int, answers: int) -> Choices:
        """The edges that an event follows for which every test is answered: bit n is the answer to `tests[n]`."""
        found = self._remembered.get((state, answers))
        if found is None:
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            results = {id(test.function): bool(answers >> bit & 1) for bit, test in enumerate(self.tests)}
            found = self._remembered[state, answers] = self.choose(state, None, _Answered(results))
        return found


@dataclass(slots=True)
class _Answered:
    """An event of which every answer is known already."""

    results: dict[int, bool]

"""What an event must satisfy to be taken, as a tree of tests.

Promises: a test of the event alone is asked at most once per event, however many partial matches ask; one that can be
answered for a whole batch of events is not asked event by event.
Does not know: where tests come from: user functions, data or SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from millstream.errors import InternalError
from millstream.runtime.batch import Batch


class Known(Protocol):
    """What is known of the event at hand: the answers that tests of the event alone have given."""

    verdicts: dict[int, bool]


class MatchContext(Known, Protocol):
    """What a test of a partial match may ask."""

    def get_events_for_pattern(self, name: str) -> list[Any]:
        """The events of the partial match that were taken under a name, oldest first."""

    def timestamp(self) -> int:
        """The time of the event at hand."""

    def current_processing_time(self) -> int:
        """The processing time."""


class Paths(Protocol):
    """What tests that are asked together know of the steps of partial matches."""

    def carried(self, test: AskedTogether, node: int) -> Any:
        """What a test carries along the steps up to a node."""


class AskedTogether(ABC):
    """A test of the event and the partial match that many partial matches can ask at once.

    It says what it must know of the events taken before, event by event; what is carried is never changed."""

    @abstractmethod
    def __call__(self, event: Any, context: Any) -> bool:
        """The answer for one partial match."""

    @abstractmethod
    def answers(self, event: Any, paths: Paths, nodes: Sequence[int], now: int) -> list[bool] | None:
        """The answers for the partial matches that stand on nodes; None where each must be asked alone."""

    @abstractmethod
    def nothing(self) -> Any:
        """What is carried before the first event."""

    @abstractmethod
    def of_event(self, name: str, event: Any) -> Any:
        """What there is to know of an event that was taken under a name."""

    @abstractmethod
    def after(self, carried: Any, name: str, values: Any) -> Any:
        """What is carried with one event more."""


class TogetherContext(Known, Protocol):
    """Who asks tests together."""

    def answer(self, test: AskedTogether, event: Any) -> bool:
        """The answer for the partial match at hand."""


Check = Callable[[Any, Known], bool]  # a check that is not simple must be given a MatchContext


class Condition:
    """A test or a combination of tests."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class Ask(Condition):
    """A function of the event, or, when `iterative`, of the event and the partial match.

    `column`, where there is one, gives the same answers for a whole batch, or None for a batch it cannot read."""

    function: Callable[..., Any]
    iterative: bool = False
    column: Callable[[Batch], np.ndarray | None] | None = None


@dataclass(frozen=True, eq=False)
class Always(Condition):
    """Every event."""


@dataclass(frozen=True, eq=False)
class Negation(Condition):
    """The events another condition refuses."""

    of: Condition


@dataclass(frozen=True, eq=False)
class Both(Condition):
    """Events that satisfy two conditions; the second is asked only if the first says yes."""

    one: Condition
    other: Condition


@dataclass(frozen=True, eq=False)
class Either(Condition):
    """Events that satisfy one of two conditions; the second is asked only if the first says no."""

    one: Condition
    other: Condition


ALWAYS = Always()


def negated(condition: Condition) -> Condition:
    """The opposite; two negations are none."""
    return condition.of if isinstance(condition, Negation) else Negation(condition)


def both(one: Condition, other: Condition) -> Condition:
    """One and the other."""
    if isinstance(one, Always):
        return other
    return one if isinstance(other, Always) else Both(one, other)


def is_simple(condition: Condition) -> bool:
    """Whether the answer depends on the event alone."""
    match condition:
        case Ask(iterative=iterative):
            return not iterative
        case Negation(of=of):
            return is_simple(of)
        case Both(one=one, other=other) | Either(one=one, other=other):
            return is_simple(one) and is_simple(other)
    return True


def asked(condition: Condition) -> Iterator[Ask]:
    """The tests in a condition."""
    match condition:
        case Ask():
            yield condition
        case Negation(of=of):
            yield from asked(of)
        case Both(one=one, other=other) | Either(one=one, other=other):
            yield from asked(one)
            yield from asked(other)


def combined(condition: Condition, answers: Callable[[Ask], Any]) -> Any:
    """The answer to a condition from the answers to its tests, one or a column of them; None where one is missing."""
    match condition:
        case Always():
            return np.True_
        case Ask():
            return answers(condition)
        case Negation(of=of):
            answer = combined(of, answers)
            return None if answer is None else ~answer
        case Both(one=one, other=other):
            first, second = combined(one, answers), combined(other, answers)
            return None if first is None or second is None else first & second
        case Either(one=one, other=other):
            first, second = combined(one, answers), combined(other, answers)
            return None if first is None or second is None else first | second
    raise _not_a_condition(condition)


def check_of(condition: Condition) -> Check | None:
    """The condition as one function; None for one that always holds."""
    match condition:
        case Always():
            return None
        case Ask(function=AskedTogether() as test, iterative=True):
            return _asked_together(test)
        case Ask(function=function, iterative=True):
            return lambda event, context: bool(function(event, context))
        case Ask(function=function):
            return _asked_once(function)
        case Negation(of=of):
            inner = check_of(of)
            return _never if inner is None else lambda event, context: not inner(event, context)
        case Both(one=one, other=other):
            first, second = check_of(one), check_of(other)
            if first is None or second is None:
                return second if first is None else first
            return _both(first, second)
        case Either(one=one, other=other):
            first, second = check_of(one), check_of(other)
            if first is None or second is None:
                return None
            return lambda event, context: first(event, context) or second(event, context)
    raise _not_a_condition(condition)


def _not_a_condition(condition: Condition) -> InternalError:
    return InternalError(f"{condition!r} is no condition")


def _asked_once(function: Callable[[Any], Any]) -> Check:
    number = id(function)  # the automaton holds the function, so no other gets its id

    def check(event: Any, context: Known) -> bool:
        verdicts = context.verdicts
        answer = verdicts.get(number)
        if answer is None:
            answer = verdicts[number] = bool(function(event))
        return answer

    return check


def _asked_together(test: AskedTogether) -> Check:
    return lambda event, context: cast("TogetherContext", context).answer(test, event)


def _both(one: Check, other: Check) -> Check:
    return lambda event, context: one(event, context) and other(event, context)


def _never(_event: Any, _context: Known) -> bool:
    return False

"""The condition of a step of a pattern, as a tree of predicates.

Promises: a predicate of the event alone is evaluated at most once per event, for all partial matches; one that can be
evaluated for a whole batch of events is not evaluated event by event.
Does not know: where predicates come from: user functions, data or SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from millstream.errors import InternalError
from millstream.runtime.batch import Batch


class KnownResults(Protocol):
    """The results of predicates of the current event alone, by the id of their function."""

    results: dict[int, bool]


class MatchContext(KnownResults, Protocol):
    """What an iterative predicate can read."""

    def get_events_for_pattern(self, name: str) -> list[Any]:
        """Return the events of the partial match that were accepted under a name, oldest first."""

    def timestamp(self) -> int:
        """Return the time of the current event."""

    def current_processing_time(self) -> int:
        """Return the processing time."""


class Paths(Protocol):
    """Access to the steps of partial matches, for batch predicates."""

    def accumulated(self, predicate: BatchPredicate, node: int) -> Any:
        """Return what a predicate accumulated along the steps up to a node."""


class BatchPredicate(ABC):
    """An iterative predicate that is evaluated for many partial matches at once.

    It accumulates what it needs of the accepted events, event by event. Accumulated values are never modified."""

    @abstractmethod
    def __call__(self, event: Any, context: Any) -> bool:
        """Evaluate the predicate for one partial match."""

    @abstractmethod
    def evaluate_all(self, event: Any, paths: Paths, nodes: Sequence[int], now: int) -> list[bool] | None:
        """Evaluate the predicate for the partial matches at some nodes; None if each must be evaluated alone."""

    @abstractmethod
    def initial(self) -> Any:
        """Return the accumulated value before the first event."""

    @abstractmethod
    def values_of(self, name: str, event: Any) -> Any:
        """Return the values of an event that was accepted under a name."""

    @abstractmethod
    def accumulate(self, accumulated: Any, name: str, values: Any) -> Any:
        """Return the accumulated value with one more event."""


class BatchContext(KnownResults, Protocol):
    """Evaluates batch predicates."""

    def evaluate(self, predicate: BatchPredicate, event: Any) -> bool:
        """Return the result for the current partial match."""


Check = Callable[[Any, KnownResults], bool]  # an iterative condition needs a MatchContext


class Condition:
    """A predicate or a combination of predicates."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class Predicate(Condition):
    """A function of the event or, if `iterative`, of the event and the partial match.

    `column` returns the same results for a whole batch, or None for a batch that it cannot read."""

    function: Callable[..., Any]
    iterative: bool = False
    column: Callable[[Batch], np.ndarray | None] | None = None


@dataclass(frozen=True, eq=False)
class Always(Condition):
    """Satisfied by every event."""


@dataclass(frozen=True, eq=False)
class Negation(Condition):
    """Satisfied by the events that do not satisfy another condition."""

    of: Condition


@dataclass(frozen=True, eq=False)
class Both(Condition):
    """Both conditions; the second is evaluated only if the first is true."""

    one: Condition
    other: Condition


@dataclass(frozen=True, eq=False)
class Either(Condition):
    """One of two conditions; the second is evaluated only if the first is false."""

    one: Condition
    other: Condition


ALWAYS = Always()


def negate(condition: Condition) -> Condition:
    """Negate a condition; two negations cancel each other."""
    return condition.of if isinstance(condition, Negation) else Negation(condition)


def both(one: Condition, other: Condition) -> Condition:
    """Return the conjunction of two conditions."""
    if isinstance(one, Always):
        return other
    return one if isinstance(other, Always) else Both(one, other)


def is_simple(condition: Condition) -> bool:
    """Whether the result depends on the event alone."""
    match condition:
        case Predicate(iterative=iterative):
            return not iterative
        case Negation(of=of):
            return is_simple(of)
        case Both(one=one, other=other) | Either(one=one, other=other):
            return is_simple(one) and is_simple(other)
    return True


def predicates_of(condition: Condition) -> Iterator[Predicate]:
    """Yield the predicates in a condition."""
    match condition:
        case Predicate():
            yield condition
        case Negation(of=of):
            yield from predicates_of(of)
        case Both(one=one, other=other) | Either(one=one, other=other):
            yield from predicates_of(one)
            yield from predicates_of(other)


def combine_results(condition: Condition, results: Callable[[Predicate], Any]) -> Any:
    """Combine the results of predicates, values or columns, into that of a condition; None if one is missing."""
    match condition:
        case Always():
            return np.True_
        case Predicate():
            return results(condition)
        case Negation(of=of):
            result = combine_results(of, results)
            return None if result is None else ~result
        case Both(one=one, other=other):
            first, second = combine_results(one, results), combine_results(other, results)
            return None if first is None or second is None else first & second
        case Either(one=one, other=other):
            first, second = combine_results(one, results), combine_results(other, results)
            return None if first is None or second is None else first | second
    raise _not_a_condition(condition)


def compile_check(condition: Condition) -> Check | None:
    """Return the condition as one function; None if it always holds."""
    match condition:
        case Always():
            return None
        case Predicate(function=BatchPredicate() as test, iterative=True):
            return _evaluate_in_batch(test)
        case Predicate(function=function, iterative=True):
            return lambda event, context: bool(function(event, context))
        case Predicate(function=function):
            return _memoize(function)
        case Negation(of=of):
            inner = compile_check(of)
            return _never if inner is None else lambda event, context: not inner(event, context)
        case Both(one=one, other=other):
            first, second = compile_check(one), compile_check(other)
            if first is None or second is None:
                return second if first is None else first
            return _both(first, second)
        case Either(one=one, other=other):
            first, second = compile_check(one), compile_check(other)
            if first is None or second is None:
                return None
            return lambda event, context: first(event, context) or second(event, context)
    raise _not_a_condition(condition)


def _not_a_condition(condition: Condition) -> InternalError:
    return InternalError(f"{condition!r} is not a condition")


def _memoize(function: Callable[[Any], Any]) -> Check:
    number = id(function)  # the automaton holds the function, so no other gets its id

    def check(event: Any, context: KnownResults) -> bool:
        results = context.results
        result = results.get(number)
        if result is None:
            result = results[number] = bool(function(event))
        return result

    return check


def _evaluate_in_batch(test: BatchPredicate) -> Check:
    return lambda event, context: cast("BatchContext", context).evaluate(test, event)


def _both(one: Check, other: Check) -> Check:
    return lambda event, context: one(event, context) and other(event, context)


def _never(_event: Any, _context: KnownResults) -> bool:
    return False

"""Pattern: how a sequence of events is described.

Promises: Flink's methods in Python spelling; a step that makes no sense is refused by the call that makes it.
Does not know: streams, automata; `plan` is what they are made from."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Any

from millstream.cep import pattern_json
from millstream.cep.conditions import ConditionRegistry, Given, as_given
from millstream.cep.skip import AfterMatchSkipStrategy
from millstream.errors import UserError
from millstream.runtime.nfa.conditions import ALWAYS, Predicate
from millstream.runtime.nfa.pattern import Contiguity, MalformedPatternException, PatternPlan, Step, Times
from millstream.times import Duration, Time, millis

Length = int | Duration | Time | timedelta

GROUP = "GroupPattern"


class WithinType(Enum):
    """What `within` limits: the time of the whole match, or from one event to the next."""

    FIRST_AND_LAST = "FIRST_AND_LAST"
    PREVIOUS_AND_CURRENT = "PREVIOUS_AND_CURRENT"


class Pattern:
    """One step of a pattern, linked to the steps before it. Begin with `Pattern.begin`."""

    def __init__(
        self,
        name: str,
        previous: Pattern | None,
        contiguity: Contiguity,
        skip_strategy: AfterMatchSkipStrategy,
        group: Pattern | None = None,
    ) -> None:
        if not isinstance(name, str) or not name or ":" in name:
            msg = f"{name!r} is no name for a step of a pattern"
            raise MalformedPatternException(msg, hint="give a non-empty string without a colon")
        self._name, self._previous, self._group = name, previous, group
        self._contiguity, self._skip = contiguity, skip_strategy
        self._where: Given | None = None
        self._until: Given | None = None
        self._times: Times | None = None
        self._inner = Contiguity.RELAXED
        self._optional = self._greedy = False
        self._within: dict[WithinType, int] = {}

    # ------------------------------------------------------------------------------------------- one after another

    @staticmethod
    def begin(name: str | Pattern, skip_strategy: AfterMatchSkipStrategy | None = None) -> Pattern:
        """The first step, or a group of steps to begin with."""
        skip: Any = skip_strategy or AfterMatchSkipStrategy.no_skip()
        if not isinstance(skip, AfterMatchSkipStrategy):
            msg = f"{skip!r} is not a skip strategy"
            raise UserError(msg, hint="AfterMatchSkipStrategy.skip_past_last_event()")
        return _step(name, None, Contiguity.STRICT, skip)

    def next(self, name: str | Pattern) -> Pattern:
        """A step whose event comes directly after."""
        return _step(name, self, Contiguity.STRICT, self._skip)

    def followed_by(self, name: str | Pattern) -> Pattern:
        """A step whose event comes later; the first that fits is taken."""
        return _step(name, self, Contiguity.RELAXED, self._skip)

    def followed_by_any(self, name: str | Pattern) -> Pattern:
        """A step whose event comes later; each one that fits makes a match of its own."""
        return _step(name, self, Contiguity.ANY, self._skip)

    def not_next(self, name: str) -> Pattern:
        """What must not come directly after."""
        self._check_no_option_before_not()
        return _step(name, self, Contiguity.NOT_NEXT, self._skip)

    def not_followed_by(self, name: str) -> Pattern:
        """What must not come before the next step, or, at the end, before the time of `within` is over."""
        self._check_no_option_before_not()
        return _step(name, self, Contiguity.NOT_FOLLOWED_BY, self._skip)

    def _check_no_option_before_not(self) -> None:
        if self._optional:
            msg = f"'{self._name}' is optional, and what must not be cannot come after an optional step"
            raise MalformedPatternException(msg, hint="write two patterns, with and without the optional step")

    # ---------------------------------------------------------------------------------------------------- conditions

    def where(self, condition: Any) -> Pattern:
        """The events of this step; another condition is joined by "and"."""
        self._check_not_a_group("where")
        given = as_given(condition)
        self._where = given if self._where is None else self._where.and_(given)
        return self

    def or_(self, condition: Any) -> Pattern:
        """Other events of this step: joined by "or" to the conditions so far."""
        self._check_not_a_group("or_")
        given = as_given(condition)
        self._where = given if self._where is None else self._where.or_(given)
        return self

    def subtype(self, subtype_class: Any) -> Pattern:
        """Only events of a class."""
        self._check_not_a_group("subtype")
        if not isinstance(subtype_class, type):
            msg = f"{subtype_class!r} is not a class"
            raise UserError(msg)
        given = Given(Predicate(lambda event: isinstance(event, subtype_class)))
        self._where = given if self._where is None else self._where.and_(given)
        return self

    def until(self, condition: Any) -> Pattern:
        """What ends a loop: no event is taken from this one on."""
        if self._until is not None:
            msg = f"'{self._name}' has an until condition already"
            raise MalformedPatternException(msg, hint="join both in one condition")
        if self._times is None or self._times.most is not None:
            msg = f"'{self._name}' does not loop, so there is nothing until could end"
            raise MalformedPatternException(msg, hint="call one_or_more() or times_or_more(n) before until")
        self._until = as_given(condition)
        return self

    def within(self, window_time: Length | None, within_type: WithinType | str = WithinType.FIRST_AND_LAST) -> Pattern:
        """How long a match may take in all, or from the event before to the event of this step."""
        if window_time is not None:
            self._within[WithinType(within_type)] = _length(window_time)
        return self

    # -------------------------------------------------------------------------------------------------- how often

    def optional(self) -> Pattern:
        """The step may be left out."""
        if self._previous is not None and self._previous._greedy:
            msg = f"'{self._name}' cannot be optional after the greedy '{self._previous._name}'"
            raise MalformedPatternException(msg)
        if self._optional:
            msg = f"'{self._name}' is optional already"
            raise MalformedPatternException(msg)
        if self._contiguity.is_not:
            msg = f"'{self._name}' says what must not be, and cannot be optional"
            raise MalformedPatternException(msg)
        self._optional = True
        return self

    def one_or_more(self, window_time: Length | None = None) -> Pattern:
        """Once or more often; `window_time` limits the time from one to the next."""
        return self._repeat(1, None, window_time)

    def times_or_more(self, times: int, window_time: Length | None = None) -> Pattern:
        """So many times or more often."""
        return self._repeat(times, None, window_time)

    def times(
        self, from_times: int, to_times: int | Length | None = None, window_time: Length | None = None
    ) -> Pattern:
        """Exactly so many times, or between two numbers of times; from 0 makes the step optional."""
        if window_time is None and to_times is not None and not isinstance(to_times, int):
            to_times, window_time = None, to_times
        if to_times is None:
            return self._repeat(from_times, from_times, window_time)
        if from_times == 0 and to_times == 0:
            msg = f"'{self._name}' would occur from 0 to 0 times"
            raise MalformedPatternException(msg, hint="leave the step out")
        repeated = self._repeat(max(from_times, 1) if from_times == 0 else from_times, to_times, window_time)
        self._optional = self._optional or from_times == 0
        return repeated

    def _repeat(self, least: int, most: Any, window_time: Length | None) -> Pattern:
        if self._contiguity.is_not:
            msg = f"'{self._name}' says what must not be, and cannot occur several times"
            raise MalformedPatternException(msg)
        if self._times is not None or self._optional:
            msg = f"'{self._name}' already says how often it occurs"
            raise MalformedPatternException(msg, hint="call times, one_or_more or times_or_more once, before optional")
        for number in (least, most):
            if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
                msg = f"'{self._name}' cannot occur {number!r} times"
                raise MalformedPatternException(msg, hint="give an int of at least 1")
        if most is not None and most < least:
            msg = f"'{self._name}' cannot occur from {least} to {most} times"
            raise MalformedPatternException(msg, hint="give the smaller number first")
        self._times = Times(least, most, None if window_time is None else _length(window_time))
        return self

    def greedy(self) -> Pattern:
        """Take as many events as can be had, so that only the longest matches are found."""
        if self._contiguity.is_not or self._group is not None:
            what = "a group" if self._group is not None else "a step that must not be"
            msg = f"'{self._name}' is {what}, and cannot be greedy"
            raise MalformedPatternException(msg)
        if self._inner is Contiguity.ANY:
            msg = f"'{self._name}' allows combinations, and cannot be greedy"
            raise MalformedPatternException(msg)
        self._check_repeats("greedy")
        self._greedy = True
        return self

    def consecutive(self) -> Pattern:
        """The events of a repeated step come directly one after another."""
        return self._set_inner(Contiguity.STRICT, "consecutive")

    def allow_combinations(self) -> Pattern:
        """A repeated step may leave out events that fit."""
        return self._set_inner(Contiguity.ANY, "allow_combinations")

    def _set_inner(self, inner: Contiguity, method: str) -> Pattern:
        self._check_repeats(method)
        if self._inner is not Contiguity.RELAXED:
            msg = f"'{self._name}' is {'consecutive' if self._inner is Contiguity.STRICT else 'combining'} already"
            raise MalformedPatternException(msg, hint="call consecutive or allow_combinations, once")
        self._inner = inner
        return self

    def _check_repeats(self, method: str) -> None:
        if self._times is None:
            msg = f"'{self._name}' occurs once, so {method} means nothing"
            raise MalformedPatternException(msg, hint="call times, one_or_more or times_or_more first")

    def _check_not_a_group(self, method: str) -> None:
        if self._group is not None:
            msg = f"a group has no {method}"
            raise MalformedPatternException(msg, hint="give conditions to the steps of the group")

    # -------------------------------------------------------------------------------------------------- what it is

    def get_name(self) -> str:
        """The step's name."""
        return self._name

    def get_previous(self) -> Pattern | None:
        """The step before."""
        return self._previous

    def get_window_size(self, within_type: WithinType = WithinType.FIRST_AND_LAST) -> Duration | None:
        """What `within` was given."""
        found = self._within.get(within_type)
        return None if found is None else Duration.of_millis(found)

    def get_after_match_skip_strategy(self) -> AfterMatchSkipStrategy:
        """The skip strategy the pattern began with."""
        return self._skip

    def steps(self) -> list[Pattern]:
        """All steps, from the first to this one."""
        found: list[Pattern] = []
        step: Pattern | None = self
        while step is not None:
            found.append(step)
            step = step._previous
        return found[::-1]

    def plan(self) -> PatternPlan:
        """The pattern up to this step, as the automaton takes it."""
        return PatternPlan(tuple(step._step() for step in self.steps()), self._skip._skip)

    def _step(self) -> Step:
        return Step(
            name=self._name,
            contiguity=self._contiguity,
            condition=ALWAYS if self._where is None else self._where.condition,
            times=self._times,
            inner=self._inner,
            optional=self._optional,
            greedy=self._greedy,
            until=None if self._until is None else self._until.condition,
            within=self._within.get(WithinType.FIRST_AND_LAST),
            within_previous=self._within.get(WithinType.PREVIOUS_AND_CURRENT),
            group=() if self._group is None else self._group.plan().steps,
        )

    def to_json(self) -> dict[str, Any]:
        """The pattern as plain values; its conditions must be expressions or registered ones."""
        return pattern_json.write(self)

    @staticmethod
    def from_json(data: str | bytes | dict[str, Any], registry: ConditionRegistry | None = None) -> Pattern:
        """The pattern that JSON describes; conditions by name are those of the registry. Nothing is executed."""
        return pattern_json.read(data, registry, Pattern.begin)

    def __repr__(self) -> str:
        return f"Pattern({' > '.join(step._name for step in self.steps())})"


def _step(
    name: str | Pattern, previous: Pattern | None, contiguity: Contiguity, skip: AfterMatchSkipStrategy
) -> Pattern:
    if isinstance(name, Pattern):
        if contiguity.is_not:
            msg = "a group cannot be what must not come"
            raise MalformedPatternException(msg, hint="give a single step")
        return Pattern(GROUP, previous, contiguity, skip, name)
    return Pattern(name, previous, contiguity, skip)


def _length(value: Length) -> int:
    length = millis(value)
    if length < 0:
        msg = f"a pattern cannot be matched within {length} ms"
        raise MalformedPatternException(msg, hint="give a time of zero or more")
    return length

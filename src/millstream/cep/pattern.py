"""Pattern: the description of a sequence of events.

Promises: Flink's methods in Python spelling. A method that makes the pattern invalid raises at once.
Does not know: streams and automata; they are built from the result of `plan`."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Any

from millstream.cep import pattern_json
from millstream.cep.conditions import ConditionRegistry, PatternCondition, to_pattern_condition
from millstream.cep.skip import AfterMatchSkipStrategy
from millstream.errors import UserError
from millstream.runtime.nfa.conditions import ALWAYS, Predicate
from millstream.runtime.nfa.pattern import Contiguity, MalformedPatternException, PatternPlan, Step, Times
from millstream.times import Duration, Time, millis

Length = int | Duration | Time | timedelta

GROUP = "GroupPattern"


class WithinType(Enum):
    """What `within` limits: the time of the whole match, or the time between two consecutive events.

    Example:
        >>> pattern = Pattern.begin("a").followed_by("b").within(60_000, WithinType.PREVIOUS_AND_CURRENT)

    """

    FIRST_AND_LAST = "FIRST_AND_LAST"
    PREVIOUS_AND_CURRENT = "PREVIOUS_AND_CURRENT"


class Pattern:
    """A step of a pattern with the steps before it; start with `Pattern.begin`.

    Methods that configure a step, such as `where` and `times`, change it and return it. Methods that add a step, such
    as `next`, return the new step.

    Example:
        >>> pattern = Pattern.begin("failed").where(lambda event: not event.ok).times(3).consecutive().within(60_000)
        >>> pattern
        Pattern(failed)

    """

    def __init__(
        self,
        name: str,
        previous: Pattern | None,
        contiguity: Contiguity,
        skip_strategy: AfterMatchSkipStrategy,
        group: Pattern | None = None,
    ) -> None:
        if not isinstance(name, str) or not name or ":" in name:
            msg = f"{name!r} is not a valid name of a pattern step"
            raise MalformedPatternException(msg, hint="use a non-empty string without a colon")
        self._name, self._previous, self._group = name, previous, group
        self._contiguity, self._skip_strategy = contiguity, skip_strategy
        self._where: PatternCondition | None = None
        self._until: PatternCondition | None = None
        self._times: Times | None = None
        self._inner_contiguity = Contiguity.RELAXED
        self._optional = self._greedy = False
        self._within: dict[WithinType, int] = {}

    # ------------------------------------------------------------------------------------------------------- steps

    @staticmethod
    def begin(name: str | Pattern, skip_strategy: AfterMatchSkipStrategy | None = None) -> Pattern:
        """Start a pattern.

        Args:
            name: The name of the first step, or a pattern that is a group of steps.
            skip_strategy: Which partial matches are discarded after a match; by default none.

        Returns:
            The first step.

        Raises:
            MalformedPatternException: If the name is not valid.

        """
        skip: Any = skip_strategy or AfterMatchSkipStrategy.no_skip()
        if not isinstance(skip, AfterMatchSkipStrategy):
            msg = f"{skip!r} is not a skip strategy"
            raise UserError(msg, hint="AfterMatchSkipStrategy.skip_past_last_event()")
        return _create_step(name, None, Contiguity.STRICT, skip)

    def next(self, name: str | Pattern) -> Pattern:
        """Add a step with strict contiguity: its event directly follows the event before.

        Args:
            name: The name of the step, or a pattern that is a group of steps.

        """
        return _create_step(name, self, Contiguity.STRICT, self._skip_strategy)

    def followed_by(self, name: str | Pattern) -> Pattern:
        """Add a step with relaxed contiguity: other events can occur in between.

        The first matching event is accepted.

        Args:
            name: The name of the step, or a pattern that is a group of steps.

        """
        return _create_step(name, self, Contiguity.RELAXED, self._skip_strategy)

    def followed_by_any(self, name: str | Pattern) -> Pattern:
        """Add a step with non-deterministic relaxed contiguity: each later matching event makes a match of its own.

        Args:
            name: The name of the step, or a pattern that is a group of steps.

        """
        return _create_step(name, self, Contiguity.ANY, self._skip_strategy)

    def not_next(self, name: str) -> Pattern:
        """Add a negated step: no event that matches it may directly follow the event before.

        Args:
            name: The name of the step, which is unique in the pattern.

        Raises:
            MalformedPatternException: If the step before is optional.

        """
        self._check_no_option_before_not()
        return _create_step(name, self, Contiguity.NOT_NEXT, self._skip_strategy)

    def not_followed_by(self, name: str) -> Pattern:
        """Add a negated step: no event that matches it may occur before the next step.

        At the end of the pattern, no such event may occur before the time of `within` has passed.

        Args:
            name: The name of the step, which is unique in the pattern.

        Raises:
            MalformedPatternException: If the step before is optional.

        """
        self._check_no_option_before_not()
        return _create_step(name, self, Contiguity.NOT_FOLLOWED_BY, self._skip_strategy)

    def _check_no_option_before_not(self) -> None:
        if self._optional:
            msg = f"'{self._name}' is optional, and a negated step cannot follow an optional step"
            raise MalformedPatternException(msg, hint="use two patterns, with and without the optional step")

    # ---------------------------------------------------------------------------------------------------- conditions

    def where(self, condition: Any) -> Pattern:
        """Add a condition that events of this step must satisfy; several conditions are combined with "and".

        Args:
            condition: A function of the event or of the event and the context, a condition object, an expression of
                `field`, or a condition of a `ConditionRegistry`.

        Raises:
            NotACondition: If the value is none of these.

        """
        self._check_not_a_group("where")
        new_condition = to_pattern_condition(condition)
        self._where = new_condition if self._where is None else self._where.and_(new_condition)
        return self

    def or_(self, condition: Any) -> Pattern:
        """Add an alternative to the conditions of this step so far; it is combined with them by "or".

        Args:
            condition: A condition, as for `where`.

        """
        self._check_not_a_group("or_")
        new_condition = to_pattern_condition(condition)
        self._where = new_condition if self._where is None else self._where.or_(new_condition)
        return self

    def subtype(self, subtype_class: Any) -> Pattern:
        """Accept only events that are instances of a class.

        Args:
            subtype_class: The class of the accepted events.

        """
        self._check_not_a_group("subtype")
        if not isinstance(subtype_class, type):
            msg = f"subtype needs a class, not {subtype_class!r}"
            raise UserError(msg)
        new_condition = PatternCondition(Predicate(lambda event: isinstance(event, subtype_class)))
        self._where = new_condition if self._where is None else self._where.and_(new_condition)
        return self

    def until(self, condition: Any) -> Pattern:
        """Set the stop condition of a looping step: no further events are accepted when an event satisfies it.

        Args:
            condition: A condition, as for `where`.

        Raises:
            MalformedPatternException: If the step does not loop, or already has a stop condition.

        """
        if self._until is not None:
            msg = f"'{self._name}' already has an until condition"
            raise MalformedPatternException(msg, hint="combine both in one condition")
        if self._times is None or self._times.most is not None:
            msg = f"'{self._name}' is not a looping step, so it cannot have an until condition"
            raise MalformedPatternException(msg, hint="call one_or_more() or times_or_more(n) before until")
        self._until = to_pattern_condition(condition)
        return self

    def within(self, window_time: Length | None, within_type: WithinType | str = WithinType.FIRST_AND_LAST) -> Pattern:
        """Limit the time of a match. A partial match that takes longer is discarded and times out.

        Args:
            window_time: The time in milliseconds, or as a `Duration`, `Time` or `timedelta`.
            within_type: Whether the limit is for the whole match, or from the event before to the event of this step.

        """
        if window_time is not None:
            self._within[WithinType(within_type)] = _to_millis(window_time)
        return self

    # ------------------------------------------------------------------------------------------------- quantifiers

    def optional(self) -> Pattern:
        """Make the step optional.

        Raises:
            MalformedPatternException: If it is already optional or negated, or follows a greedy step.

        """
        if self._previous is not None and self._previous._greedy:
            msg = f"'{self._name}' cannot be optional after the greedy '{self._previous._name}'"
            raise MalformedPatternException(msg)
        if self._optional:
            msg = f"'{self._name}' is already optional"
            raise MalformedPatternException(msg)
        if self._contiguity.is_not:
            msg = f"'{self._name}' is a negated step and cannot be optional"
            raise MalformedPatternException(msg)
        self._optional = True
        return self

    def one_or_more(self, window_time: Length | None = None) -> Pattern:
        """Let the step occur once or more often.

        Args:
            window_time: The maximum time from one occurrence to the next.

        """
        return self._repeat(1, None, window_time)

    def times_or_more(self, times: int, window_time: Length | None = None) -> Pattern:
        """Let the step occur at least a number of times.

        Args:
            times: The minimum number.
            window_time: The maximum time from one occurrence to the next.

        """
        return self._repeat(times, None, window_time)

    def times(
        self, from_times: int, to_times: int | Length | None = None, window_time: Length | None = None
    ) -> Pattern:
        """Let the step occur an exact number of times, or a number in a range.

        Args:
            from_times: The exact or minimum number; with a maximum, 0 makes the step optional.
            to_times: The maximum number.
            window_time: The maximum time from one occurrence to the next.

        """
        if window_time is None and to_times is not None and not isinstance(to_times, int):
            to_times, window_time = None, to_times
        if to_times is None:
            return self._repeat(from_times, from_times, window_time)
        if from_times == 0 and to_times == 0:
            msg = f"'{self._name}' would occur from 0 to 0 times"
            raise MalformedPatternException(msg, hint="remove the step")
        repeated = self._repeat(max(from_times, 1) if from_times == 0 else from_times, to_times, window_time)
        self._optional = self._optional or from_times == 0
        return repeated

    def _repeat(self, least: int, most: Any, window_time: Length | None) -> Pattern:
        if self._contiguity.is_not:
            msg = f"'{self._name}' is a negated step and cannot occur several times"
            raise MalformedPatternException(msg)
        if self._times is not None or self._optional:
            msg = f"'{self._name}' already has a quantifier"
            raise MalformedPatternException(msg, hint="call times, one_or_more or times_or_more once, before optional")
        for number in (least, most):
            if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
                msg = f"'{self._name}' cannot occur {number!r} times"
                raise MalformedPatternException(msg, hint="give an int of at least 1")
        if most is not None and most < least:
            msg = f"'{self._name}' cannot occur from {least} to {most} times"
            raise MalformedPatternException(msg, hint="give the smaller number first")
        self._times = Times(least, most, None if window_time is None else _to_millis(window_time))
        return self

    def greedy(self) -> Pattern:
        """Let a repeated step accept as many events as possible.

        Raises:
            MalformedPatternException: If the step is not repeated, is a group or negated, or allows combinations.

        """
        if self._contiguity.is_not or self._group is not None:
            step_type = "a group" if self._group is not None else "a negated step"
            msg = f"'{self._name}' is {step_type} and cannot be greedy"
            raise MalformedPatternException(msg)
        if self._inner_contiguity is Contiguity.ANY:
            msg = f"'{self._name}' allows combinations and cannot be greedy"
            raise MalformedPatternException(msg)
        self._check_repeats("greedy")
        self._greedy = True
        return self

    def consecutive(self) -> Pattern:
        """Require strict contiguity between the events of a repeated step."""
        return self._set_inner_contiguity(Contiguity.STRICT, "consecutive")

    def allow_combinations(self) -> Pattern:
        """Use non-deterministic relaxed contiguity in a repeated step: matching events can be skipped."""
        return self._set_inner_contiguity(Contiguity.ANY, "allow_combinations")

    def _set_inner_contiguity(self, inner: Contiguity, method: str) -> Pattern:
        self._check_repeats(method)
        if self._inner_contiguity is not Contiguity.RELAXED:
            called = "consecutive" if self._inner_contiguity is Contiguity.STRICT else "allow_combinations"
            msg = f"{called} was already called on '{self._name}'"
            raise MalformedPatternException(msg, hint="call either consecutive or allow_combinations, once")
        self._inner_contiguity = inner
        return self

    def _check_repeats(self, method: str) -> None:
        if self._times is None:
            msg = f"'{self._name}' occurs once, so {method} has no meaning"
            raise MalformedPatternException(msg, hint="call times, one_or_more or times_or_more first")

    def _check_not_a_group(self, method: str) -> None:
        if self._group is not None:
            msg = f"{method} cannot be called on a group of steps"
            raise MalformedPatternException(msg, hint="add conditions to the steps of the group")

    # -------------------------------------------------------------------------------------------------- properties

    def get_name(self) -> str:
        """Return the name of the step."""
        return self._name

    def get_previous(self) -> Pattern | None:
        """Return the step before; None if this is the first step."""
        return self._previous

    def get_window_size(self, within_type: WithinType = WithinType.FIRST_AND_LAST) -> Duration | None:
        """Return the time that `within` has set; None if it was not called.

        Args:
            within_type: Whether to return the limit between the first and the last event, or between consecutive
                events.

        """
        length = self._within.get(within_type)
        return None if length is None else Duration.of_millis(length)

    def get_after_match_skip_strategy(self) -> AfterMatchSkipStrategy:
        """Return the skip strategy of the pattern."""
        return self._skip_strategy

    def steps(self) -> list[Pattern]:
        """Return all steps from the first to this one."""
        steps: list[Pattern] = []
        step: Pattern | None = self
        while step is not None:
            steps.append(step)
            step = step._previous
        return steps[::-1]

    def plan(self) -> PatternPlan:
        """Return the frozen form of the pattern from which an automaton is compiled."""
        return PatternPlan(tuple(step._to_plan_step() for step in self.steps()), self._skip_strategy._skip)

    def _to_plan_step(self) -> Step:
        return Step(
            name=self._name,
            contiguity=self._contiguity,
            condition=ALWAYS if self._where is None else self._where.condition,
            times=self._times,
            inner=self._inner_contiguity,
            optional=self._optional,
            greedy=self._greedy,
            until=None if self._until is None else self._until.condition,
            within=self._within.get(WithinType.FIRST_AND_LAST),
            within_previous=self._within.get(WithinType.PREVIOUS_AND_CURRENT),
            group=() if self._group is None else self._group.plan().steps,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the pattern as JSON values.

        Raises:
            NotData: If a condition is a Python function that is not registered.

        """
        return pattern_json.write(self)

    @staticmethod
    def from_json(data: str | bytes | dict[str, Any], registry: ConditionRegistry | None = None) -> Pattern:
        """Read a pattern; nothing in it is executed.

        Args:
            data: JSON as text, bytes or values.
            registry: The conditions that the pattern can refer to by name.

        Raises:
            InvalidPatternJson: If the JSON does not describe a pattern.

        """
        return pattern_json.read(data, registry, Pattern.begin)

    def __repr__(self) -> str:
        return f"Pattern({' > '.join(step._name for step in self.steps())})"


def _create_step(
    name: str | Pattern, previous: Pattern | None, contiguity: Contiguity, skip: AfterMatchSkipStrategy
) -> Pattern:
    if isinstance(name, Pattern):
        if contiguity.is_not:
            msg = "a group of steps cannot be negated"
            raise MalformedPatternException(msg, hint="give the name of a single step")
        return Pattern(GROUP, previous, contiguity, skip, name)
    return Pattern(name, previous, contiguity, skip)


def _to_millis(value: Length) -> int:
    length = millis(value)
    if length < 0:
        msg = f"the time of a pattern cannot be negative: {length} ms"
        raise MalformedPatternException(msg, hint="give a time of zero or more")
    return length

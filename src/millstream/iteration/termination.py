"""When an iteration terminates.

Promises: a termination that can never happen, or that is missing, is refused when the program is built.
Does not know: rounds, epochs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.runtime.loops import KINDS, LoopConfig, Until


@dataclass(frozen=True)
class Criterion:
    """Terminates an iteration when an aggregate of the numbers of a stream is small enough in a round.

    Attributes:
        stream: A stream of numbers, computed by the body of the iteration.
        kind: `sum`, `min`, `max` or `count`.
        at_most: The iteration terminates when the aggregate is at most this number.
        name: The name of the aggregate, by which listeners can read it.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> changes = env.from_collection([0.5, 0.25])
        >>> Criterion(changes, kind="max", at_most=0.01).name
        'criterion'

    """

    stream: DataStream[Any]
    kind: str = "sum"
    at_most: float = 0.0
    name: str = "criterion"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            msg = f"'{self.kind}' is not an aggregate"
            raise InvalidArgument(msg, hint=f"use one of {', '.join(KINDS)}")

    def until(self) -> Until:
        """Return what the driver checks after each round."""
        return Until(self.name, self.at_most)


@dataclass(frozen=True)
class Termination:
    """When an iteration terminates. It also terminates after a round without feedback.

    Attributes:
        max_iterations: Terminates after so many rounds.
        when_empty: Confirms that an iteration without `max_iterations` ends because its feedback becomes empty.
        must_converge: The job fails if `max_iterations` is reached without another reason to terminate.
        deadline: The job fails if the iteration has not terminated so many milliseconds after its input has ended.

    Example:
        >>> Termination(max_iterations=20)
        Termination(max_iterations=20, when_empty=False, must_converge=False, deadline=None)

    """

    max_iterations: int | None = None
    when_empty: bool = False
    must_converge: bool = False
    deadline: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_iterations", "deadline"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                msg = f"{name} is {value!r}"
                raise InvalidArgument(msg, hint="use an int of at least 1")

    @classmethod
    def of(cls, value: Termination | int | None) -> Termination:
        """Return a termination; a number stands for a number of rounds.

        Args:
            value: A termination, a number of rounds, or None for the default.

        """
        if isinstance(value, cls):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return cls(max_iterations=value)
        if value is None:
            return cls()
        msg = f"{value!r} is not a termination"
        raise InvalidArgumentType(msg, hint="pass a number of rounds, or a Termination")

    def configure(self, loop: LoopConfig, *, has_criterion: bool) -> LoopConfig:
        """Return a loop that terminates like this; raises if nothing terminates it.

        Args:
            loop: The configuration of the loop so far.
            has_criterion: Whether the body has returned a termination criterion.

        """
        if self.max_iterations is None and not self.when_empty and not has_criterion and self.deadline is None:
            msg = f"iteration '{loop.name}' has no termination"
            raise InvalidArgument(
                msg, hint="set max_iterations or a criterion; if its feedback becomes empty, set when_empty=True"
            )
        return replace(loop, max_rounds=self.max_iterations, must_converge=self.must_converge, deadline=self.deadline)

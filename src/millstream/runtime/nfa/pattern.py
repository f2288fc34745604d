"""A pattern as a frozen value, from which the automaton is compiled.

Promises: a plan has everything that the automaton needs.
Does not know: builders, JSON, SQL text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from millstream.errors import UserError
from millstream.runtime.nfa.conditions import ALWAYS, Condition


class MalformedPatternException(UserError):
    """An invalid pattern."""


class Contiguity(Enum):
    """Which events may lie between a step and the one before."""

    STRICT = "strict"
    RELAXED = "relaxed"
    ANY = "any"
    NOT_NEXT = "not_next"
    NOT_FOLLOWED_BY = "not_followed_by"

    @property
    def is_not(self) -> bool:
        """Whether the step is negated: its event must not occur."""
        return self in (Contiguity.NOT_NEXT, Contiguity.NOT_FOLLOWED_BY)


@dataclass(frozen=True)
class Times:
    """How often a step occurs: `least` to `most` times, None for no limit; with at most `gap` ms between two events."""

    least: int
    most: int | None
    gap: int | None = None


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a pattern: a condition, or a group of steps. Durations are milliseconds."""

    name: str
    contiguity: Contiguity = Contiguity.STRICT
    condition: Condition = ALWAYS
    times: Times | None = None
    inner: Contiguity = Contiguity.RELAXED
    optional: bool = False
    greedy: bool = False
    until: Condition | None = None
    within: int | None = None
    within_previous: int | None = None
    group: tuple[Step, ...] = ()

    @property
    def looping(self) -> bool:
        """Whether it may occur without limit."""
        return self.times is not None and self.times.most is None


class SkipKind(Enum):
    """Where matching continues after a match; Flink's skip strategies."""

    NO_SKIP = "NO_SKIP"
    SKIP_TO_NEXT = "SKIP_TO_NEXT"
    SKIP_PAST_LAST_EVENT = "SKIP_PAST_LAST_EVENT"
    SKIP_TO_FIRST = "SKIP_TO_FIRST"
    SKIP_TO_LAST = "SKIP_TO_LAST"


@dataclass(frozen=True)
class Skip:
    """Which partial matches a match discards; `name` and `strict` are for SKIP_TO_FIRST and SKIP_TO_LAST."""

    kind: SkipKind = SkipKind.NO_SKIP
    name: str | None = None
    strict: bool = False


@dataclass(frozen=True, eq=False)
class PatternPlan:
    """A whole pattern: its steps from first to last, and the skip strategy."""

    steps: tuple[Step, ...]
    skip: Skip = Skip()

"""What the operators of an iteration get for an epoch of their loop, and what they report.

An iteration is a loop in the program: a head emits what the tail of the same slot received in the epoch before. A loop
is bounded or unbounded. In a bounded one, all input belongs to round 0, and every later epoch is one round. In an
unbounded one, feedback and new input are processed together.

Promises: the work of an epoch comes from the logged plan; what is reported is part of the memory of operators, so it is
in every checkpoint.
Does not know: who plans rounds, or what the operators of a loop do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Self

from millstream.runtime.memory import MemoryPart
from millstream.state.handles import Lineage

KINDS = ("sum", "min", "max", "count")


class Phase(Enum):
    """What a loop does in an epoch."""

    READ = "read"  # a bounded loop: all input until its end is round 0
    ROUND = "round"  # the head emits the feedback
    HOLD = "hold"  # the job stops with a savepoint: feedback is kept
    CLOSE = "close"  # the loop terminates: event time comes to its end
    ENDED = "ended"


@dataclass(frozen=True)
class Until:
    """A criterion: the loop terminates when an aggregate of a round is at most, or below, a threshold.

    Attributes:
        aggregate: The name of the aggregate.
        threshold: The number it is compared with.
        inclusive: Whether the loop also terminates when both are equal.

    """

    aggregate: str
    threshold: float
    inclusive: bool = True

    def is_met(self, aggregates: Mapping[str, float]) -> bool:
        """Whether the loop terminates; an aggregate without values does not terminate it."""
        value = aggregates.get(self.aggregate)
        if value is None:
            return False
        return value <= self.threshold if self.inclusive else value < self.threshold


@dataclass(frozen=True)
class LoopConfig:
    """A loop of the program, and when it terminates.

    Attributes:
        name: The name of the loop, unique in the program.
        bounded: Whether all input is round 0.
        max_rounds: The number of rounds after which the loop terminates, None without a limit.
        must_converge: Whether the job fails if `max_rounds` is reached without another reason to terminate.
        until: A criterion that terminates the loop.
        has_criteria: Whether a loop terminates after a round without records of its criteria stream.
        deadline: Milliseconds of processing time after the end of the input, after which the job fails.
        emits_result: Whether the head emits the last feedback to its side output when the loop terminates.
        staleness: An epoch is so many rounds more than one, without an exchange between them.

    """

    name: str
    bounded: bool = True
    max_rounds: int | None = None
    must_converge: bool = False
    until: Until | None = None
    has_criteria: bool = False
    deadline: int | None = None
    emits_result: bool = False
    staleness: int = 0

    def rounds_from(self, first: int) -> int:
        """Return the number of rounds in the epoch that begins with a round."""
        rounds = self.staleness + 1
        return rounds if self.max_rounds is None else max(1, min(rounds, self.max_rounds - first))


@dataclass(frozen=True)
class LoopWork:
    """What one subtask of an operator of a loop does in an epoch: `rounds` rounds, of which the first is `round`.
    `feedback` is the state of the tail, for a head."""

    loop: str
    phase: Phase
    round: int
    ends_round: bool = False
    inputs_ended: bool = False
    aggregates: Mapping[str, float] = field(default_factory=dict)
    feedback: Lineage | None = None
    rounds: int = 1

    @property
    def numbers(self) -> range:
        """The numbers of the rounds."""
        return range(self.round, self.round + self.rounds)

    @property
    def location(self) -> str:
        """Where this is, for messages."""
        rounds = f"round {self.round}" if self.rounds == 1 else f"rounds {self.round} to {self.numbers[-1]}"
        return f"{rounds} of iteration '{self.loop}'"


@dataclass
class LoopProgress(MemoryPart):
    """The progress of a head. `state` is "reading", "running", "closed" or "ended"; `round` is the next round.

    `inputs_ended` says that the feedback of the last input can have arrived; `started` is the processing time of that
    epoch."""

    part_name: ClassVar[str] = "loop"

    state: str = "reading"
    round: int = 0
    inputs_ended: bool = False
    started: int | None = None

    @classmethod
    def redistribute(cls, parts: Sequence[Self], parallelism: int) -> Sequence[Self] | None:
        """Return the same progress for every new subtask: all old ones have the same."""
        return [cls(**vars(parts[0])) for _ in range(parallelism)]

    def advance(self, work: LoopWork, now: int) -> None:
        """Update the progress after an epoch."""
        if work.inputs_ended and self.started is None:
            self.started = now
        self.inputs_ended = work.inputs_ended or self.inputs_ended
        match work.phase:
            case Phase.READ if work.ends_round:
                self.state, self.round = "running", work.rounds
            case Phase.ROUND:
                self.round = work.round + work.rounds
            case Phase.CLOSE:
                self.state = "closed"
            case Phase.ENDED:
                self.state = "ended"


@dataclass
class LoopReport(MemoryPart):
    """What an operator of a loop reports about a round: feedback or criteria records, partial aggregates as
    [type, value] by name, and whether it has timers for which an unbounded loop waits (0 or 1)."""

    part_name: ClassVar[str] = "loop_report"

    feedback: int = 0
    criteria: int = 0
    aggregates: dict[str, list[Any]] = field(default_factory=dict)
    waiting: int = 0

    @classmethod
    def redistribute(cls, parts: Sequence[Self], parallelism: int) -> Sequence[Self] | None:
        """Return the sum of all reports for the first new subtask, and empty reports for the others."""
        merged = cls(
            sum(part.feedback for part in parts),
            sum(part.criteria for part in parts),
            waiting=max(part.waiting for part in parts),
        )
        for name in dict.fromkeys(name for part in parts for name in part.aggregates):
            partials = [part.aggregates[name] for part in parts if name in part.aggregates]
            value = combine(partials[0][0], [partial for _, partial in partials])
            merged.aggregates[name] = [partials[0][0], value]
        return [merged, *(cls() for _ in range(parallelism - 1))]

    def put(self, name: str, kind: str, value: float) -> None:
        """Report a partial aggregate of this round."""
        self.aggregates[name] = [kind, value]


def combine(kind: str, partials: Iterable[float]) -> float:
    """Return an aggregate of partial ones."""
    values = list(partials)
    match kind:
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "count":
            return sum(values)
    return math.fsum(values)


def merge_aggregates(reports: Iterable[LoopReport]) -> dict[str, float]:
    """Return the aggregates of a round from the reports of all subtasks."""
    partials: dict[str, tuple[str, list[float]]] = {}
    for report in reports:
        for name, (kind, value) in report.aggregates.items():
            partials.setdefault(name, (kind, []))[1].append(value)
    return {name: combine(kind, values) for name, (kind, values) in sorted(partials.items())}

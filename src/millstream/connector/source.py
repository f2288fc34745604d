"""The contract of a source: an enumerator on the driver plans ranges, a reader in the task reads them.

Promises: a range is a plain value that is made durable before it is read, and reading the same range of the same split
twice gives the same records. A source that cannot replay must not implement this contract directly.
Does not know: epochs, Spark, watermarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from millstream.types.factory import TypeInformation, Types


class Boundedness(Enum):
    """Whether a source ends by itself."""

    BOUNDED = "bounded"
    CONTINUOUS_UNBOUNDED = "unbounded"


@dataclass(frozen=True, slots=True)
class SplitRange:
    """A part of one split that one epoch reads. `start` and `end` are JSON values of the source's own making."""

    split: str
    start: Any
    end: Any
    records: int | None = None

    def to_json(self) -> list[Any]:
        """The range as a JSON array."""
        return [self.split, self.start, self.end, self.records]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> SplitRange:
        """The inverse of `to_json`."""
        return cls(data[0], data[1], data[2], data[3])


@dataclass(frozen=True, slots=True)
class Budget:
    """How much an epoch may read from one source, and when. `held` splits are ahead of their alignment group."""

    records: int
    bytes: int
    now: int
    held: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Records:
    """Records as a reader hands them over: Python values, or an Arrow array of the source's type.

    `timestamps` are epoch milliseconds, a sequence or a numpy array; None when the source has none."""

    values: Any
    timestamps: Any = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Records that a reader could not read and left out: how many, and those to keep, with their bytes and the reason.

    What is kept goes to the source's side output `DEAD_LETTERS`."""

    count: int = 0
    letters: Sequence[tuple[bytes, str]] = ()


#: The name of the side output of a source or a decoder that keeps what cannot be read.
DEAD_LETTERS = "dead-letters"


@dataclass(frozen=True, slots=True)
class ReaderContext:
    """What a reader may know."""

    subtask: int
    parallelism: int
    block_records: int
    options: dict[str, str] = field(default_factory=dict)


class SplitEnumerator(ABC):
    """Finds splits and plans what to read next. Lives on the driver; its state goes into every checkpoint."""

    @abstractmethod
    def plan(self, budget: Budget) -> list[SplitRange]:
        """The next ranges, at most one per split, not read before; the enumerator's position moves behind them."""

    @abstractmethod
    def snapshot(self) -> Any:
        """The position as a JSON value: what `Source.create_enumerator` takes to go on from here."""

    @abstractmethod
    def finished(self) -> bool:
        """Whether nothing is left and nothing will come."""

    def splits(self) -> list[str]:
        """The splits that may still give records: watermarks wait for these."""
        return []

    def replayed(self, ranges: Sequence[SplitRange]) -> None:
        """Move behind `ranges`, which a logged plan has read already."""
        for done in ranges:
            self.skip(done)

    @abstractmethod
    def skip(self, done: SplitRange) -> None:
        """Move the position of one split behind `done`."""

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange] | None:
        """Plan less than `planned`, which was planned from this position and was too much for an epoch.

        Where `planned` lets splits begin, they must begin. A source whose position says all by itself just plans;
        `plan_from` is for one that learns from ranges where its splits begin. None: `planned` must be read as it is."""
        return None

    def plan_from(self, starts: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan, after the splits of `starts`, which are empty ranges, have become known with their positions."""
        self.replayed(starts)
        ranges = self.plan(budget)
        named = {part.split for part in ranges}
        return [*ranges, *(start for start in starts if start.split not in named)]

    def retain(self, checkpoints: int) -> None:
        """The job keeps so many checkpoints: input that the oldest of them needs must not be forgotten."""

    def acknowledge(self) -> None:
        """A checkpoint holds the current position: input before it may be forgotten."""

    def lag(self) -> int | None:
        """How many records wait to be read, when that is known."""
        return None

    def close(self) -> None:
        """Let go of connections."""


class SourceReader(ABC):
    """Reads ranges. Lives in a task."""

    @abstractmethod
    def read(self, part: SplitRange) -> Iterator[Records]:
        """The records of a range, in order, cut as the reader likes."""

    def take_rejected(self) -> Rejected:
        """What was left out since the last call."""
        return Rejected()

    def close(self) -> None:
        """Let go of connections."""


class Source(ABC):
    """A description of where records come from. Must be picklable."""

    def type_info(self) -> TypeInformation:
        """The type of the records; untyped Python objects unless a source knows better."""
        return Types.PICKLED_BYTE_ARRAY()

    def boundedness(self) -> Boundedness:
        """Whether the source ends by itself."""
        return Boundedness.BOUNDED

    def max_parallelism(self) -> int | None:
        """How many readers can work at once; None for no limit."""
        return None

    def check(self) -> None:
        """Raise a `UserError` for what can be known to be wrong before the job starts."""

    @abstractmethod
    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """A new enumerator, from the beginning or from a snapshot of an earlier one."""

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A new reader."""

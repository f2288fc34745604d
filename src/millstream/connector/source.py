"""The contract of a source: an enumerator on the driver plans ranges, a reader in the task reads them.

Promises: a range is a plain value that is durable before it is read, and reading the same range of the same split
twice returns the same records. A source that cannot replay must not implement this contract directly.
Does not know: epochs, Spark, watermarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from millstream.types.factory import TypeInformation, Types


class Boundedness(Enum):
    """Whether a source ends.

    Example:
        >>> Boundedness.BOUNDED.value
        'bounded'

    """

    BOUNDED = "bounded"
    CONTINUOUS_UNBOUNDED = "unbounded"


@dataclass(frozen=True, slots=True)
class SplitRange:
    """A part of one split that one epoch reads. `start` and `end` are JSON values that the source defines.

    `records` is the expected number of records, None if it is unknown. A range with 0 records only moves the position:
    no task reads it.

    Example:
        >>> part = SplitRange("orders-0", 100, 150, records=50)
        >>> SplitRange.from_json(part.to_json()) == part
        True

    """

    split: str
    start: Any
    end: Any
    records: int | None = None

    def to_json(self) -> list[Any]:
        """Return the range as a JSON array."""
        return [self.split, self.start, self.end, self.records]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> SplitRange:
        """Return the inverse of `to_json`.

        Args:
            data: The JSON array.

        """
        return cls(data[0], data[1], data[2], data[3])


@dataclass(frozen=True, slots=True)
class Budget:
    """How much an epoch may read from one source, and when. `held` splits are ahead of their alignment group.

    Example:
        >>> Budget(records=10_000, bytes=1 << 20, now=0).records
        10000

    """

    records: int
    bytes: int
    now: int
    held: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Records:
    """Records that a reader returns: Python values, or an Arrow array of the source's type.

    `timestamps` are epoch milliseconds, a sequence or a numpy array; None if the source has none.

    Example:
        >>> Records(["tea", "coffee"], timestamps=[1_000, 2_000]).values
        ['tea', 'coffee']

    """

    values: Any
    timestamps: Any = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Invalid records that a reader skipped: their number, and dead letters with their bytes and the reason.

    Dead letters are emitted to the source's side output `DEAD_LETTERS`.

    Example:
        >>> Rejected(1, [(b"{", "not JSON")]).count
        1

    """

    count: int = 0
    letters: Sequence[tuple[bytes, str]] = ()


#: The name of the side output for invalid records of a source or a decoder.
DEAD_LETTERS = "dead-letters"


@dataclass(frozen=True, slots=True)
class ReaderContext:
    """The context of a reader. `job` is the job's id and incarnation; `now` is the processing time at which the reader
    is created.

    Example:
        >>> ReaderContext(subtask=0, parallelism=4, block_records=10_000).subtask
        0

    """

    subtask: int
    parallelism: int
    block_records: int
    options: dict[str, str] = field(default_factory=dict)
    job: str = ""
    now: int = 0


class SplitEnumerator(ABC):
    """Discovers splits and plans what to read next. It runs on the driver; its state is part of every checkpoint.

    Example:
        >>> class Numbers(SplitEnumerator):
        ...     def __init__(self, next_number, end):
        ...         self.next_number, self.end = next_number, end
        ...     def plan(self, budget):
        ...         start = self.next_number
        ...         self.next_number = min(self.end, start + budget.records)
        ...         return [SplitRange("numbers", start, self.next_number)] if start < self.end else []
        ...     def snapshot(self):
        ...         return self.next_number
        ...     def finished(self):
        ...         return self.next_number == self.end
        ...     def skip(self, done):
        ...         self.next_number = done.end
        >>> numbers = Numbers(0, 15)
        >>> [part.end for _ in range(2) for part in numbers.plan(Budget(records=10, bytes=1_000, now=0))]
        [10, 15]

    """

    @abstractmethod
    def plan(self, budget: Budget) -> list[SplitRange]:
        """Return the next ranges, at most one per split, and move the position behind them.

        Args:
            budget: How much the epoch may read.

        """

    @abstractmethod
    def snapshot(self) -> Any:
        """Return the position as a JSON value, from which `Source.create_enumerator` continues."""

    @abstractmethod
    def finished(self) -> bool:
        """Return whether all input was planned and none will follow."""

    def splits(self) -> list[str]:
        """Return the splits that may still have records: watermarks wait for them."""
        return []

    def replayed(self, ranges: Sequence[SplitRange]) -> None:
        """Move the position behind `ranges`, which a logged plan has already read.

        Args:
            ranges: The ranges of the plan.

        """
        for split_range in ranges:
            self.skip(split_range)

    @abstractmethod
    def skip(self, done: SplitRange) -> None:
        """Move the position of one split behind a range.

        Args:
            done: The range.

        """

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange] | None:
        """Plan less than `planned`, which was planned from this position and was too much for an epoch.

        Splits that begin in `planned` must begin. A source whose position is complete just plans again; `plan_from` is
        for a source whose splits are discovered with their starting positions in ranges. None: `planned` must be read
        unchanged.

        Args:
            planned: The ranges that were too much.
            budget: How much the epoch may read.

        """
        return None

    def plan_from(self, starts: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan after registering the splits of `starts`, which are empty ranges, with their positions.

        Args:
            starts: The empty ranges.
            budget: How much the epoch may read.

        """
        self.replayed(starts)
        ranges = self.plan(budget)
        planned_splits = {part.split for part in ranges}
        return [*ranges, *(start for start in starts if start.split not in planned_splits)]

    def notify_arrivals(self, notify: Callable[[], None]) -> None:
        """Call `notify`, from any thread, when there is something to plan after `plan` has returned nothing. A source
        that does not know keeps this method, and is polled.

        Args:
            notify: The function; it takes no arguments.

        """

    def retain(self, checkpoints: int) -> None:
        """Note how many checkpoints the job keeps: input that the oldest of them needs must not be deleted.

        Args:
            checkpoints: The number of checkpoints, at least 1.

        """

    def acknowledge(self) -> None:
        """Note that a checkpoint has the current position: input before it may be deleted."""

    def lag(self) -> int | None:
        """Return how many records are not read yet; None if that is unknown."""
        return None

    def close(self) -> None:
        """Close connections."""


class SourceReader(ABC):
    """Reads ranges, in a task.

    Example:
        >>> class ReadNumbers(SourceReader):
        ...     def read(self, part):
        ...         yield Records(list(range(part.start, part.end)))
        >>> [records.values for records in ReadNumbers().read(SplitRange("numbers", 0, 3))]
        [[0, 1, 2]]

    """

    @abstractmethod
    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the records of a range in order, in batches of any size.

        Args:
            part: The range, as `SplitEnumerator.plan` has returned it.

        """

    def take_rejected(self) -> Rejected:
        """Return the invalid records that were skipped since the last call."""
        return Rejected()

    def close(self) -> None:
        """Close connections."""


class Source(ABC):
    """The description of a source. It must be picklable.

    Example:
        >>> from millstream.datastream.connectors.number_seq import NumberSequenceSource
        >>> source = NumberSequenceSource(1, 3)
        >>> source.boundedness(), source.create_enumerator(1).finished()
        (<Boundedness.BOUNDED: 'bounded'>, False)

    """

    def type_info(self) -> TypeInformation:
        """Return the type of the records; untyped Python objects by default."""
        return Types.PICKLED_BYTE_ARRAY()

    def boundedness(self) -> Boundedness:
        """Return whether the source ends."""
        return Boundedness.BOUNDED

    def max_parallelism(self) -> int | None:
        """Return how many readers can read at once; None for no limit."""
        return None

    def check(self) -> None:
        """Check the source before the job starts; raise a `UserError` for a problem."""

    @abstractmethod
    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator, from the beginning or from the snapshot of an earlier one.

        Args:
            parallelism: The number of subtasks that read.
            state: What `snapshot` of an earlier enumerator has returned; None begins from the start.

        """

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader.

        Args:
            context: The subtask and the job.

        """

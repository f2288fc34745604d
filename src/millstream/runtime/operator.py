"""The operator contract: a frozen spec builds an operator; an operator is batches in, batches out.

Promises: an operator sees its batches, watermarks and end of input in the order of its channel; what it emits goes to
its `Output` at once. It is kept in the worker between epochs, but all that it needs is in state and `memory`.
Does not know: exchanges, Spark, checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.memory import OperatorMemory
from millstream.runtime.metrics import Metrics
from millstream.runtime.random_numbers import RandomNumbers
from millstream.state.backend import OperatorState
from millstream.state.snapshot import StateFiles
from millstream.state.views import Scope
from millstream.types.copies import find_copier
from millstream.types.factory import TypeInformation

if TYPE_CHECKING:
    from millstream.runtime.sorted_input import SortedUnit


class Output(Protocol):
    """Where an operator's results go."""

    def emit(self, batch: Batch) -> None:
        """Emit records to the main output."""

    def emit_side(self, tag: str, batch: Batch) -> None:
        """Emit records to a side output."""

    def emit_watermark(self, watermark: int | None) -> None:
        """Emit a watermark, or None if the operator is idle."""


@dataclass(slots=True)
class OperatorContext:
    """The environment of an operator. `memory` is carried from epoch to epoch. `work` comes from the request of the
    epoch, `result` goes into the report."""

    operator: str
    name: str
    subtask: int
    parallelism: int
    max_parallelism: int
    state: OperatorState
    out: Output
    output_type: TypeInformation
    side_types: Mapping[str, TypeInformation]
    scope: Scope = field(default_factory=Scope)
    memory: OperatorMemory = field(default_factory=OperatorMemory)
    work: Any = None
    result: Any = None
    metrics: Metrics = field(default_factory=Metrics)
    parameters: Mapping[str, str] = field(default_factory=dict)
    cached_files: Mapping[str, str] = field(default_factory=dict)
    epoch: int = 0
    attempt: str = ""
    recovered: int = 0
    restarts: int = 0
    job: str = ""
    storage: str = ""
    block_records: int = 65536
    batch: bool = False
    object_reuse: bool = False
    draws: RandomNumbers = field(default_factory=RandomNumbers)
    files: StateFiles | None = None

    @property
    def now(self) -> int:
        """The processing time of the epoch, from its plan."""
        return self.scope.now

    def copier(self, side_output: str | None = None) -> Callable[[Any], Any] | None:
        """Return the function that copies results of user functions; None if they are passed on as they are."""
        result_type = self.output_type if side_output is None else self.side_types.get(side_output)
        return None if self.object_reuse or result_type is None else find_copier(result_type)

    @property
    def watermark(self) -> int:
        """The last watermark seen; kept across epochs."""
        watermark = self.memory.watermark
        return MIN_WATERMARK if watermark is None else watermark


class OperatorSpec(ABC):
    """What an operator does, as a frozen, picklable value."""

    @abstractmethod
    def build(self, context: OperatorContext) -> Operator:
        """Create the operator. All its state tables are declared here or in its `open`."""


class Operator(ABC):
    """One operator of one subtask. Subclasses process records; watermarks are passed on by default."""

    def __init__(self, context: OperatorContext) -> None:
        self.context = context
        self.out = context.out

    @property
    def watermark(self) -> int:
        """The last watermark seen; kept across epochs."""
        return self.context.watermark

    def open(self) -> None:
        """Open user functions; called once per worker, before the first batch."""

    def initialize(self) -> None:
        """Initialize functions that keep operator state; the state before the epoch is restored."""

    def begin_epoch(self) -> None:
        """Begin an epoch: state is restored, and processing time is set. Fire the timers that are due."""

    def pump(self) -> Iterator[None]:
        """Do the work of an operator without input; yields after every batch."""
        return iter(())

    @abstractmethod
    def on_batch(self, batch: Batch, side: int) -> None:
        """Process records of input `side` (0, or 1 for the second input)."""

    def on_sorted(self, unit: SortedUnit) -> None:
        """Process records of a batch job, sorted by key and time."""
        for batch, side in unit.batches_by_input():
            self.on_batch(batch, side)

    def finish_keys(self) -> None:
        """End the keys since the last call in a batch job: event time passes to its end for them."""
        self.on_watermark(MAX_WATERMARK)

    def on_watermark(self, watermark: int) -> None:
        """Process a watermark and pass it on. An override must call this last."""
        self.context.memory.watermark = watermark
        self.out.emit_watermark(watermark)

    def on_idle(self) -> None:
        """Process that all inputs are idle."""
        self.out.emit_watermark(None)

    def on_active(self) -> None:
        """Process that inputs are active again, without a new watermark: downstream operators must wait for them."""
        self.out.emit_watermark(self.watermark)

    def end_round(self) -> None:
        """Process the end of a round of an iteration, after the last batch and watermark of the epoch."""

    def on_end(self) -> None:
        """Process the end of the input, after the last watermark."""

    def end_epoch(self) -> None:
        """End an epoch, after its last batch and watermark."""

    def snapshot(self) -> None:
        """Take snapshots of functions, after all operators of the chain have ended the epoch."""

    def abandon(self) -> None:
        """Release external resources of a failed epoch."""

    def next_timer(self) -> int | None:
        """Return the processing time at which this operator has work without input; None if there is none."""
        return None

    def transfer_from(self, before: Operator) -> None:
        """Replace `before`, which is still open: resources that are expensive to create, and do not affect results, may
        be transferred from it."""

    def close(self) -> None:
        """Close functions at the end of the job."""

    def dispose(self) -> None:
        """Free resources beside state: the worker drops this subtask."""

"""The operator contract: a frozen spec builds an operator; an operator is batches in, batches out.

Promises: an operator sees its batches, watermarks and end of input in the order of its channel; what it emits goes to
its `Output` at once. Between epochs it lives on in the worker, but all it needs to go on is in state and `memory`.
Does not know: exchanges, Spark, checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.memory import OperatorMemory
from millstream.runtime.metrics import Metrics
from millstream.runtime.random_numbers import RandomNumbers
from millstream.state.backend import OperatorState
from millstream.state.views import Scope
from millstream.types.factory import TypeInformation

if TYPE_CHECKING:
    from millstream.runtime.sorted_input import SortedUnit


class Output(Protocol):
    """Where an operator's results go."""

    def emit(self, batch: Batch) -> None:
        """Records for the main output."""

    def emit_side(self, tag: str, batch: Batch) -> None:
        """Records for a side output."""

    def emit_watermark(self, watermark: int | None) -> None:
        """A watermark, or None when the operator has become idle."""


@dataclass(slots=True)
class OperatorContext:
    """What an operator is given. `memory` is carried from epoch to epoch; `work` is what the epoch's request has for
    the operator, and `result` what the report has from it."""

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
    draws: RandomNumbers = field(default_factory=RandomNumbers)

    @property
    def now(self) -> int:
        """The processing time of the epoch, from its plan."""
        return self.scope.now

    @property
    def watermark(self) -> int:
        """The last watermark seen; kept across epochs."""
        watermark = self.memory.watermark
        return MIN_WATERMARK if watermark is None else watermark


class OperatorSpec(ABC):
    """What an operator does, as a frozen, picklable value."""

    @abstractmethod
    def build(self, context: OperatorContext) -> Operator:
        """The operator. All its state tables are declared here or in its `open`."""


class Operator(ABC):
    """One operator of one subtask. Subclasses say what they do with records; watermarks pass through."""

    def __init__(self, context: OperatorContext) -> None:
        self.context = context
        self.out = context.out

    @property
    def watermark(self) -> int:
        """The last watermark seen; kept across epochs."""
        return self.context.watermark

    def open(self) -> None:
        """Once per worker, before the first batch: user functions are opened here."""

    def initialize(self) -> None:
        """State is at the version before: functions that keep operator state are brought to it."""

    def begin_epoch(self) -> None:
        """State is at the version before, and the epoch's processing time is known: fire what is due."""

    def pump(self) -> Iterator[None]:
        """The work of an operator that has no input; control goes back after every batch."""
        return iter(())

    @abstractmethod
    def on_batch(self, batch: Batch, side: int) -> None:
        """Records of input `side` (0, or 1 for the second input)."""

    def on_sorted(self, unit: SortedUnit) -> None:
        """Records of a batch job that come sorted by key and time."""
        for batch, side in unit.batches_by_input():
            self.on_batch(batch, side)

    def finish_keys(self) -> None:
        """No more will come of the keys seen since the last call: a batch job's time passes to its end for them."""
        self.on_watermark(MAX_WATERMARK)

    def on_watermark(self, watermark: int) -> None:
        """Event time moves on. An override must call this last."""
        self.context.memory.watermark = watermark
        self.out.emit_watermark(watermark)

    def on_idle(self) -> None:
        """All inputs are idle."""
        self.out.emit_watermark(None)

    def on_active(self) -> None:
        """Inputs are no longer idle, though event time has not moved: whoever comes after must wait for them again."""
        self.out.emit_watermark(self.watermark)

    def on_end(self) -> None:
        """The input has ended; the last watermark has been seen."""

    def end_epoch(self) -> None:
        """The last batch and watermark of the epoch have been seen."""

    def snapshot(self) -> None:
        """All operators of the chain have ended the epoch: functions put their fields into operator state."""

    def abandon(self) -> None:
        """The epoch failed: let go of what was begun outside."""

    def next_timer(self) -> int | None:
        """When processing time must have come to for this operator to have work without input."""
        return None

    def take_over(self, before: Operator) -> None:
        """This operator takes the place of `before`, which is still open: what costs time to make and has no part in
        results may be taken from it."""

    def close(self) -> None:
        """The job is over."""

    def dispose(self) -> None:
        """The worker lets this subtask go, at the end of the job or before: free what is no state."""

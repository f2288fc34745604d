"""assign_timestamps_and_watermarks: assigns event time to a stream after its source.

Promises: the watermark is that of the strategy; one generator continues from epoch to epoch.
Does not know: splits; sources have generators of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from millstream.event_time.watermarks import WatermarkStrategy
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.event_time import EventTimeMemory, EventTimeOperator
from millstream.runtime.watermarks import Generator, GeneratorMemory, assign_timestamps


@dataclass(frozen=True)
class TimestampsSpec(OperatorSpec):
    """Timestamps and watermarks by a strategy."""

    strategy: WatermarkStrategy
    periodic: bool = True

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return TimestampsOperator(context, self.strategy, periodic=self.periodic)


@dataclass
class TimestampsMemory(EventTimeMemory):
    """The watermark generator of the subtask, too."""

    part_name: ClassVar[str] = "timestamps"
    unversioned_keys: ClassVar[Mapping[str, str]] = {**EventTimeMemory.unversioned_keys, "generator": "generator"}

    generator: GeneratorMemory | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, with the generator."""
        generator = None if self.generator is None else self.generator.to_json()
        return {**super().to_json(), "generator": generator}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Create the memory from JSON values, with that of the generator."""
        generator = fields.get("generator")
        return cls(**{**fields, "generator": None if generator is None else GeneratorMemory(**generator)})

    @classmethod
    def redistribute(cls, parts: Sequence[Self], parallelism: int) -> Sequence[Self] | None:
        """Return for every new subtask the generator with the least watermark."""
        generators = [part.generator for part in parts if part.generator is not None]
        if not generators:
            return None
        slowest = min(generators, key=lambda generator: generator.greatest)
        active_at = max(part.active_at or 0 for part in parts)
        return [cls(active_at, generator=slowest) for _ in range(parallelism)]


class TimestampsOperator(EventTimeOperator):
    """One generator for the subtask."""

    memory_type = TimestampsMemory

    def __init__(self, context: OperatorContext, strategy: WatermarkStrategy, *, periodic: bool = True) -> None:
        super().__init__(context)
        self._strategy = strategy
        self._periodic = periodic
        self._generator = Generator(strategy, None)

    @property
    def idle_timeout(self) -> int | None:
        """The idle timeout of the strategy."""
        return self._strategy.idle_timeout

    def current_watermark(self) -> int | None:
        """Return the watermark of the generator; None if it is idle."""
        watermark: int | None = rowwise.call_user_code(self.context, self._generator.current, self._periodic)
        return watermark

    def begin_epoch(self) -> None:
        """Continue with the generator of the epoch before."""
        super().begin_epoch()
        self._generator = Generator(self._strategy, self.context.memory.part(TimestampsMemory).generator)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Assign timestamps, and pass them to the generator."""
        stamped = stamp(self.context, self._strategy, batch)
        self._generator.on_batch(stamped, events(self.context))
        self.has_records = True
        self.out.emit(stamped)

    def end_epoch(self) -> None:
        """Remember the generator as it is before it emits the watermark."""
        self.context.memory.part(TimestampsMemory).generator = self._generator.memory()
        super().end_epoch()


def stamp(context: OperatorContext, strategy: WatermarkStrategy, batch: Batch) -> Batch:
    """Return the batch with the timestamps of the strategy."""

    def extract(function: Callable[[Any, Any], int], rows: list[Any], times: list[Any]) -> list[int]:
        pairs = list(zip(rows, times, strict=True))
        timestamps = rowwise.map_rows(context.name, lambda pair: function(*pair), pairs)
        return rowwise.check_integers(context.name, "timestamp assigner", timestamps)

    return assign_timestamps(strategy, batch, extract)


def events(context: OperatorContext) -> Callable[[Any, list[Any], list[Any], Any], None]:
    """Return the loop that passes every record to a custom generator."""

    def show(on_event: Callable[[Any, Any, Any], None], rows: list[Any], times: list[Any], output: Any) -> None:
        pairs = list(zip(rows, times, strict=True))
        rowwise.map_rows(context.name, lambda pair: on_event(pair[0], pair[1], output), pairs)

    return show

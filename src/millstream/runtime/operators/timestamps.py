"""assign_timestamps_and_watermarks: event time given to a stream after its source.

Promises: one watermark at the end of what an epoch brought, from the greatest timestamp so far; upstream watermarks are
replaced, except the last one, which ends the input.
Does not know: splits; sources have generators of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.model.watermarks import MAX_WATERMARK, WatermarkStrategy
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.watermarks import Generator, assign_timestamps


@dataclass(frozen=True)
class TimestampsSpec(OperatorSpec):
    """Timestamps and watermarks by a strategy."""

    strategy: WatermarkStrategy
    periodic: bool = True

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return TimestampsOperator(context, self.strategy, periodic=self.periodic)


class TimestampsOperator(Operator):
    """One generator for the subtask."""

    def __init__(self, context: OperatorContext, strategy: WatermarkStrategy, *, periodic: bool = True) -> None:
        super().__init__(context)
        self._strategy = strategy
        self._periodic = periodic
        self._generator = Generator(strategy, None)
        self._seen = False

    def begin_epoch(self) -> None:
        """Go on from what the last epoch remembered."""
        self._generator = Generator(self._strategy, self.context.memory.get("generator"))
        self._seen = False
        self.context.memory.setdefault("active_at", self.context.now)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Give timestamps, remember the greatest."""
        stamped = stamp(self.context, self._strategy, batch)
        self._generator.on_batch(stamped, events(self.context))
        self._seen = True
        self.out.emit(stamped)

    def on_watermark(self, watermark: int) -> None:
        """Only the last watermark of the input counts."""
        if watermark == MAX_WATERMARK:
            super().on_watermark(watermark)

    def on_idle(self) -> None:
        """Idleness of the input is measured here by the strategy's own timeout."""

    def on_active(self) -> None:
        """As for idleness."""

    def end_epoch(self) -> None:
        """Emit the watermark of what was seen, or say that nothing comes."""
        memory = self.context.memory
        if self._seen:
            memory["active_at"] = self.context.now
        memory["generator"] = self._generator.memory()
        if self.watermark == MAX_WATERMARK:
            return
        current = rowwise.guarded(self.context, self._generator.current, self._periodic)
        timeout = self._strategy.idle_timeout
        idle = current is None or (timeout is not None and self.context.now - memory["active_at"] >= timeout)
        if idle and not memory.get("idle_sent"):
            self.out.emit_watermark(None)
        elif not idle and (current > self.watermark or memory.get("idle_sent")):
            super().on_watermark(max(current, self.watermark))
        memory["idle_sent"] = idle

    def next_timer(self) -> int | None:
        """When this input counts as idle."""
        timeout = self._strategy.idle_timeout
        if timeout is None or self.context.memory.get("idle_sent") or self.watermark == MAX_WATERMARK:
            return None
        return int(self.context.memory["active_at"]) + timeout


def stamp(context: OperatorContext, strategy: WatermarkStrategy, batch: Batch) -> Batch:
    """The batch with the strategy's timestamps."""

    def extract(function: Callable[[Any, Any], int], rows: list[Any], times: list[Any]) -> list[int]:
        pairs = list(zip(rows, times, strict=True))
        found = rowwise.map_rows(context.name, lambda pair: function(*pair), pairs)
        return rowwise.integers(context.name, "timestamp assigner", found)

    return assign_timestamps(strategy, batch, extract)


def events(context: OperatorContext) -> Callable[[Any, list[Any], list[Any], Any], None]:
    """The loop that shows every record to a generator of the user's own."""

    def show(on_event: Callable[[Any, Any, Any], None], rows: list[Any], times: list[Any], output: Any) -> None:
        pairs = list(zip(rows, times, strict=True))
        rowwise.map_rows(context.name, lambda pair: on_event(pair[0], pair[1], output), pairs)

    return show

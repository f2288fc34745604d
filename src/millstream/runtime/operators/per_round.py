"""Operators that live for one round of an iteration.

Promises: in every round the operator begins without state and with a new copy of its functions. When the round ends,
its input ends: event time comes to its end, so windows and timers fire, and functions are closed.
Does not know: rounds, what the operator does."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.loops import LoopWork
from millstream.runtime.memory import OperatorMemory, SubtaskMemory
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec, Output


@dataclass(frozen=True)
class PerRoundSpec(OperatorSpec):
    """An operator that lives for one round."""

    spec: OperatorSpec

    @property
    def key(self) -> Any:
        """The key selection of the operator."""
        return getattr(self.spec, "key", None)

    @property
    def keys(self) -> Any:
        """The key selections of the operator."""
        return getattr(self.spec, "keys", None)

    def copy(self) -> OperatorSpec:
        """Return a copy of the operator's spec, whose functions have not been called. Key selectors are shared."""
        shared = [self.key, *(self.keys or ())]
        return copy.deepcopy(self.spec, {id(selection): selection for selection in shared if selection is not None})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return PerRoundOperator(context, self)


class _RoundOutput:
    """The output of an operator whose event time is that of the round: its watermarks go nowhere."""

    def __init__(self, out: Output) -> None:
        self.out = out

    def emit(self, batch: Batch) -> None:
        self.out.emit(batch)

    def emit_side(self, tag: str, batch: Batch) -> None:
        self.out.emit_side(tag, batch)

    def emit_watermark(self, watermark: int | None) -> None:
        """Drop a watermark of the round."""


class PerRoundOperator(Operator):
    """Passes batches to the operator of the round. Watermarks from outside go past it."""

    def __init__(self, context: OperatorContext, spec: PerRoundSpec) -> None:
        if isinstance(context.out, _RoundOutput):
            context.out = context.out.out
        super().__init__(context)
        context.out = _RoundOutput(self.out)
        self._spec = spec
        self._operator: Operator | None = spec.copy().build(context)

    @contextlib.contextmanager
    def _inside(self) -> Iterator[Operator]:
        """Return the operator of the round; it sees no watermark before the round ends."""
        memory = self.context.memory
        watermark, memory.watermark = memory.watermark, None
        if self._operator is None:
            self._operator = self._spec.copy().build(self.context)
            self._operator.open()
        try:
            yield self._operator
        finally:
            self.context.memory.watermark = watermark

    def open(self) -> None:
        """Open the functions of the first round."""
        with self._inside() as operator:
            operator.open()

    def initialize(self) -> None:
        """Create the operator of a new round, or continue a round that takes several epochs."""
        with self._inside() as operator:
            operator.initialize()

    def begin_epoch(self) -> None:
        """Begin an epoch."""
        with self._inside() as operator:
            operator.begin_epoch()

    def on_batch(self, batch: Batch, side: int) -> None:
        """Process records."""
        with self._inside() as operator:
            operator.on_batch(batch, side)

    def end_round(self) -> None:
        """End the input of the operator when the round ends, and forget everything."""
        work = self.context.work
        if not isinstance(work, LoopWork) or not work.ends_round:
            return
        with self._inside() as operator:
            operator.end_round()
            operator.on_watermark(MAX_WATERMARK)
            operator.on_end()
            operator.end_epoch()
            operator.close()
            operator.dispose()
        self._operator = None
        for table in self.context.state.tables.values():
            for namespace in table.namespaces():
                table.clear_namespace(namespace)
        memory = self.context.memory
        self.context.memory = OperatorMemory(SubtaskMemory(memory.watermark, memory.emitted_watermark, memory.ended))

    def end_epoch(self) -> None:
        """End an epoch in which the round does not end."""
        if self._operator is not None:
            with self._inside() as operator:
                operator.end_epoch()

    def snapshot(self) -> None:
        """Take snapshots of functions, if the round has not ended."""
        if self._operator is not None:
            self._operator.snapshot()

    def abandon(self) -> None:
        """Release what a failed epoch holds."""
        if self._operator is not None:
            self._operator.abandon()

    def next_timer(self) -> int | None:
        """Return the processing time at which the operator has work."""
        return None if self._operator is None else self._operator.next_timer()

    def close(self) -> None:
        """Close functions at the end of the job."""
        if self._operator is not None:
            self._operator.close()

    def dispose(self) -> None:
        """Free resources."""
        if self._operator is not None:
            self._operator.dispose()

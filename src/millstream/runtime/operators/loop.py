"""The operators of an iteration: head, tail, criterion, and inputs that are replayed in every round.

Promises: a head emits the feedback that the tail of its slot received in the epoch before, in its order. Its watermark
never holds back that of other inputs, and comes to its end when the loop terminates.
Does not know: the body of the iteration, who plans rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime import feedback, rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.loops import LoopConfig, LoopProgress, LoopReport, LoopWork, Phase
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.types.factory import TypeInformation

RESULT = "iteration-result"
"""The side output of a head with the feedback of the last round."""

_LAST_BEFORE_END = MAX_WATERMARK - 1


@dataclass(frozen=True)
class HeadSpec(OperatorSpec):
    """The head of the variable stream `index` of a loop."""

    loop: LoopConfig
    index: int
    record_type: TypeInformation

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return HeadOperator(context, self)


@dataclass(frozen=True)
class TailSpec(OperatorSpec):
    """The tail of the variable stream `index` of a loop; its records have the type of the variable stream."""

    loop: LoopConfig
    index: int
    record_type: TypeInformation

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return TailOperator(context, self.record_type, bounded=self.loop.bounded)


@dataclass(frozen=True)
class CriterionSpec(OperatorSpec):
    """Reads the criteria stream of a loop: counts its records, or aggregates its numbers under a name."""

    loop: LoopConfig
    aggregate: str | None = None
    kind: str = "count"

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return CriterionOperator(context, self.aggregate, self.kind)


@dataclass(frozen=True)
class ReplaySpec(OperatorSpec):
    """Keeps a bounded stream, and emits it again in every round of a loop."""

    loop: LoopConfig

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return ReplayOperator(context)


@dataclass(frozen=True)
class HeadWork:
    """The work of a head: that of its loop, and the id of the tail whose feedback it reads."""

    loop: LoopWork
    tail: str


class HeadOperator(Operator):
    """Emits feedback. It has no inputs."""

    def __init__(self, context: OperatorContext, spec: HeadSpec) -> None:
        super().__init__(context)
        self._spec = spec
        self._reader: feedback.FeedbackReader | None = None
        self._tail = ""

    def on_batch(self, batch: Batch, side: int) -> None:
        """A head has no input."""
        raise AssertionError(batch, side)

    def pump(self) -> Iterator[None]:
        """Emit what the plan of the epoch says; yields after every batch."""
        work = self.context.work
        if not isinstance(work, HeadWork):
            return
        if self.watermark < _LAST_BEFORE_END:
            self.on_watermark(_LAST_BEFORE_END)
            yield
        loop = work.loop
        emits_result = loop.phase is Phase.CLOSE and self._spec.loop.emits_result
        if loop.phase is Phase.ROUND or emits_result:
            for data in self._read(work):
                batch = feedback.unpack_chunk(data, self._spec.record_type)
                self.context.metrics.count("records_in", len(batch))
                if emits_result:
                    self.out.emit_side(RESULT, batch)
                else:
                    self.out.emit(batch)
                yield
        if loop.phase is Phase.CLOSE and self.watermark != MAX_WATERMARK:
            self.on_watermark(MAX_WATERMARK)
            yield
        self.context.memory.part(LoopProgress).advance(loop, self.context.now)

    def _read(self, work: HeadWork) -> Iterator[bytes]:
        if self._reader is None or work.tail != self._tail:
            self._reader, self._tail = feedback.FeedbackReader(self.context, work.tail), work.tail
        assert work.loop.feedback is not None
        return self._reader.read(work.loop.feedback)


class TailOperator(Operator):
    """Keeps the records of a round as chunks of its state."""

    def __init__(self, context: OperatorContext, record_type: TypeInformation, *, bounded: bool) -> None:
        super().__init__(context)
        self._record_type = record_type
        self._bounded = bounded
        self._table = feedback.feedback_table(context.state)
        self._chunks: list[bytes] = []
        self._first = 0
        self._records = 0

    def begin_epoch(self) -> None:
        """Clear the feedback that the head emits in this epoch."""
        work = self.context.work
        report = self.context.memory.part(LoopReport)
        self._chunks, self._first, self._records = [], 0, report.feedback
        phase = work.phase if isinstance(work, LoopWork) else Phase.HOLD
        if phase in (Phase.READ, Phase.HOLD):
            self._first = sum(1 for _ in self._table.scan(None))
            return
        for key, _ in list(self._table.scan(None)):
            self._table.delete(None, key)
        self._records = 0

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep the records. The feedback of the epoch in which a bounded iteration terminates is discarded."""
        work = self.context.work
        phase = work.phase if isinstance(work, LoopWork) else Phase.HOLD
        if phase is Phase.ENDED or (self._bounded and phase is Phase.CLOSE):
            self.context.metrics.count("numFeedbackRecordsDiscarded", len(batch))
            return
        if batch.record_type != self._record_type:
            rows = rowwise.conform(self.context.name, self._record_type, batch.rows())
            batch = Batch(self._record_type, rows=rows, timestamps=batch.timestamps)
        self.context.metrics.count("records_in", len(batch))
        self._records += len(batch)
        self._chunks.append(feedback.pack_chunk(batch))

    def end_epoch(self) -> None:
        """Write the chunks into the state, and report their records."""
        self.context.memory.part(LoopReport).feedback = self._records
        context = self.context
        if self._chunks:
            keys = [feedback.chunk_key(self._first + index) for index in range(len(self._chunks))]
            self._table.put_many(None, keys, list(self._chunks))
        if context.state.has_changes:
            version = feedback.version_name(context.operator, context.subtask, context.epoch, context.attempt)
            chunks = self._chunks if not self._first else [data for _, data in sorted(self._table.scan(None))]
            feedback.keep_recent(context.job, context.operator, context.subtask, version, chunks)

    def dispose(self) -> None:
        """Forget the feedback in this process."""
        feedback.forget_recent(self.context.job, self.context.operator, self.context.subtask)


class CriterionOperator(Operator):
    """Counts or aggregates the records of a round."""

    def __init__(self, context: OperatorContext, aggregate: str | None, kind: str) -> None:
        super().__init__(context)
        self._aggregate, self._kind = aggregate, kind
        self._count = 0
        self._values: list[float] = []

    def begin_epoch(self) -> None:
        """Begin a round, or continue to read the first one."""
        work, report = self.context.work, self.context.memory.part(LoopReport)
        continues = isinstance(work, LoopWork) and work.phase in (Phase.READ, Phase.HOLD)
        self._count = report.criteria if continues else 0
        before = report.aggregates.get(self._aggregate or "") if continues else None
        self._values = [] if before is None else [before[1]]

    def on_batch(self, batch: Batch, side: int) -> None:
        """Count the records, or aggregate them."""
        self._count += len(batch)
        if self._aggregate is not None and self._kind != "count":
            self._values.append(self._combine(batch))

    def _combine(self, batch: Batch) -> float:
        numbers = batch.array().to_numpy(zero_copy_only=False) if batch.columnar else np.array(batch.rows(), float)
        match self._kind:
            case "min":
                return float(numbers.min())
            case "max":
                return float(numbers.max())
        return math.fsum(numbers)

    def end_epoch(self) -> None:
        """Report the number of records, or their aggregate."""
        report = self.context.memory.part(LoopReport)
        report.criteria = self._count
        report.aggregates = {}
        if self._aggregate is None:
            return
        if self._kind == "count":
            report.put(self._aggregate, "count", self._count)
        elif self._values:
            value = {"min": min, "max": max}.get(self._kind, math.fsum)(self._values)
            report.put(self._aggregate, self._kind, value)


class ReplayOperator(Operator):
    """Keeps its input as chunks of state, and emits them again when a round begins."""

    def __init__(self, context: OperatorContext) -> None:
        super().__init__(context)
        self._table = feedback.feedback_table(context.state)
        self._next = 0

    def begin_epoch(self) -> None:
        """Emit the records of the first round again."""
        work = self.context.work
        chunks = sorted(self._table.scan(None))
        self._next = len(chunks)
        if isinstance(work, LoopWork) and work.phase is Phase.ROUND:
            for _, data in chunks:
                self.out.emit(feedback.unpack_chunk(data, self.context.output_type))
        elif isinstance(work, LoopWork) and work.phase is Phase.CLOSE and self.watermark != MAX_WATERMARK:
            super().on_watermark(MAX_WATERMARK)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep the records, and emit them."""
        self._table.put(None, feedback.chunk_key(self._next), feedback.pack_chunk(batch))
        self._next += 1
        self.out.emit(batch)

    def end_epoch(self) -> None:
        """Free the kept records when the loop terminates."""
        work = self.context.work
        if isinstance(work, LoopWork) and work.phase is Phase.CLOSE:
            for key, _ in list(self._table.scan(None)):
                self._table.delete(None, key)

    def on_watermark(self, watermark: int) -> None:
        """Hold back the end of event time until the loop terminates."""
        super().on_watermark(min(watermark, _LAST_BEFORE_END))

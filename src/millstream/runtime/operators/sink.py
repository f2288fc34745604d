"""The sink operator: writes records with the writer of a sink, and reports what the writer staged.

Promises: one writer per epoch and attempt; its committables travel with the report. A writer that is a
`CheckpointedFunction` is initialized when it is created, and its snapshot is taken after it has staged its records.
Does not know: commits."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from millstream.connector.sink import Sink, SinkWriter, WriterContext
from millstream.functions.checkpointed import CheckpointedFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.checkpointed import InitializationContext, SnapshotContext
from millstream.runtime.context import StreamingRuntimeContext
from millstream.runtime.memory import MemoryPart
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec


@dataclass(frozen=True)
class SinkSpec(OperatorSpec):
    """A sink."""

    sink: Sink

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return SinkOperator(context, self.sink)


@dataclass
class SinkMemory(MemoryPart):
    """Whether the input is idle: the committer does not wait for the watermark of this subtask."""

    part_name: ClassVar[str] = "sink"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"sink_idle": "idle"}

    idle: bool = False


class SinkOperator(Operator):
    """Stages the records of an epoch."""

    def __init__(self, context: OperatorContext, sink: Sink) -> None:
        super().__init__(context)
        self._sink = sink
        self._writer: SinkWriter | None = None

    def begin_epoch(self) -> None:
        """Abort a writer that a failed attempt left open."""
        with contextlib.suppress(Exception):
            self.abandon()

    def on_batch(self, batch: Batch, side: int) -> None:
        """Pass the records to the writer."""
        if self._writer is None:
            context = self.context
            settings = WriterContext(
                job=context.job,
                sink=context.operator,
                subtask=context.subtask,
                parallelism=context.parallelism,
                epoch=context.epoch,
                attempt=context.attempt,
                now=context.now,
                storage=context.storage,
                recovered=context.recovered,
            )
            self._writer = rowwise.call_user_code(context, self._sink.create_writer, settings)
            if isinstance(self._writer, CheckpointedFunction):
                initialization = InitializationContext(context, StreamingRuntimeContext(context, keyed=False))
                rowwise.call_user_code(context, self._writer.initialize_state, initialization)
        writer = self._writer
        if not writer.reads:
            return
        if writer.columnar and batch.columnar:
            rowwise.call_user_code(self.context, writer.write, batch.array(), batch.timestamps)
        else:
            times = None if batch.timestamps is None else batch.times()
            rowwise.call_user_code(self.context, writer.write, batch.rows(), times)

    def abandon(self) -> None:
        """Abort what the writer staged."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abort()
            writer.close()

    def on_watermark(self, watermark: int) -> None:
        """Remember the watermark for the committer; there is no operator after a sink."""
        self.context.memory.watermark = watermark
        self.context.memory.part(SinkMemory).idle = False

    def on_idle(self) -> None:
        """Remember that this subtask is idle, so that the committer does not wait for its watermark."""
        self.context.memory.part(SinkMemory).idle = True

    def on_active(self) -> None:
        """Remember that the committer must wait for the watermark of this subtask again."""
        self.context.memory.part(SinkMemory).idle = False

    def end_epoch(self) -> None:
        """Stage what was written; the report carries the committables."""
        if self._writer is not None:
            writer = self._writer  # `abandon` can still abort it until it is closed
            staged = rowwise.call_user_code(self.context, writer.prepare_commit)
            if isinstance(writer, CheckpointedFunction):
                rowwise.call_user_code(self.context, writer.snapshot_state, SnapshotContext(self.context))
            if staged:
                self.context.result = staged
            rowwise.call_user_code(self.context, writer.close)
            self._writer = None

"""The head of every pipeline: reads the ranges that the plan names.

Promises: the same ranges give the same records; each split has its own watermark generator, and the subtask's watermark
is the least over its splits that are neither idle nor at their end.
Does not know: how ranges were planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.connector.source import DEAD_LETTERS, ReaderContext, Records, Source, SourceReader, SplitRange
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK, WatermarkStrategy
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch, timestamps_of
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.timestamps import events, stamp
from millstream.runtime.watermarks import Generator
from millstream.types.row import Row


@dataclass(frozen=True)
class SourceSpec(OperatorSpec):
    """A source and the watermark strategy of its splits."""

    source: Source
    strategy: WatermarkStrategy
    periodic: bool = True

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return SourceOperator(context, self.source, self.strategy, periodic=self.periodic)


class SourceOperator(Operator):
    """Reads ranges and makes watermarks per split."""

    def __init__(
        self, context: OperatorContext, source: Source, strategy: WatermarkStrategy, *, periodic: bool = True
    ) -> None:
        super().__init__(context)
        self._periodic = periodic
        self._source = source
        self._strategy = strategy
        self._reader: SourceReader | None = None

    def open(self) -> None:
        """Make the reader, unless there is one."""
        if self._reader is not None:
            return
        settings = ReaderContext(self.context.subtask, self.context.parallelism, self.context.block_records)
        self._reader = rowwise.guarded(self.context, self._source.create_reader, settings)

    def on_batch(self, batch: Batch, side: int) -> None:
        """A source has no input."""
        raise AssertionError(batch, side)

    def pump(self) -> Iterator[None]:
        """Read the epoch's ranges; control goes back after every batch, so that memory stays bounded."""
        work = self.context.memory.get("work") or {}
        splits: dict[str, Any] = self.context.memory.setdefault("splits", {})
        for data in work.get("ranges", ()):
            part = SplitRange.from_json(data)
            known = splits.setdefault(part.split, {"generator": None, "active_at": self.context.now})
            generator = Generator(self._strategy, known["generator"])
            assert self._reader is not None
            records = iter(self._reader.read(part))
            while True:
                read = rowwise.guarded(self.context, next, records, None)
                self._reject()
                if read is None:
                    break
                batch = stamp(self.context, self._strategy, self._batch(read))
                self.context.metrics.count("records_in", len(batch))
                generator.on_batch(batch, events(self.context))
                self.out.emit(batch)
                yield
            known["active_at"] = self.context.now
            known["watermark"] = rowwise.guarded(self.context, generator.current, self._periodic)
            known["generator"] = generator.memory()
        self._advance(work, splits)
        yield

    def _reject(self) -> None:
        """Count what the reader left out; what it kept goes to the side output, if somebody listens."""
        assert self._reader is not None
        rejected = self._reader.take_rejected()
        if rejected.count:
            self.context.metrics.count("numRecordsSkipped", rejected.count)
        kind = self.context.side_types.get(DEAD_LETTERS)
        if rejected.letters and kind is not None:
            rows = [Row(data=data, reason=reason) for data, reason in rejected.letters]
            self.out.emit_side(DEAD_LETTERS, Batch(kind, rows=rows))

    def _batch(self, read: Records) -> Batch:
        kind = self._source.type_info()
        times = timestamps_of(read.timestamps)
        if isinstance(read.values, pa.Array):
            return Batch(kind, array=read.values, timestamps=times)
        return Batch(kind, rows=rowwise.conform(self.context.name, kind, list(read.values)), timestamps=times)

    def _advance(self, work: dict[str, Any], splits: dict[str, Any]) -> None:
        memory = self.context.memory
        if work.get("end"):
            if self.watermark != MAX_WATERMARK:
                self.on_watermark(MAX_WATERMARK)
            return
        now, timeout = self.context.now, self._strategy.idle_timeout
        waiting: list[int] = []
        for split in work.get("splits", ()):
            known = splits.setdefault(split, {"generator": None, "active_at": now})
            silent = timeout is not None and now - known["active_at"] >= timeout
            if not silent and known.get("watermark", MIN_WATERMARK) is not None:
                waiting.append(known.get("watermark", MIN_WATERMARK))
        memory["splits"] = {split: splits[split] for split in work.get("splits", ())}  # those at their end are over
        idle = not waiting
        if idle and not memory.get("idle_sent"):
            self.on_idle()
        elif not idle and (min(waiting) > self.watermark or memory.get("idle_sent")):
            self.on_watermark(max(min(waiting), self.watermark))
        memory["idle_sent"] = idle

    def next_timer(self) -> int | None:
        """When the next split counts as idle."""
        timeout = self._strategy.idle_timeout
        work = self.context.memory.get("work") or {}
        if timeout is None or work.get("end"):
            return None
        splits = self.context.memory.get("splits", {})
        due = [splits[name]["active_at"] + timeout for name in work.get("splits", ()) if name in splits]
        return min((at for at in due if at > self.context.now), default=None)

    def take_over(self, before: Operator) -> None:
        """Go on with the reader: the same ranges give the same records, whatever it has read before."""
        assert isinstance(before, SourceOperator)
        self._reader, before._reader = before._reader, None

    def close(self) -> None:
        """Close the reader."""
        reader, self._reader = self._reader, None
        if reader is not None:
            rowwise.guarded(self.context, reader.close)

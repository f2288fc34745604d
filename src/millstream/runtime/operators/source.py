"""The source operator: reads the split ranges of the epoch plan.

Promises: the same ranges give the same records; each split has its own watermark generator, and the subtask's watermark
is the least over its splits that are neither idle nor at their end.
Does not know: how ranges were planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import pyarrow as pa

from millstream.connector.source import DEAD_LETTERS, ReaderContext, Records, Source, SourceReader, SplitRange
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK, WatermarkStrategy
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch, timestamps_of
from millstream.runtime.memory import MemoryPart
from millstream.runtime.metrics import MOST_SAMPLES
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.timestamps import events, stamp
from millstream.runtime.watermarks import Generator, GeneratorMemory
from millstream.types.row import Row


@dataclass(frozen=True)
class SourceSpec(OperatorSpec):
    """A source and the watermark strategy of its splits."""

    source: Source
    strategy: WatermarkStrategy
    periodic: bool = True

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return SourceOperator(context, self.source, self.strategy, periodic=self.periodic)


@dataclass(frozen=True)
class SourceWork:
    """What one subtask of a source does in one epoch. `ranges` are JSON forms of `SplitRange`; `splits` are those that
    the watermark waits for; with `end` the input ends."""

    ranges: Sequence[Sequence[Any]] = ()
    splits: Sequence[str] = ()
    end: bool = False


@dataclass(slots=True)
class SplitMemory:
    """What a source remembers of one split: when it was read last, its watermark (None if it is idle), its watermark
    generator."""

    active_at: int
    watermark: int | None = MIN_WATERMARK
    generator: GeneratorMemory | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        generator = None if self.generator is None else self.generator.to_json()
        return {"active_at": self.active_at, "watermark": self.watermark, "generator": generator}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SplitMemory:
        """Return the inverse of `to_json`."""
        generator = data.get("generator")
        return cls(
            data["active_at"],
            data.get("watermark", MIN_WATERMARK),
            None if generator is None else GeneratorMemory(**generator),
        )


@dataclass
class SourceMemory(MemoryPart):
    """The splits that a subtask reads, and whether it has emitted that it is idle."""

    part_name: ClassVar[str] = "source"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"splits": "splits", "idle_sent": "idle_sent"}

    splits: dict[str, SplitMemory] = field(default_factory=dict)
    idle_sent: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        splits = {name: split.to_json() for name, split in self.splits.items()}
        return {"version": self.version, "splits": splits, "idle_sent": self.idle_sent}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Create the memory of each split."""
        splits = {name: SplitMemory.from_json(data) for name, data in fields.get("splits", {}).items()}
        return cls(splits, fields.get("idle_sent", False))

    @classmethod
    def redistribute(cls, parts: Sequence[Self], parallelism: int) -> Sequence[Self] | None:
        """Distribute the splits to the new subtasks: each split is remembered by the subtask that will read it."""
        splits = {name: split for part in parts for name, split in part.splits.items()}
        names = sorted(splits)
        return [cls({name: splits[name] for name in names[subtask::parallelism]}) for subtask in range(parallelism)]

    def reset_event_time(self) -> None:
        """Forget that idleness was emitted, so that it is emitted again."""
        self.idle_sent = False


class SourceOperator(Operator):
    """Reads ranges and generates watermarks per split."""

    def __init__(
        self, context: OperatorContext, source: Source, strategy: WatermarkStrategy, *, periodic: bool = True
    ) -> None:
        super().__init__(context)
        self._periodic = periodic
        self._source = source
        self._strategy = strategy
        self._reader: SourceReader | None = None

    def open(self) -> None:
        """Create the reader, unless there is one."""
        if self._reader is not None:
            return
        context = self.context
        settings = ReaderContext(
            context.subtask, context.parallelism, context.block_records, job=context.job, now=context.now
        )
        self._reader = rowwise.call_user_code(self.context, self._source.create_reader, settings)

    def on_batch(self, batch: Batch, side: int) -> None:
        """A source has no input."""
        raise AssertionError(batch, side)

    def pump(self) -> Iterator[None]:
        """Read the ranges of the epoch; yields after every batch, so that memory stays bounded."""
        work = self._work()
        memory = self.context.memory.part(SourceMemory)
        for data in work.ranges:
            part = SplitRange.from_json(data)
            split = memory.splits.setdefault(part.split, SplitMemory(self.context.now))
            generator = Generator(self._strategy, split.generator)
            assert self._reader is not None
            records = iter(self._reader.read(part))
            while True:
                records_read = rowwise.call_user_code(self.context, next, records, None)
                self._reject()
                if records_read is None:
                    break
                batch = stamp(self.context, self._strategy, self._batch(records_read))
                self.context.metrics.count("records_in", len(batch))
                generator.on_batch(batch, events(self.context))
                self.out.emit(batch)
                yield
            split.active_at = self.context.now
            split.watermark = rowwise.call_user_code(self.context, generator.current, self._periodic)
            split.generator = generator.memory()
        self._advance(work, memory)
        yield

    def _work(self) -> SourceWork:
        work: SourceWork | None = self.context.work
        return work or SourceWork()

    def _reject(self) -> None:
        """Count records that the reader skipped; dead letters go to the side output, if the program reads it."""
        assert self._reader is not None
        rejected = self._reader.take_rejected()
        if rejected.count:
            self.context.metrics.count("numRecordsSkipped", rejected.count)
        for data, reason in rejected.letters[:MOST_SAMPLES]:
            self.context.metrics.sample(f"not decoded: {reason}", data)
        letter_type = self.context.side_types.get(DEAD_LETTERS)
        if rejected.letters and letter_type is not None:
            rows = [Row(data=data, reason=reason) for data, reason in rejected.letters]
            self.out.emit_side(DEAD_LETTERS, Batch(letter_type, rows=rows))

    def _batch(self, records_read: Records) -> Batch:
        record_type = self._source.type_info()
        times = timestamps_of(records_read.timestamps)
        if isinstance(records_read.values, pa.Array):
            return Batch(record_type, array=records_read.values, timestamps=times)
        rows = rowwise.conform_records(self.context.name, record_type, list(records_read.values))
        return Batch(record_type, rows=rows, timestamps=times)

    def _advance(self, work: SourceWork, memory: SourceMemory) -> None:
        if work.end:
            if self.watermark != MAX_WATERMARK:
                self.on_watermark(MAX_WATERMARK)
            return
        now, timeout = self.context.now, self._strategy.idle_timeout
        watermarks: list[int] = []
        splits = {name: memory.splits.get(name) or SplitMemory(now) for name in work.splits}
        for split in splits.values():
            timed_out = timeout is not None and now - split.active_at >= timeout
            if not timed_out and split.watermark is not None:
                watermarks.append(split.watermark)
        memory.splits = splits  # without those that ended
        is_idle = not watermarks
        if is_idle and not memory.idle_sent:
            self.on_idle()
        elif not is_idle and (min(watermarks) > self.watermark or memory.idle_sent):
            self.on_watermark(max(min(watermarks), self.watermark))
        memory.idle_sent = is_idle

    def next_timer(self) -> int | None:
        """Return when the next split becomes idle."""
        timeout = self._strategy.idle_timeout
        work = self._work()
        if timeout is None or work.end:
            return None
        splits = self.context.memory.part(SourceMemory).splits
        due = [splits[name].active_at + timeout for name in work.splits if name in splits]
        return min((at for at in due if at > self.context.now), default=None)

    def transfer_from(self, before: Operator) -> None:
        """Take over the reader of `before`: the same ranges give the same records, whatever the reader has read
        before."""
        assert isinstance(before, SourceOperator)
        self._reader, before._reader = before._reader, None

    def close(self) -> None:
        """Close the reader."""
        reader, self._reader = self._reader, None
        if reader is not None:
            rowwise.call_user_code(self.context, reader.close)

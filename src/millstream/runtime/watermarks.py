"""Watermarks: generated from timestamps, and combined over input channels.

Promises: an operator's watermark is the least over its channels that are not idle, and never goes back.
Does not know: where channels come from, or when to emit."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from millstream.event_time.watermarks import (
    MIN_WATERMARK,
    BoundedOutOfOrderness,
    FieldTimestampAssigner,
    Watermark,
    WatermarkOutput,
    WatermarkStrategy,
)
from millstream.runtime.batch import Batch
from millstream.runtime.memory import MemoryPart
from millstream.serialization import codec


@dataclass
class InputChannels(MemoryPart):
    """The last watermark of each input channel, in checkpoints of release 0.1 and some later ones.

    It is not restored, and no longer written: the watermark of a channel is what its upstream subtask emitted last."""

    part_name: ClassVar[str] = "input_channels"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"channels": "watermarks", "idle": "idle"}

    watermarks: dict[str, int | None] = field(default_factory=dict)
    idle: bool = False

    def reset_event_time(self) -> None:
        """Remove the watermarks of all channels."""
        self.watermarks, self.idle = {}, False


@dataclass(frozen=True)
class SentWatermarks:
    """The last watermark that each subtask of a vertex has sent on an edge, as of the last epoch.

    It is small, because every subtask at the other end of the edge gets it with every request: one value if they are
    all equal, as behind an exchange by key."""

    subtasks: int
    values: bytes
    idle: tuple[int, ...] = ()

    @classmethod
    def of(cls, watermarks: Sequence[int | None]) -> SentWatermarks:
        """Pack watermarks in the order of the subtasks; None is that of an idle one."""
        idle = tuple(subtask for subtask, watermark in enumerate(watermarks) if watermark is None)
        values = [MIN_WATERMARK if watermark is None else watermark for watermark in watermarks]
        return cls(len(values), array("q", values[:1] if len(set(values)) == 1 else values).tobytes(), idle)

    def unpack(self) -> list[int | None]:
        """Return the inverse of `of`."""
        values: list[Any] = array("q", self.values).tolist()
        if len(values) == 1:
            values *= self.subtasks
        for subtask in self.idle:
            values[subtask] = None
        return values


Channel = tuple[int, int]  # edge and upstream subtask


def channel_watermarks(
    channels: Iterable[Channel], sent: Mapping[int, SentWatermarks], watermark: int
) -> dict[Channel, int | None]:
    """Return the watermark of each channel; that of the operator, if the upstream subtask has sent none yet."""
    by_edge = {edge: edge_watermarks.unpack() for edge, edge_watermarks in sent.items()}
    watermarks: dict[Channel, int | None] = {}
    for edge, upstream in channels:
        last = by_edge[edge][upstream] if edge in by_edge else MIN_WATERMARK
        watermarks[edge, upstream] = watermark if last == MIN_WATERMARK else last
    return watermarks


class CombinedWatermark:
    """The watermark of an operator over its input channels: the least of those that are not idle."""

    def __init__(self, channels: dict[Channel, int | None], watermark: int) -> None:
        self._channels = channels
        self.watermark = watermark
        self._find_least()
        self.idle = bool(channels) and self._least is None

    def _find_least(self) -> None:
        """Find the least watermark of the active channels, and how many channels have it."""
        active = [watermark for watermark in self._channels.values() if watermark is not None]
        self._least = min(active, default=None)
        self._count = active.count(self._least) if self._least is not None else 0

    def update(self, channel: Channel, watermark: int | None) -> bool:
        """Update the watermark of a channel, None if it is idle; returns whether the combined watermark or idleness
        changed."""
        previous = self._channels.get(channel)
        current = watermark if watermark is None or previous is None else max(watermark, previous)
        self._channels[channel] = current
        least = self._least
        if least is not None:
            self._count += (current == least) - (previous == least)
        if self._count == 0 or least is None or (current is not None and current < least):
            self._find_least()
        is_idle = self._least is None
        combined = self.watermark if self._least is None else max(self.watermark, self._least)
        changed = combined != self.watermark or is_idle != self.idle
        self.watermark, self.idle = combined, is_idle
        return changed


class _LatestWatermark(WatermarkOutput):
    """Keeps the greatest watermark that a generator emits."""

    def __init__(self) -> None:
        self.watermark = MIN_WATERMARK
        self.idle = False

    def emit_watermark(self, watermark: Watermark) -> None:
        self.watermark = max(self.watermark, watermark.timestamp)
        self.idle = False

    def mark_idle(self) -> None:
        self.idle = True

    def mark_active(self) -> None:
        self.idle = False


@dataclass(slots=True)
class GeneratorMemory:
    """What a watermark generator remembers: the greatest timestamp, the last watermark that a custom generator emitted,
    and the fields of a custom generator, encoded."""

    greatest: int = MIN_WATERMARK
    watermark: int = MIN_WATERMARK
    custom: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        data: dict[str, Any] = {"greatest": self.greatest, "watermark": self.watermark}
        if self.custom is not None:
            data["custom"] = self.custom
        return data


class Generator:
    """The watermark generator of one split or subtask."""

    def __init__(self, strategy: WatermarkStrategy, memory: GeneratorMemory | None) -> None:
        self._bound: int | None = None
        self._custom: Any = None
        self._output = _LatestWatermark()
        match strategy.generator:
            case None:
                pass
            case BoundedOutOfOrderness(millis=millis):
                self._bound = millis
            case _:
                self._custom = strategy.create_watermark_generator()
        self._greatest = MIN_WATERMARK
        if memory is not None:
            self._greatest = memory.greatest
            self._output.watermark = memory.watermark
            if self._custom is not None and memory.custom is not None:
                vars(self._custom).update(codec.decode(bytes.fromhex(memory.custom)))

    def on_batch(self, batch: Batch, on_event: Callable[[Any, list[Any], list[int], Any], None]) -> None:
        """Process the timestamps of a batch. `on_event` runs the loop over rows for a custom generator."""
        if self._custom is not None:
            on_event(self._custom.on_event, batch.rows(), batch.times(), self._output)
        elif self._bound is not None and batch.timestamps is not None and len(batch):
            self._greatest = max(self._greatest, int(batch.timestamps.max()))

    def current(self, periodic: bool = True) -> int | None:
        """Return the watermark; None if the generator is idle. Without `periodic`, only what `on_event` emitted."""
        if self._custom is not None:
            if periodic:
                self._custom.on_periodic_emit(self._output)
            return None if self._output.idle else self._output.watermark
        if not periodic or self._bound is None or self._greatest == MIN_WATERMARK:
            return MIN_WATERMARK
        return max(MIN_WATERMARK, self._greatest - self._bound - 1)

    def memory(self) -> GeneratorMemory:
        """Return what the next epoch needs."""
        custom = None if self._custom is None else codec.encode(vars(self._custom)).hex()
        return GeneratorMemory(self._greatest, self._output.watermark, custom)


def assign_timestamps(
    strategy: WatermarkStrategy, batch: Batch, extract: Callable[[Any, list[Any], list[int]], list[int]]
) -> Batch:
    """Return the batch with the timestamps of its strategy. `extract` runs the loop over rows."""
    assigner = strategy.timestamp_assigner
    if assigner is None:
        return batch
    if isinstance(assigner, FieldTimestampAssigner) and batch.columnar:
        column = batch.column(assigner.field)
        if column is not None and pa.types.is_integer(column[0].type):
            return batch.with_timestamps(column[0].cast("int64").to_numpy(zero_copy_only=False))
    times = extract(assigner.extract_timestamp, batch.rows(), batch.times())
    return batch.with_timestamps(np.array(times, dtype=np.int64))

"""Base of operators that assign new event time to a stream.

Promises: at most one watermark at the end of an epoch; upstream watermarks are replaced, except the last one, which
ends the input. An input without records for the idle timeout becomes idle; this is emitted once.
Does not know: how the watermark is computed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.memory import MemoryPart
from millstream.runtime.operator import Operator


@dataclass
class EventTimeMemory(MemoryPart):
    """When the last record arrived, and whether the operator has emitted that it is idle. Subclasses have a name."""

    unversioned_keys: ClassVar[Mapping[str, str]] = {"active_at": "active_at", "idle_sent": "idle_sent"}

    active_at: int | None = None
    idle_sent: bool = False

    def reset_event_time(self) -> None:
        """Forget that idleness was emitted, so that it is emitted again."""
        self.idle_sent = False


class EventTimeOperator(Operator):
    """`memory_type` is what the subclass remembers. The subclass sets `has_records` when a record arrives."""

    memory_type: ClassVar[type[EventTimeMemory]]
    has_records = False

    @property
    @abstractmethod
    def idle_timeout(self) -> int | None:
        """After how many milliseconds without records the input is idle."""

    @abstractmethod
    def current_watermark(self) -> int | None:
        """Return the watermark of all records so far; None if the input is idle."""

    def begin_epoch(self) -> None:
        """Begin an epoch without records."""
        super().begin_epoch()
        self.has_records = False
        memory = self.context.memory.part(self.memory_type)
        if memory.active_at is None:
            memory.active_at = self.context.now

    def on_watermark(self, watermark: int) -> None:
        """Pass on only the last watermark of the input."""
        if watermark == MAX_WATERMARK:
            super().on_watermark(watermark)

    def on_idle(self) -> None:
        """Ignore it: this operator detects idleness itself."""

    def on_active(self) -> None:
        """Ignore it, as idleness."""

    def end_epoch(self) -> None:
        """Emit the watermark, or that the input is idle."""
        memory = self.context.memory.part(self.memory_type)
        if self.has_records or memory.active_at is None:
            memory.active_at = self.context.now
        if self.watermark == MAX_WATERMARK:
            return
        current, timeout = self.current_watermark(), self.idle_timeout
        timed_out = timeout is not None and self.context.now - memory.active_at >= timeout
        is_idle = current is None or timed_out
        if is_idle and not memory.idle_sent:
            self.out.emit_watermark(None)
        elif current is not None and not is_idle and (current > self.watermark or memory.idle_sent):
            super().on_watermark(max(current, self.watermark))
        memory.idle_sent = is_idle

    def next_timer(self) -> int | None:
        """Return when the input becomes idle."""
        timeout, memory = self.idle_timeout, self.context.memory.part(self.memory_type)
        if timeout is None or memory.active_at is None or memory.idle_sent or self.watermark == MAX_WATERMARK:
            return None
        return memory.active_at + timeout

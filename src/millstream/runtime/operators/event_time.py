"""What operators share that give a stream its event time anew.

Promises: one watermark at the end of what an epoch brought; upstream watermarks are replaced, except the last one,
which ends the input; an input that was silent for the timeout counts as idle, once.
Does not know: how the watermark is found."""

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
        """Idleness is emitted again."""
        self.idle_sent = False


class EventTimeOperator(Operator):
    """`memory_type` is what the subclass remembers. The subclass sets `seen` when a record arrives."""

    memory_type: ClassVar[type[EventTimeMemory]]
    seen = False

    @property
    @abstractmethod
    def idle_timeout(self) -> int | None:
        """After how many milliseconds of silence the input counts as idle."""

    @abstractmethod
    def current_watermark(self) -> int | None:
        """The watermark of all that was seen; None when the input is to count as idle."""

    def begin_epoch(self) -> None:
        """Nothing was seen."""
        super().begin_epoch()
        self.seen = False
        memory = self.context.memory.part(self.memory_type)
        if memory.active_at is None:
            memory.active_at = self.context.now

    def on_watermark(self, watermark: int) -> None:
        """Only the last watermark of the input counts."""
        if watermark == MAX_WATERMARK:
            super().on_watermark(watermark)

    def on_idle(self) -> None:
        """Idleness of the input is measured here."""

    def on_active(self) -> None:
        """As for idleness."""

    def end_epoch(self) -> None:
        """Emit the watermark of what was seen, or say that nothing comes."""
        memory = self.context.memory.part(self.memory_type)
        if self.seen or memory.active_at is None:
            memory.active_at = self.context.now
        if self.watermark == MAX_WATERMARK:
            return
        current, timeout = self.current_watermark(), self.idle_timeout
        silent = timeout is not None and self.context.now - memory.active_at >= timeout
        idle = current is None or silent
        if idle and not memory.idle_sent:
            self.out.emit_watermark(None)
        elif current is not None and not idle and (current > self.watermark or memory.idle_sent):
            super().on_watermark(max(current, self.watermark))
        memory.idle_sent = idle

    def next_timer(self) -> int | None:
        """When this input counts as idle."""
        timeout, memory = self.idle_timeout, self.context.memory.part(self.memory_type)
        if timeout is None or memory.active_at is None or memory.idle_sent or self.watermark == MAX_WATERMARK:
            return None
        return memory.active_at + timeout

"""When a checkpoint is due: pure.

Promises: one every interval, never sooner than the pause after the last, none when nothing happened since.
Does not know: what a checkpoint is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Schedule:
    """Times are milliseconds; `interval` None means never."""

    interval: int | None
    min_pause: int = 0
    triggered_at: int = 0
    completed_at: int = 0
    epoch: int = 0

    def due(self, now: int, epoch: int) -> bool:
        """Whether to take one now."""
        if self.interval is None or epoch == self.epoch:
            return False
        if now < self.triggered_at:  # the clock was set back: nobody knows how long ago that was
            return True
        return now - self.triggered_at >= self.interval and now - self.completed_at >= self.min_pause

    def started(self, now: int, epoch: int) -> Schedule:
        """The job starts, or starts again, from a checkpoint of `epoch`: the interval begins anew."""
        return replace(self, triggered_at=now, completed_at=now, epoch=epoch)

    def missed(self, now: int) -> Schedule:
        """A checkpoint failed: another one is due after the interval."""
        return replace(self, triggered_at=now)

    def completed(self, triggered: int, now: int, epoch: int) -> Schedule:
        """A checkpoint of `epoch` is durable."""
        return replace(self, triggered_at=triggered, completed_at=now, epoch=epoch)

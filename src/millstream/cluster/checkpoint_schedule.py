"""The schedule of the checkpoints of a job, as an immutable value.

Promises: a checkpoint is due once every interval, but not sooner than the minimum pause after the last one, and not
when no epoch was accepted since.
Does not know: what a checkpoint contains."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class CheckpointSchedule:
    """When the last checkpoint was triggered and completed, and of which epoch. Times are milliseconds; without an
    interval no checkpoint is ever due."""

    interval: int | None
    min_pause: int = 0
    triggered_at: int = 0
    completed_at: int = 0
    epoch: int = 0

    def is_due(self, now: int, epoch: int) -> bool:
        """Return whether to take a checkpoint of `epoch` now."""
        if self.interval is None or epoch == self.epoch:
            return False
        if now < self.triggered_at:  # the clock was set back, so the time since the last checkpoint is not known
            return True
        return now - self.triggered_at >= self.interval and now - self.completed_at >= self.min_pause

    def after_start(self, now: int, epoch: int) -> CheckpointSchedule:
        """Return the schedule after the job started or restarted from a checkpoint of `epoch`: a new interval
        begins."""
        return replace(self, triggered_at=now, completed_at=now, epoch=epoch)

    def after_failure(self, now: int) -> CheckpointSchedule:
        """Return the schedule after a checkpoint failed: another one is due after the interval."""
        return replace(self, triggered_at=now)

    def after_checkpoint(self, triggered: int, now: int, epoch: int) -> CheckpointSchedule:
        """Return the schedule after a checkpoint of `epoch` was published."""
        return replace(self, triggered_at=triggered, completed_at=now, epoch=epoch)

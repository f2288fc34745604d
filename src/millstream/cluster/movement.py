"""What counts as progress of a job under one leader.

Promises: these are progress: an epoch above the highest one that this leader has accepted, a completed checkpoint, a
finished piece of a savepoint, and having nothing to do. A replayed epoch is not, so a job that fails again and again at
the same epoch makes no progress. After a checkpoint failure that restarts the job, epochs and idle time are no progress
until a checkpoint is completed. Every call raises `LeadershipGivenUp` when the lease was given up.
Does not know: clocks, how long a leader may take."""

from __future__ import annotations

from millstream.cluster.leadership import Leadership


class Movement:
    """The progress of one job. Without a lease nothing is reported."""

    def __init__(self, leadership: Leadership | None) -> None:
        self._leadership = leadership
        self._highest = 0
        self._needs_checkpoint = False

    def epoch_accepted(self, epoch: int) -> None:
        """An epoch was accepted; it may be a replayed one."""
        progress = epoch > self._highest
        self._highest = max(self._highest, epoch)
        self._note(progress=progress and not self._needs_checkpoint)

    def epochs_replanned(self, first: int) -> None:
        """The plans from `first` on were replaced by smaller ones, so these epochs are new."""
        self._highest = min(self._highest, first - 1)

    def idle(self) -> None:
        """There is nothing to read and nothing to replay."""
        self._note(progress=not self._needs_checkpoint)

    def piece_written(self) -> None:
        """A piece of a savepoint was written."""
        self._note(progress=True)

    def checkpoint_failed(self) -> None:
        """A checkpoint failed, and the job restarts because of it."""
        self._needs_checkpoint = True

    def checkpoint_completed(self) -> None:
        """A checkpoint exists, and its output is committed."""
        self._needs_checkpoint = False
        self._note(progress=True)

    def _note(self, *, progress: bool) -> None:
        if self._leadership is None:
            return
        if progress:
            self._leadership.moved()
        else:
            self._leadership.ensure_not_given_up()

"""Reports the progress of a job to its leadership: a leader without progress gives up its lease.

Promises: these are progress: an epoch above the highest one that this leader has accepted, a completed checkpoint, a
finished piece of a savepoint, and having nothing to do. A replayed epoch is not progress, so a job that repeatedly
fails at the same epoch makes no progress. After a checkpoint failure that restarts the job, epochs and idle time are no
progress until a checkpoint is completed. Every call raises `LeadershipGivenUp` when the lease was given up.
Does not know: clocks, how long a leader may take."""

from __future__ import annotations

from millstream.cluster.leadership import Leadership


class LeaderProgress:
    """Reports the progress of one job to its leadership, if it has one."""

    def __init__(self, leadership: Leadership | None) -> None:
        self._leadership = leadership
        self._highest = 0
        self._needs_checkpoint = False

    def on_epoch_accepted(self, epoch: int) -> None:
        """An epoch was accepted; it may be a replayed one."""
        is_new = epoch > self._highest
        self._highest = max(self._highest, epoch)
        self._report(is_progress=is_new and not self._needs_checkpoint)

    def on_epochs_replanned(self, first: int) -> None:
        """The plans from `first` on were replaced by smaller ones, so these epochs are new."""
        self._highest = min(self._highest, first - 1)

    def on_idle(self) -> None:
        """There is nothing to read and nothing to replay."""
        self._report(is_progress=not self._needs_checkpoint)

    def on_savepoint_piece(self) -> None:
        """A piece of a savepoint was written."""
        self._report(is_progress=True)

    def on_checkpoint_failed(self) -> None:
        """A checkpoint failed, and the job restarts because of it."""
        self._needs_checkpoint = True

    def on_checkpoint_completed(self) -> None:
        """A checkpoint exists, and its output is committed."""
        self._needs_checkpoint = False
        self._report(is_progress=True)

    def _report(self, *, is_progress: bool) -> None:
        if self._leadership is None:
            return
        if is_progress:
            self._leadership.report_progress()
        else:
            self._leadership.ensure_not_given_up()

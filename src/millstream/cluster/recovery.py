"""Starts and restarts a job: waits for leadership, finds the checkpoint to restore, and undoes what happened since.

Promises: a job starts from its own newest checkpoint, else from the snapshot it was configured to start from, else from
the beginning. Output is aborted only after it is known which checkpoints exist, and the output that a checkpoint names
is committed again.
Does not know: epochs, restart strategies."""

from __future__ import annotations

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.cluster.deadlines import run_within
from millstream.cluster.failures import CheckpointNotFound
from millstream.cluster.job_execution import JobExecution
from millstream.cluster.leadership import Leadership, take_over
from millstream.cluster.machine_events import Concluded, Restored
from millstream.job.job_status import JobStatus


class Recovery:
    """Restores one job from a checkpoint."""

    def __init__(self, execution: JobExecution) -> None:
        self._execution = execution
        self._has_term = False  # whether this driver has begun a term: it starts only once

    def start(self) -> Restored | Concluded:
        """Restore the newest checkpoint, or start from the beginning; with several drivers, wait until this one
        leads."""
        execution = self._execution
        if execution.leadership is not None:
            return self._lead(execution.leadership)
        execution.start_from(self._find_checkpoint())
        return Restored(execution.position)

    def _lead(self, leadership: Leadership) -> Restored | Concluded:
        """Wait until this driver leads, then begin a term; or return how the job ended under another driver."""
        execution, checkpoints = self._execution, self._execution.checkpoints
        outcome = leadership.wait(
            execution.cancellation.is_requested, execution.engine.prepare, checkpoints.newest_term
        )
        if outcome is not None:
            return Concluded(JobStatus[outcome.status], outcome.cause)
        checkpoints.lead(leadership.term)
        sinks = execution.open_sinks()
        job = execution.job
        empty = CheckpointMetadata.empty(job.id, job.name, execution.clock.now(), execution.incarnation)
        checkpoint = take_over(leadership, checkpoints, sinks.recover, empty)
        execution.incarnation = checkpoint.incarnation
        recovery_path = execution.settings.recovery_path
        if not checkpoint.operators and recovery_path is not None:
            checkpoint = checkpoints.open(recovery_path)
        self._has_term = True
        execution.start_from(checkpoint, leadership.first_generation + 1)
        return Restored(execution.position)

    def restart(self) -> Restored | Concluded:
        """Undo everything since the newest checkpoint, and restore it."""
        execution = self._execution
        if execution.leadership is not None and not self._has_term:
            return self._lead(execution.leadership)
        execution.check_leadership()
        execution.resolve_checkpoints()
        # before anything is undone, because output that a checkpoint names must stay
        checkpoint = self._find_checkpoint()
        execution.check_leadership()
        execution.restart_from(checkpoint)
        return Restored(execution.position)

    def _find_checkpoint(self) -> CheckpointMetadata | None:
        timeout = self._execution.settings.checkpoint_timeout
        return run_within(timeout, self._newest_checkpoint, CheckpointNotFound(timeout))

    def _newest_checkpoint(self) -> CheckpointMetadata | None:
        """Return the job's newest checkpoint, else the configured snapshot, which begins a new incarnation."""
        execution, checkpoints = self._execution, self._execution.checkpoints
        checkpoint = checkpoints.latest_intact()
        if checkpoint is not None:
            execution.incarnation = checkpoint.incarnation
        recovery_path = execution.settings.recovery_path
        if (checkpoint is None or not checkpoint.operators) and recovery_path is not None:
            checkpoint = checkpoints.open(recovery_path)
        return checkpoint

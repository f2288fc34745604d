"""Coordinates checkpoints and savepoints: the protocols that make an epoch boundary durable and its output visible.

Promises: publish, then commit, then acknowledge, then retire, in this order. A savepoint that does not end the job
follows a checkpoint; one that ends the job is written before the last checkpoint.
Does not know: when a checkpoint is due, epochs, restarts.

What a crash does: before the publish of a checkpoint, the epochs since the last one are replayed; after it, recovery
repeats the commit."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from millstream.checkpoint.storage_errors import CheckpointTaken
from millstream.cluster.job_events import CheckpointDone, CheckpointFailed
from millstream.cluster.job_execution import JobExecution
from millstream.cluster.job_requests import JobRequests
from millstream.cluster.leader_progress import LeaderProgress
from millstream.cluster.machine_events import (
    CheckpointCompleted,
    CheckpointSkipped,
    SavepointNotWritten,
    SavepointWritten,
)
from millstream.cluster.savepoints import SavepointFailed, SavepointRequest, reopen_event_time
from millstream.cluster.sources import EpochPlan
from millstream.errors import ExternalError, MillstreamError

_log = logging.getLogger("millstream.job")


class CheckpointCoordinator:
    """Takes the checkpoints and savepoints of one job. `run_epoch` runs and accepts a logged plan."""

    def __init__(
        self,
        execution: JobExecution,
        requests: JobRequests,
        leader_progress: LeaderProgress,
        run_epoch: Callable[[EpochPlan, int], None],
    ) -> None:
        self._execution, self._requests, self._leader_progress = execution, requests, leader_progress
        self._savepoints, self._run_epoch = requests.savepoints, run_epoch
        self._failures = 0  # checkpoints that failed since the last one that exists

    def take_checkpoint(self, *, is_final: bool) -> CheckpointCompleted | CheckpointSkipped:
        """Take a checkpoint at this boundary. If it fails, the job continues, unless it is the last checkpoint."""
        return CheckpointCompleted(is_final) if self._checkpoint(is_final=is_final) else CheckpointSkipped()

    def _checkpoint(self, *, is_final: bool = False, ended: bool = False) -> bool:
        """Make the epoch boundary durable, then its output visible; return False if that failed and the job
        continues."""
        execution, checkpoints = self._execution, self._execution.checkpoints
        sinks = execution.sinks
        started = execution.clock.precise()
        metadata = execution.snapshot(ended=ended)
        if is_final and not checkpoints.enabled:
            sinks.commit(metadata.checkpoint)  # without checkpoints, output is committed when the job ends
            sinks.notify_watermarks(metadata.operators, metadata.now)
            return True
        try:
            metadata, path = checkpoints.complete(metadata, execution.clock)
        except MillstreamError as problem:
            if isinstance(problem, CheckpointTaken):
                execution.check_leadership()
            self._failures += 1
            took = (execution.clock.precise() - started) * 1000
            execution.notify(CheckpointFailed(metadata.checkpoint, took, str(problem)))
            tolerable = self._failures <= execution.settings.tolerable_failures
            # the newer checkpoint may name this output
            if is_final or not tolerable or isinstance(problem, CheckpointTaken):
                self._leader_progress.on_checkpoint_failed()
                raise
            _log.warning("checkpoint %s failed: %s", metadata.checkpoint, problem)
            self._requests.complete_checkpoint_requests(problem)
            checkpoints.skip(execution.clock.now())
            return False
        sinks.mark_published(metadata.checkpoint)
        self._failures = 0
        execution.progress.lineages = {operator.operator: operator.lineages for operator in metadata.operators}
        execution.check_leadership(metadata.checkpoint)
        sinks.commit(metadata.checkpoint)
        sinks.notify_watermarks(metadata.operators, metadata.now)
        self._leader_progress.on_checkpoint_completed()
        execution.sources.acknowledge()
        try:
            checkpoints.retire(keep=execution.settings.retained)
        except ExternalError as problem:  # the job can continue; the next checkpoint tries again
            _log.warning("old checkpoints could not be deleted: %s", problem)
        took = (execution.clock.precise() - started) * 1000
        sizes = metadata.bytes_new, metadata.full_size
        states = {entry.operator: tuple(lineage.size for lineage in entry.lineages) for entry in metadata.operators}
        execution.notify(CheckpointDone(metadata.checkpoint, metadata.epoch, *sizes, took, path, states))
        self._requests.complete_checkpoint_requests(metadata.checkpoint)
        return True

    # -------------------------------------------------------------------------------------------------- savepoints

    def write_savepoint(self, restarts: int) -> SavepointWritten | SavepointNotWritten:
        """Carry out the oldest request. A failed savepoint that does not end event time leaves the job running."""
        request = self._savepoints.take_request()
        try:
            if request.ends:
                self._end_with_savepoint(request, restarts)
            else:
                self._trigger_savepoint(request)
        except Exception as problem:
            request.refuse(problem)
            if isinstance(problem, SavepointFailed) and not request.drain:
                _log.warning("%s", problem)
                return SavepointNotWritten()
            raise
        return SavepointWritten(stop=request.stop, cancel=request.cancel)

    def _trigger_savepoint(self, request: SavepointRequest) -> None:
        """Write a savepoint of a job that continues. With checkpoints, its output is committed before it exists, so it
        names none; without, staged output becomes visible with the savepoint."""
        execution = self._execution
        metadata = execution.snapshot()
        if not execution.checkpoints.enabled:
            savepoint = self._savepoints.write(request, metadata, execution.plan.slots)
            execution.committing_savepoint = savepoint.path
            execution.sinks.commit(metadata.checkpoint)
            execution.committing_savepoint = None
            execution.sinks.notify_watermarks(metadata.operators, metadata.now)
            self._requests.report_savepoint(request, savepoint)
            request.complete(savepoint.path)
        elif self._checkpoint():
            self._savepoints.start(request, execution.snapshot())
        else:
            problem = f"checkpoint {metadata.checkpoint} failed, and without it there is no savepoint"
            raise SavepointFailed(request.directory, ExternalError(problem))

    def _end_with_savepoint(self, request: SavepointRequest, restarts: int) -> None:
        """End the job with a savepoint.

        A crash before the savepoint exists leaves the job as it was. So does one after that and before the checkpoint,
        and the job can be started from the savepoint as well. After the checkpoint, which says that the job has ended,
        a recovery only commits."""
        execution, checkpoints = self._execution, self._execution.checkpoints
        if request.stop:
            now = max(execution.clock.now(), execution.progress.now)
            plan = execution.sources.closing(execution.progress.epoch + 1, now, drain=request.drain)
            checkpoints.log_plan(plan.to_json())
            self._run_epoch(plan, restarts)
        metadata = execution.snapshot()
        resumable = reopen_event_time(metadata) if request.drain else metadata
        savepoint = self._savepoints.write(request, resumable, execution.plan.slots)
        if not checkpoints.enabled:
            execution.committing_savepoint = savepoint.path
        try:
            self._checkpoint(is_final=True, ended=request.stop)
        except Exception:
            with suppress(MillstreamError):
                number = metadata.checkpoint
                if checkpoints.is_unresolved(number) and number not in execution.resolve_checkpoints():
                    # the job continues without the savepoint, and may abort output that the savepoint names
                    savepoint.dispose()
            raise
        self._requests.report_savepoint(request, savepoint)
        self._requests.complete_at_end(request, savepoint.path)

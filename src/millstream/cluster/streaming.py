"""Policy of streaming jobs: input is planned epoch by epoch, and checkpoints make output visible.

Promises: an epoch is planned and logged before it runs, and runs before it is accepted (law 3); a logged plan is
replayed as it was logged, unless it was too large; requests are carried out between two epochs.
Does not know: which step is next (the job machine decides), Spark.

What a crash does: before the plan is logged, nothing happened; before the epoch is accepted, it runs again from its
logged plan."""

from __future__ import annotations

from typing import assert_never

from millstream.cluster.checkpoint_coordinator import CheckpointCoordinator
from millstream.cluster.job_events import EpochCut, RescaleDone
from millstream.cluster.job_execution import JobExecution
from millstream.cluster.job_requests import JobRequests
from millstream.cluster.leader_progress import LeaderProgress
from millstream.cluster.machine_events import (
    BoundaryReached,
    EpochAccepted,
    Event,
    NothingToRead,
    PolicyAction,
    ReachBoundary,
    ReadRequests,
    RequestsRead,
    Rescale,
    Rescaled,
    Restore,
    RunEpoch,
    Start,
    TakeCheckpoint,
    Wait,
    Waited,
    WriteSavepoint,
)
from millstream.cluster.oversize import Oversize
from millstream.cluster.recovery import Recovery
from millstream.cluster.sizing import EpochSize
from millstream.cluster.sources import EpochPlan
from millstream.connector.source import Budget
from millstream.engine.contract import EpochResult
from millstream.engine.epoch_level import without_cycle_collection
from millstream.errors import ExternalError

_FIRST_IDLE_WAIT = 0.001  # seconds; it doubles up to the idle interval while no records arrive
_SWEEP_EVERY = 100  # epochs after which state files are deleted if there are no checkpoints


class StreamingPolicy:
    """Carries out the steps of one streaming job."""

    def __init__(self, execution: JobExecution) -> None:
        settings = execution.settings
        self._execution = execution
        self._leader_progress = LeaderProgress(execution.leadership)
        self.requests = JobRequests(execution, self._leader_progress)
        self._coordinator = CheckpointCoordinator(execution, self.requests, self._leader_progress, self._run)
        self._recovery = Recovery(execution)
        self._size = EpochSize(settings.epoch_target / 1000, settings.epoch_records)
        self._oversize = Oversize(self._cut_epoch)
        self._idle_wait = _FIRST_IDLE_WAIT
        self._earliest = 0.0  # when the next epoch may start, by the monotonic clock

    def carry_out(self, action: PolicyAction) -> Event:
        """Carry out one step of the job; errors are raised."""
        match action:
            case Start():
                return self._limit_parallelism(self._recovery.start())
            case Restore():
                return self._limit_parallelism(self._recovery.restart())
            case ReachBoundary():
                self.requests.savepoints.advance(self._execution.plan.slots)
                return BoundaryReached(savepoint=self.requests.savepoints.has_requests)
            case ReadRequests():
                return RequestsRead(rescale=self.requests.read())
            case Rescale():
                return self._rescale()
            case RunEpoch(replay=replay, restarts=restarts):
                return self._run_epoch(restarts, replay=replay)
            case TakeCheckpoint(is_final=is_final):
                return self._coordinator.take_checkpoint(is_final=is_final)
            case WriteSavepoint(restarts=restarts):
                return self._coordinator.write_savepoint(restarts)
            case Wait():
                self._leader_progress.on_idle()
                longest = self._execution.settings.idle_interval / 1000
                self._execution.cancellation.wait_for_input(min(self._idle_wait, longest))
                self._idle_wait = min(2 * self._idle_wait, longest)
                return Waited()
        assert_never(action)

    def _limit_parallelism(self, event: Event) -> Event:
        """Limit the parallelism that the adaptive scheduler requests by the restored max parallelism."""
        self.requests.rescaling.limit(self._execution.least_max_parallelism)
        return event

    def _rescale(self) -> Rescaled:
        """Redeploy the job at another parallelism. Between two epochs all state is in files, from which the new tasks
        continue as after a restore."""
        boundary = self._execution.snapshot()
        self._execution.redeploy(self.requests.rescaling.begin(self._execution.clock.precise()), boundary)
        return Rescaled(self._execution.position)

    # -------------------------------------------------------------------------------------------------- an epoch

    def _run_epoch(self, restarts: int, *, replay: bool) -> EpochAccepted | NothingToRead:
        execution = self._execution
        plan = self._replay_plan() if replay else self._plan_epoch()
        if plan is None:
            return NothingToRead(self._is_checkpoint_due())
        execution.cancellation.pause(round((self._earliest - execution.clock.precise()) * 1000))
        self._earliest = execution.clock.precise() + execution.settings.min_interval / 1000
        self._run(plan, restarts)
        self._idle_wait = _FIRST_IDLE_WAIT
        return EpochAccepted(execution.position, plan.ends, self._is_checkpoint_due())

    def _is_checkpoint_due(self) -> bool:
        execution = self._execution
        due = execution.checkpoints.is_due(execution.clock.now(), execution.progress.epoch)
        return due or (self.requests.wants_checkpoint and execution.progress.epoch > 0)

    def _replay_plan(self) -> EpochPlan:
        """Return the next logged plan, or a smaller one if it was too large."""
        execution = self._execution
        most = self._size.budget, execution.settings.epoch_bytes
        memory = execution.progress.memory
        return self._oversize.replay(execution.logged_plans, execution.sources, execution.checkpoints, most, memory)

    def _plan_epoch(self) -> EpochPlan | None:
        """Plan an epoch and log the plan; None when there is nothing to do."""
        execution, progress = self._execution, self._execution.progress
        now = max(execution.clock.now(), progress.now)
        records = self.requests.rescaling.limit_records(self._size.budget)
        plan = execution.sources.plan(
            progress.epoch + 1, Budget(records, execution.settings.epoch_bytes, now), progress.memory
        )
        timer_due = progress.next_timer is not None and progress.next_timer <= now
        if not plan.ranges and not plan.ends and not plan.iterates and not timer_due and progress.epoch > 0:
            return None
        execution.checkpoints.log_plan(plan.to_json())
        return plan

    def _cut_epoch(self, cut: EpochCut) -> None:
        """Notify listeners that an epoch has a smaller plan, and the epochs after it get new plans."""
        self._leader_progress.on_epochs_replanned(cut.epoch)
        self._execution.notify(cut)

    def _run(self, plan: EpochPlan, restarts: int) -> None:
        """Run a logged plan, and accept the epoch."""
        execution = self._execution
        started = execution.clock.precise()
        try:
            result = execution.run(plan, restarts)
        except ExternalError as problem:
            self._size = self._oversize.on_failure(plan, problem, self._size)
            raise
        self._accept(plan, result, execution.clock.precise() - started)

    @without_cycle_collection()
    def _accept(self, plan: EpochPlan, result: EpochResult, seconds: float) -> None:
        """Accept an epoch that has run, and notify the listeners."""
        execution = self._execution
        self._oversize.on_accepted(plan.epoch)
        execution.accept(plan, result)
        self._leader_progress.on_epoch_accepted(plan.epoch)
        if not execution.checkpoints.enabled and plan.epoch % _SWEEP_EVERY == 0:
            execution.checkpoints.sweep(execution.progress.handles())
        done = execution.measure(plan, result, seconds)
        execution.notify(done)
        rescaling = self.requests.rescaling
        if not rescaling.is_under_way:
            if self._oversize.epoch is None:  # otherwise epochs are replayed up to one that was too large
                self._size = self._size.after(done.records, seconds)
        else:  # the duration of the epoch is due to the transfer of state, not to its records
            slots = execution.plan.slots
            pause = rescaling.pause(execution.clock.precise())
            execution.notify(RescaleDone(plan.epoch, slots, pause * 1000))
            rescaling.complete(slots)

"""Policy of batch jobs: all input is one epoch, and its output is committed once.

Promises: everything is planned, then run once; output becomes visible after all of it was accepted. After a failure
before that, everything is planned and run again; after a failure of the commit, only the commit is repeated. There are
no checkpoints, so another process cannot continue the job.
Does not know: Spark, sorting, which step is next (the job machine decides that)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from millstream.cluster.job_execution import JobExecution
from millstream.cluster.machine_events import (
    BoundaryReached,
    CancelRequested,
    CheckpointCompleted,
    EpochAccepted,
    Event,
    PolicyAction,
    Position,
    ReachBoundary,
    ReadRequests,
    RequestsRead,
    Restore,
    Restored,
    RunEpoch,
    Start,
    TakeCheckpoint,
)
from millstream.cluster.restarts import restart_strategy
from millstream.cluster.settings import JobSettings
from millstream.cluster.sources import EpochPlan
from millstream.config.configuration import Configuration
from millstream.connector.source import Budget
from millstream.errors import InternalError, UserError

_UNLIMITED = 1 << 62
_NO_DEADLINE = 365 * 24 * 3_600_000


class NotInBatch(UserError):
    """A batch job was asked for something that only a streaming job can do."""

    hint = "set execution.runtime-mode to STREAMING"

    def __init__(self, feature: str) -> None:
        super().__init__(f"a batch job has no {feature}")


def batch_settings(settings: JobSettings, configuration: Configuration) -> JobSettings:
    """Return the settings of a batch job: without checkpoints, without deadlines of epochs and commits, and without
    state to restore."""
    if settings.recovery_path is not None:
        raise NotInBatch(feature="state to restore from a savepoint")
    return dataclasses.replace(
        settings,
        restart=restart_strategy(configuration, checkpointing=False),
        checkpoint_interval=None,
        deadline=_NO_DEADLINE,
        commit_timeout=_NO_DEADLINE,
        adaptive=False,
        reactive=False,
    )


class BatchPolicy:
    """Carries out the steps of one batch job. It serves no requests: its parallelism is fixed, and it has no state
    between epochs that a savepoint could hold."""

    requests = None

    def __init__(self, execution: JobExecution) -> None:
        self._execution = execution
        self._to_commit: Mapping[str, tuple[Any, ...]] | None = None  # the output, once the epoch is accepted

    def carry_out(self, action: PolicyAction) -> Event:
        """Carry out one step of the job; errors are raised."""
        match action:
            case Start():
                self._execution.start_from(None)
                return Restored(self._execution.position)
            case Restore():
                return self._restart()
            case ReachBoundary():
                return BoundaryReached()
            case ReadRequests():
                return RequestsRead()
            case RunEpoch(restarts=restarts):
                return self._run_epoch(restarts)
            case TakeCheckpoint(is_final=True):
                return self._commit()
        msg = f"a batch job cannot carry out {action}"
        raise InternalError(msg)

    def _restart(self) -> Restored:
        if self._to_commit is not None:
            return Restored(Position(awaits_commit=True))
        self._execution.restart_from(None)
        return Restored(self._execution.position)

    def _run_epoch(self, restarts: int) -> EpochAccepted | CancelRequested:
        execution = self._execution
        plan = self._plan_all_input()
        if execution.cancellation.is_requested():
            return CancelRequested()
        started = execution.clock.precise()
        result = execution.run(plan, restarts)
        seconds = execution.clock.precise() - started
        execution.accept(plan, result)
        execution.notify(execution.measure(plan, result, seconds))
        self._to_commit = execution.sinks.staged_committables()
        return EpochAccepted(execution.position, is_last=True)

    def _commit(self) -> CheckpointCompleted:
        """Make the output visible. A commit is idempotent, so after a failure it is repeated."""
        assert self._to_commit is not None
        self._execution.sinks.recommit(1, self._to_commit)
        self._execution.sinks.notify_end(self._execution.clock.now())
        return CheckpointCompleted(is_final=True)

    def _plan_all_input(self) -> EpochPlan:
        """Plan one epoch with all input; a source may wait for an external system."""
        execution = self._execution
        plan = self._plan_more()
        while not plan.ends and not execution.cancellation.is_requested():
            more = self._plan_more()
            if not more.ranges and not more.ends:
                execution.cancellation.pause(execution.settings.idle_interval)
            plan = _join(plan, more)
        return plan

    def _plan_more(self) -> EpochPlan:
        execution = self._execution
        return execution.sources.plan(
            1, Budget(_UNLIMITED, _UNLIMITED, execution.clock.now()), execution.progress.memory
        )


def _join(plan: EpochPlan, more: EpochPlan) -> EpochPlan:
    """Return one plan that reads what `plan` and `more` read, in this order."""
    sources = {
        operator: {**part, "ranges": [*plan.sources[operator]["ranges"], *part["ranges"]]}
        for operator, part in more.sources.items()
    }
    return EpochPlan(plan.epoch, plan.now, sources)

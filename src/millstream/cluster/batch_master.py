"""A batch job: all input is one epoch.

Promises: everything is planned, then run once; output becomes visible after all of it was accepted. A failure before
that begins anew from the logged plan, one while output is committed repeats the commit alone. There are no checkpoints,
and so nothing to come back to after this process.
Does not know: Spark, sorting."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NoReturn

from millstream.cluster.events import Event, InputEnded
from millstream.cluster.job_master import JobMaster
from millstream.cluster.restarts import restart_strategy
from millstream.cluster.settings import JobSettings
from millstream.cluster.sources import EpochPlan
from millstream.config.configuration import Configuration
from millstream.connector.source import Budget
from millstream.errors import UserError

_ALL = 1 << 62
_NO_DEADLINE = 365 * 24 * 3_600_000


class NotInBatch(UserError):
    """Something was asked of a batch job that only a streaming job can do."""

    hint = "set execution.runtime-mode to STREAMING"

    def __init__(self, what: str) -> None:
        super().__init__(f"a batch job has no {what}")


def batch_settings(settings: JobSettings, configuration: Configuration) -> JobSettings:
    """The settings of a batch job: no checkpoints, no deadline of an epoch or commit, and nothing to be restored."""
    if settings.recovery_path is not None:
        raise NotInBatch(what="state to restore from a savepoint")
    return dataclasses.replace(
        settings,
        restart=restart_strategy(configuration, checkpointing=False),
        checkpoint_interval=None,
        deadline=_NO_DEADLINE,
        commit_timeout=_NO_DEADLINE,
        adaptive=False,
        reactive=False,
    )


class BatchMaster(JobMaster):
    """Runs one batch job to its end."""

    _to_commit: Mapping[str, tuple[Any, ...]] | None = None

    def rescale(self, wanted: Any) -> NoReturn:
        """A batch job keeps the parallelism it has begun with."""
        raise NotInBatch(what="other parallelism than the one it started with")

    def savepoint(self, directory: str | None = None, **how: Any) -> NoReturn:
        """A batch job has no state between epochs."""
        raise NotInBatch(what="savepoints")

    def _recover(self) -> Event | None:
        return super()._recover() if self._to_commit is None else None

    def _epoch(self) -> Event | None:
        """All of the work, then the commit; after a failure of the commit, the commit alone, which is idempotent."""
        assert self._sinks is not None
        if self._to_commit is None:
            plan = self._next_plan()
            if self._cancel.is_set():
                return None
            started = self._clock.precise()
            result = self._run(plan)
            self._accept(plan, result, self._clock.precise() - started)
            self._to_commit = self._sinks.durable()
        self._sinks.recommit(1, self._to_commit)
        self._sinks.ended(self._clock.now())
        return InputEnded()

    def _next_plan(self) -> EpochPlan:
        """The logged plan, or a new one of all there is to read."""
        assert self._sources is not None
        if self._replay:
            logged = self._replay.popleft()
            self._sources.replay(logged)
            return logged
        plan = self._sources.plan(1, Budget(_ALL, _ALL, self._clock.now()), self._progress.memory)
        while not plan.ends and not self._cancel.is_set():
            more = self._sources.plan(1, Budget(_ALL, _ALL, self._clock.now()), self._progress.memory)
            if not more.ranges and not more.ends:  # a source that waits for something outside
                self._pause(self._settings.idle_interval)
            plan = _joined(plan, more)
        self._checkpoints.log_plan(plan.to_json())
        return plan


def _joined(plan: EpochPlan, more: EpochPlan) -> EpochPlan:
    parts = {
        operator: {**part, "ranges": [*plan.sources[operator]["ranges"], *part["ranges"]]}
        for operator, part in more.sources.items()
    }
    return EpochPlan(plan.epoch, plan.now, parts)

"""The workers of a job for its committers: run tasks on the engine, name the run of the driver, and know the lease.

Promises: tasks run with a deadline, on the deployed program, which is deployed first if necessary. A driver that lost
its lease gets an error.
Does not know: sinks, epochs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from millstream.cluster.deadlines import run_watched
from millstream.cluster.leadership import Leadership
from millstream.connector.slot_task import SlotTask
from millstream.engine.contract import Engine
from millstream.errors import ExternalError


class CommitTimedOut(ExternalError):
    """Tasks that commit output, or write a savepoint, did not end by their deadline."""

    def __init__(self, tasks: int, deadline: int) -> None:
        super().__init__(
            f"{tasks} tasks between epochs did not end within {deadline / 1000:g} s and were cancelled",
            hint="check the system to which the sink or savepoint writes, or raise millstream.epoch.deadline",
        )


class WorkersGone(ExternalError):
    """A task was to run on the workers of a job that has failed."""

    def __init__(self) -> None:
        super().__init__("the job has failed, so its workers run no more tasks")


class CommitWorkers:
    """The workers of a job. `owner` names this run of its driver; `ensure_deployed` is called before tasks run.

    Times are milliseconds: tasks are cancelled after `deadline`; if they have not ended `cancellation` after that, the
    engine is abandoned."""

    def __init__(
        self,
        owner: str,
        engine: Engine,
        ensure_deployed: Callable[[], None],
        leadership: Leadership | None,
        deadline: int,
        cancellation: int,
    ) -> None:
        self.owner = owner
        self._engine, self._leadership = engine, leadership
        self._ensure_deployed, self._deadline, self._cancellation = ensure_deployed, deadline, cancellation
        self._released = False

    def run_tasks(self, tasks: Sequence[SlotTask]) -> list[Any]:
        """Run functions on the workers of the job and return their results."""
        if self._released:
            raise WorkersGone
        self._ensure_deployed()
        late = CommitTimedOut(len(tasks), self._deadline)
        engine = self._engine
        abandon = partial(engine.abandon, "tasks that commit output were cancelled and did not end")
        return run_watched(
            self._deadline, lambda: engine.run_tasks(tasks), engine.cancel, late, self._cancellation, abandon
        )

    def release(self) -> None:
        """Refuse further tasks: the engine may have failed, and the end of the job must not wait for it."""
        self._released = True

    def leads(self) -> bool:
        """Return whether this driver leads, according to the lease; False without high availability."""
        if self._leadership is None:
            return False
        self._leadership.verify()
        return True

    def backpressured(self) -> None:
        """Keep the lease while the job waits for the reader of its output, because it is not stuck. Raises
        `LeadershipGivenUp` if the lease was given up before: another driver may lead, so this one stops waiting."""
        if self._leadership is not None:
            self._leadership.report_progress()

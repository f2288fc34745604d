"""A cluster in this process: programs run where they are written.

Promises: submitting returns a client at once; pyspark is loaded only here, and only when a job is submitted.
Does not know: how the job is run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from millstream.client.job_client import JobClient
from millstream.config.configuration import Configuration
from millstream.graph.stream_graph import StreamGraph
from millstream.job.job_status import JobStatus

OnExecute = Callable[[StreamGraph, Configuration, str], None]

_intercept: list[OnExecute] = []
_defaults: dict[str, str] = {}


class PlanOnly(BaseException):
    """Raised in place of running a job when only its plan is wanted."""


class LocalHandle:
    """A job of this process as clients see it."""

    def __init__(self, running: Any) -> None:
        self._running = running
        self.id: str = running.id
        self.name: str = running.name

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end."""
        return bool(self._running.wait(timeout))

    def status(self) -> JobStatus:
        """The status now."""
        status: JobStatus = self._running.master.job.status
        return status

    def failure(self) -> BaseException | None:
        """Why it failed."""
        problem: BaseException | None = self._running.master.failure
        return problem

    def cancel(self) -> None:
        """End it."""
        self._running.master.cancel()

    def savepoint(self, directory: str | None, **how: Any) -> Future[str]:
        """Write a savepoint at the next epoch boundary."""
        asked: Future[str] = self._running.master.savepoint(directory, **how)
        return asked

    def rescale(self, parallelism: int | Mapping[str, int]) -> Future[int]:
        """Go on at another parallelism."""
        ordered: Future[int] = self._running.master.rescale(parallelism)
        return ordered

    def accumulators(self) -> dict[str, Any]:
        """Accumulators and user metrics, each counted once; the newest epochs and checkpoints, and their number."""
        totals: dict[str, Any] = self._running.totals.values()
        totals["millstream.epochs"] = [
            {"epoch": e.epoch, "duration_ms": e.duration_ms, "records": e.records, "watermark": e.watermark}
            for e in list(self._running.epochs)  # a copy: the job goes on while somebody asks
        ]
        totals["millstream.checkpoints"] = [
            {"id": c.id, "bytes": c.bytes, "full_bytes": c.full_bytes, "duration_ms": c.duration_ms, "path": c.path}
            for c in list(self._running.checkpoints)
        ]
        totals["millstream.epochs.count"] = self._running.epoch_count
        totals["millstream.checkpoints.count"] = self._running.checkpoint_count
        totals["millstream.restarts"] = self._running.master.job.restarts
        return totals

    def runtime(self) -> int:
        """Milliseconds it has run."""
        return int(1000 * ((self._running.ended_at or self._running.started_at) - self._running.started_at))

    def started(self) -> int:
        """When it was started, in milliseconds since 1970."""
        return int(self._running.submitted_at)


def submit(
    graph: StreamGraph, configuration: Configuration, name: str, listeners: Sequence[Callable[[Any], None]] = ()
) -> JobClient:
    """Run a program in this process."""
    if _intercept:
        _intercept[-1](graph, configuration, name)
        raise PlanOnly
    entrypoint = importlib.import_module("millstream.cluster.entrypoint")
    return JobClient(LocalHandle(entrypoint.submit(graph, configuration, name, listeners=listeners)))


def defaults() -> dict[str, str]:
    """Options that every new environment starts with: what the command line gave."""
    return dict(_defaults)

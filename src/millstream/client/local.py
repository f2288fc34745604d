"""Local cluster: programs run in the process that submits them.

Promises: `submit` returns a client at once; pyspark is imported only when a job is submitted.
Does not know: how the job runs."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from millstream.client import unexecuted
from millstream.client.job_client import JobClient
from millstream.client.job_progress import Progress
from millstream.client.live_display import is_notebook
from millstream.config.config_file import config_file, read_config_file
from millstream.config.configuration import Configuration
from millstream.graph.stream_graph import StreamGraph
from millstream.job.job_status import JobStatus
from millstream.option_keys import unknown_keys

OnExecute = Callable[[StreamGraph, Configuration, str], None]

_intercept: list[OnExecute] = []
_defaults: dict[str, str] = {}
_reported: set[tuple[str, str]] = set()  # unknown keys of configuration files, which are logged once
_log = logging.getLogger("millstream")


class PlanOnly(BaseException):
    """Raised instead of running a job when only its plan is needed."""


class LocalHandle:
    """The handle of a job that runs in this process."""

    def __init__(self, running: Any) -> None:
        self._running = running
        self.id: str = running.id
        self.name: str = running.name

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the job; False if it has not ended in time."""
        return bool(self._running.wait(timeout))

    def status(self) -> JobStatus:
        """Return the current status."""
        status: JobStatus = self._running.master.job.status
        return status

    def failure(self) -> BaseException | None:
        """Return the error that the job failed with."""
        problem: BaseException | None = self._running.master.failure
        return problem

    def cancel(self) -> None:
        """Cancel the job."""
        self._running.cancel()

    def savepoint(self, directory: str | None, **options: Any) -> Future[str]:
        """Request a savepoint at the next epoch boundary."""
        path: Future[str] = self._running.savepoint(directory, **options)
        return path

    def rescale(self, parallelism: int | Mapping[str, int]) -> Future[int]:
        """Request another parallelism."""
        slots: Future[int] = self._running.rescale(parallelism)
        return slots

    def accumulators(self) -> dict[str, Any]:
        """Return accumulators and user metrics, the newest epochs and checkpoints, and the number of all."""
        totals: dict[str, Any] = self._running.totals.values()
        totals["millstream.epochs"] = [
            {"epoch": e.epoch, "duration_ms": e.duration_ms, "records": e.records, "watermark": e.watermark}
            for e in list(self._running.epochs)  # a copy, because the job continues in its thread
        ]
        totals["millstream.checkpoints"] = [
            {"id": c.id, "bytes": c.bytes, "full_bytes": c.full_bytes, "duration_ms": c.duration_ms, "path": c.path}
            for c in self._running.checkpoints
        ]
        totals["millstream.epochs.count"] = self._running.epoch_count
        totals["millstream.checkpoints.count"] = self._running.checkpoint_count
        totals["millstream.restarts"] = self._running.master.job.restarts
        return totals

    def runtime(self) -> int:
        """Return the milliseconds that the job has run."""
        return int(1000 * ((self._running.ended_at or self._running.started_at) - self._running.started_at))

    def started(self) -> int:
        """Return when the job was submitted, in milliseconds since 1970."""
        return int(self._running.submitted_at)


def submit(
    graph: StreamGraph, configuration: Configuration, name: str, listeners: Sequence[Callable[[Any], None]] = ()
) -> JobClient:
    """Run a program in this process and return a client of its job."""
    if _intercept:
        _intercept[-1](graph, configuration, name)
        raise PlanOnly
    entrypoint = importlib.import_module("millstream.cluster.entrypoint")
    progress = Progress(name) if is_notebook() else None
    if progress is not None:
        listeners = (*listeners, progress)
    handle = LocalHandle(entrypoint.submit(graph, configuration, name, listeners=listeners))
    if not any(node.sink is not None and node.sink.driver_only for node in graph.nodes):
        unexecuted.note_job(handle)
    return JobClient(handle, progress)


def serve(settings: Mapping[str, str]) -> str | None:
    """Start the REST server and the web UI of this process, if a port is configured; return its URL."""
    entrypoint = importlib.import_module("millstream.cluster.entrypoint")
    address: str | None = entrypoint.serve(Configuration.from_dict({**defaults(), **settings}))
    return address


def add_application(path: str, create: Callable[[], Any]) -> None:
    """Serve an ASGI application below a path of the REST server. Call it before the server is started."""
    importlib.import_module("millstream.cluster.entrypoint").add_application(path, create)


def defaults() -> dict[str, str]:
    """Return the options that every new environment starts with: those of the configuration file and, over them, of the
    command line. Keys of the file that are not known are left out, which is logged once."""
    return {**_file_options(), **_defaults}


def _file_options() -> dict[str, str]:
    path = config_file()
    if path is None:
        return {}
    settings = read_config_file(path)
    for key, near in unknown_keys(Configuration.from_dict(settings)):
        del settings[key]
        if (str(path), key) not in _reported:
            _reported.add((str(path), key))
            hint = f"; did you mean '{near}'?" if near else ""
            _log.warning("the option '%s' of %s is not known and has no effect%s", key, path, hint)
    return settings

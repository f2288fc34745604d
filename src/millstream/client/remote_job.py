"""The client of a job that runs in another process: `JobClient` over REST.

Promises: it behaves like the client of a job in this process. A failed job raises its newest failure as text; user
accumulators are parsed from their text, if it is a Python literal.
Does not know: HTTP; `remote` does."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

from millstream.client.job_client import JobClient
from millstream.client.remote import RemoteCluster
from millstream.errors import ExternalError
from millstream.job.job_status import JobStatus

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between two polls

T = TypeVar("T")


class RemoteJobFailed(ExternalError):
    """A job of another process failed."""


def connect_job(cluster: RemoteCluster, job_id: str) -> JobClient:
    """Return the client of a job of a cluster."""
    return JobClient(RemoteHandle(cluster, job_id))


class RemoteHandle:
    """The handle of a job of a cluster."""

    def __init__(self, cluster: RemoteCluster, job_id: str) -> None:
        self._cluster = cluster
        self.id = job_id
        self.name = str(self._details()["name"])

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the job; False if it has not ended in time."""
        until = None if timeout is None else time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while not self.status().is_terminal_state():
            if until is not None and time.monotonic() >= until:
                return False
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)
        return True

    def status(self) -> JobStatus:
        """Return the current status."""
        return JobStatus[self._cluster.get(f"/jobs/{self.id}/status")["status"]]

    def failure(self) -> BaseException | None:
        """Return the error that the job failed with."""
        entries = self._cluster.get(f"/jobs/{self.id}/exceptions")["exceptionHistory"]["entries"]
        return RemoteJobFailed(entries[0]["stacktrace"] if entries else f"job '{self.name}' failed")

    def cancel(self) -> None:
        """Cancel the job."""
        self._cluster.cancel(self.id)

    def savepoint(self, directory: str | None, **options: Any) -> Future[str]:
        """Request a savepoint; `options` are fields of `SavepointRequest`."""
        form = options["form"].name if options.get("form") is not None else None
        if options.get("stop"):
            drain = bool(options.get("drain"))
            return _in_thread(lambda: self._cluster.stop(self.id, directory, form=form, drain=drain))
        cancel = bool(options.get("cancel"))
        return _in_thread(lambda: self._cluster.savepoint(self.id, directory, form=form, cancel=cancel))

    def rescale(self, parallelism: int | Mapping[str, int]) -> Future[int]:
        """Request another parallelism; the future has the number of slots."""
        return _in_thread(lambda: self._cluster.rescale(self.id, parallelism))

    def accumulators(self) -> dict[str, Any]:
        """Return the accumulators of the accepted epochs."""
        values = self._cluster.get(f"/jobs/{self.id}/accumulators")["user-task-accumulators"]
        return {value["name"]: _parse(value["value"]) for value in values}

    def runtime(self) -> int:
        """Return the milliseconds that the job has run."""
        return int(self._details()["duration"])

    def started(self) -> int:
        """Return when the job was submitted, in milliseconds since 1970."""
        return int(self._details()["start-time"])

    def _details(self) -> dict[str, Any]:
        details: dict[str, Any] = self._cluster.get(f"/jobs/{self.id}")
        return details


def _in_thread(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as problem:
            future.set_exception(problem)

    Thread(target=run, daemon=True).start()
    return future


def _parse(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text

"""A running job in the program's hands.

Promises: PyFlink's JobClient and JobExecutionResult; the result of a failed job raises the user's error first.
Does not know: where the job runs, beyond the handle it is given."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any, Protocol

from millstream.errors import MillstreamError, UserError
from millstream.job.futures import CompletableFuture
from millstream.job.ids import JobID
from millstream.job.job_status import JobStatus
from millstream.job.savepoints import SavepointFormatType


class JobCancelled(UserError):
    """The job was cancelled before it finished."""

    def __init__(self, name: str) -> None:
        super().__init__(f"job '{name}' was cancelled")


class JobExecutionResult:
    """How a finished job went."""

    def __init__(self, job_id: JobID, net_runtime: int, accumulators: dict[str, Any]) -> None:
        self._job_id, self._net_runtime, self._accumulators = job_id, net_runtime, accumulators

    def get_job_id(self) -> JobID:
        """The job's id."""
        return self._job_id

    def get_net_runtime(self) -> int:
        """Milliseconds from the start of the job to its end."""
        return self._net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """One accumulator, or None."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """All accumulators, user counters and distributions, and the job's own history under `millstream.`."""
        return dict(self._accumulators)

    def __str__(self) -> str:
        return f"Job with JobID {self._job_id} has finished.\nJob Runtime: {self._net_runtime} ms"

    __repr__ = __str__


class JobHandle(Protocol):
    """What a client needs of a job."""

    id: str
    name: str

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end."""

    def status(self) -> JobStatus:
        """The status now."""

    def failure(self) -> BaseException | None:
        """Why it failed."""

    def cancel(self) -> None:
        """End it."""

    def savepoint(self, directory: str | None, **how: Any) -> Future[str]:
        """Write a savepoint at the next epoch boundary."""

    def rescale(self, parallelism: int | Mapping[str, int]) -> Future[int]:
        """Go on at another parallelism; gives the number of slots."""

    def accumulators(self) -> dict[str, Any]:
        """What was counted so far."""

    def runtime(self) -> int:
        """Milliseconds it has run."""

    def started(self) -> int:
        """When it was started, in milliseconds since 1970."""


class JobClient:
    """Ask, wait for, or cancel a job."""

    def __init__(self, handle: JobHandle) -> None:
        self._handle = handle

    def get_job_id(self) -> JobID:
        """The job's id."""
        return JobID(self._handle.id)

    def get_job_status(self) -> CompletableFuture:
        """The status now."""
        return CompletableFuture.completed(self._handle.status())

    def cancel(self) -> CompletableFuture:
        """End the job; done when it has ended."""
        self._handle.cancel()
        return self._when_ended(lambda: None)

    def trigger_savepoint(
        self, savepoint_directory: str | None = None, format_type: SavepointFormatType | str | None = None
    ) -> CompletableFuture:
        """Write a savepoint while the job goes on; done, with its path, when it exists."""
        return self._savepoint(savepoint_directory, format_type)

    def stop_with_savepoint(
        self,
        advance_to_end_of_event_time: bool,
        savepoint_directory: str | None = None,
        format_type: SavepointFormatType | str | None = None,
    ) -> CompletableFuture:
        """End the job with a savepoint, all output committed; done, with its path, when the job has finished.

        With `advance_to_end_of_event_time` every timer and window fires first, as if the input had ended: for a job
        that will not be resumed."""
        drain = bool(advance_to_end_of_event_time)
        return self._savepoint(savepoint_directory, format_type, stop=True, drain=drain)

    def cancel_with_savepoint(
        self, savepoint_directory: str | None = None, format_type: SavepointFormatType | str | None = None
    ) -> CompletableFuture:
        """Cancel the job once there is a savepoint; done, with its path, when it is cancelled."""
        return self._savepoint(savepoint_directory, format_type, cancel=True)

    def _savepoint(self, directory: str | None, form: Any, **how: bool) -> CompletableFuture:
        return CompletableFuture(self._handle.savepoint(directory, form=SavepointFormatType.of(form), **how))

    def rescale(self, parallelism: int | Mapping[str, int]) -> CompletableFuture:
        """Go on at another parallelism from the next epoch on; done, with the number of slots, when the job does.

        A number is for all operators whose parallelism the program left open, a mapping of uids to numbers for those it
        names. What cannot run, such as more subtasks than the max parallelism, is refused at once."""
        return CompletableFuture(self._handle.rescale(parallelism))

    def get_accumulators(self) -> CompletableFuture:
        """What was counted so far."""
        return CompletableFuture.completed(self._handle.accumulators())

    def get_job_execution_result(self) -> CompletableFuture:
        """The result, once the job has ended."""
        return self._when_ended(self._result)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; False when it did not come in time."""
        return self._handle.wait(timeout)

    def _result(self) -> JobExecutionResult:
        handle = self._handle
        match handle.status():
            case JobStatus.FINISHED:
                return JobExecutionResult(JobID(handle.id), handle.runtime(), handle.accumulators())
            case JobStatus.CANCELED:
                raise JobCancelled(handle.name)
        problem = handle.failure()
        if isinstance(problem, MillstreamError):
            raise problem.with_traceback(None)
        assert problem is not None
        raise problem

    def _when_ended(self, then: Any) -> CompletableFuture:
        future: Future[Any] = Future()

        def wait() -> None:
            self._handle.wait()
            try:
                future.set_result(then())
            except BaseException as problem:
                future.set_exception(problem)

        Thread(target=wait, daemon=True).start()
        return CompletableFuture(future)

    def __repr__(self) -> str:
        return f"JobClient({self._handle.name!r}, {self._handle.id}, {self._handle.status().name})"

"""Client of a running job: PyFlink's JobClient and JobExecutionResult.

Promises: asking for the result of a failed job raises the error that the job failed with.
Does not know: where the job runs; it uses a `JobHandle`."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any, Protocol

from millstream.client.job_display import show_job
from millstream.client.job_progress import Progress
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
    """The result of a finished job: its runtime and its accumulators.

    Example:
        >>> from millstream.common import JobID
        >>> JobExecutionResult(JobID("0" * 32), 1_500, {"rows": 3}).get_accumulator_result("rows")
        3

    """

    def __init__(self, job_id: JobID, net_runtime: int, accumulators: dict[str, Any]) -> None:
        self._job_id, self._net_runtime, self._accumulators = job_id, net_runtime, accumulators

    def get_job_id(self) -> JobID:
        """Return the id of the job."""
        return self._job_id

    def get_net_runtime(self) -> int:
        """Return the milliseconds from the start of the job to its end."""
        return self._net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Return the result of one accumulator; None if there is none of this name. Names that begin with `millstream.`
        hold the newest epochs and checkpoints of the job.

        Args:
            accumulator_name: The name under which a function added the accumulator.

        """
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Return the results of all accumulators, user counters and distributions by name."""
        return {name: result for name, result in self._accumulators.items() if not name.startswith("millstream.")}

    def __str__(self) -> str:
        return f"Job with JobID {self._job_id} has finished.\nJob Runtime: {self._net_runtime} ms"

    __repr__ = __str__


class JobHandle(Protocol):
    """The operations on a job that a client needs."""

    id: str
    name: str

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the job; False if it has not ended in time."""

    def status(self) -> JobStatus:
        """Return the current status."""

    def failure(self) -> BaseException | None:
        """Return the error that the job failed with."""

    def cancel(self) -> None:
        """Cancel the job."""

    def savepoint(self, directory: str | None, **options: Any) -> Future[str]:
        """Request a savepoint at the next epoch boundary; `options` are fields of `SavepointRequest`."""

    def rescale(self, parallelism: int | Mapping[str, int]) -> Future[int]:
        """Request another parallelism; the future has the number of slots."""

    def accumulators(self) -> dict[str, Any]:
        """Return the accumulators of the accepted epochs."""

    def runtime(self) -> int:
        """Return the milliseconds that the job has run."""

    def started(self) -> int:
        """Return when the job was submitted, in milliseconds since 1970."""


class JobClient:
    """A client of one job: its status, savepoints, rescaling, cancellation and result.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> sink = env.from_collection([1, 2]).add_sink(lambda value: None)
        >>> client = env.execute_async("numbers")
        >>> result = client.get_job_execution_result().result()
        >>> client.get_job_status().result()
        <JobStatus.FINISHED: 6>

    """

    def __init__(self, handle: JobHandle, progress: Progress | None = None) -> None:
        """Create a client of a job. `progress` is shown in notebooks."""
        self._handle = handle
        self.progress = progress

    @property
    def name(self) -> str:
        """The name of the job."""
        return self._handle.name

    def get_job_id(self) -> JobID:
        """Return the id of the job."""
        return JobID(self._handle.id)

    def get_job_status(self) -> CompletableFuture:
        """Return the current status of the job."""
        return CompletableFuture.completed(self._handle.status())

    def cancel(self) -> CompletableFuture:
        """Cancel the job.

        Returns:
            A future that completes when the job has ended.

        """
        self._handle.cancel()
        return self._when_ended(lambda: None)

    def trigger_savepoint(
        self, savepoint_directory: str | None = None, format_type: SavepointFormatType | str | None = None
    ) -> CompletableFuture:
        """Trigger a savepoint; the job continues to run.

        Args:
            savepoint_directory: The target directory; by default `execution.checkpointing.savepoint-dir`.
            format_type: Native or canonical (default).

        Returns:
            A future with the path of the savepoint.

        """
        return self._savepoint(savepoint_directory, format_type)

    def stop_with_savepoint(
        self,
        advance_to_end_of_event_time: bool,
        savepoint_directory: str | None = None,
        format_type: SavepointFormatType | str | None = None,
    ) -> CompletableFuture:
        """Stop the job with a savepoint, after all output is committed.

        Args:
            advance_to_end_of_event_time: Whether to emit the maximum watermark first, so that all event-time timers and
                windows fire; for a job that will not be resumed.
            savepoint_directory: The target directory; by default `execution.checkpointing.savepoint-dir`.
            format_type: Native or canonical (default).

        Returns:
            A future with the path of the savepoint, when the job has finished.

        """
        drain = bool(advance_to_end_of_event_time)
        return self._savepoint(savepoint_directory, format_type, stop=True, drain=drain)

    def cancel_with_savepoint(
        self, savepoint_directory: str | None = None, format_type: SavepointFormatType | str | None = None
    ) -> CompletableFuture:
        """Write a savepoint and then cancel the job.

        Args:
            savepoint_directory: The target directory; by default `execution.checkpointing.savepoint-dir`.
            format_type: Native or canonical (default).

        Returns:
            A future with the path of the savepoint, when the job is cancelled.

        """
        return self._savepoint(savepoint_directory, format_type, cancel=True)

    def _savepoint(self, directory: str | None, form: Any, **options: bool) -> CompletableFuture:
        return CompletableFuture(self._handle.savepoint(directory, form=SavepointFormatType.of(form), **options))

    def rescale(self, parallelism: int | Mapping[str, int]) -> CompletableFuture:
        """Change the parallelism of the running job at the next epoch boundary.

        Args:
            parallelism: A number for all operators whose parallelism the program does not set, or a mapping of uids to
                numbers for single operators.

        Returns:
            A future with the number of slots, when the first epoch at this parallelism is accepted.

        Raises:
            UserError: If the job cannot run at this parallelism, for example because of its max parallelism.

        """
        return CompletableFuture(self._handle.rescale(parallelism))

    def get_accumulators(self) -> CompletableFuture:
        """Return the accumulators of the accepted epochs."""
        return CompletableFuture.completed(self._handle.accumulators())

    def get_job_execution_result(self) -> CompletableFuture:
        """Return a future with the result of the job, which completes when the job has ended."""
        return self._when_ended(self._result)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the job; False if it has not ended within `timeout` seconds.

        Args:
            timeout: Seconds; None waits without a limit.

        """
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

    def _when_ended(self, get_result: Any) -> CompletableFuture:
        future: Future[Any] = Future()

        def wait() -> None:
            self._handle.wait()
            try:
                future.set_result(get_result())
            except BaseException as problem:
                future.set_exception(problem)

        Thread(target=wait, daemon=True).start()
        return CompletableFuture(future)

    def _ipython_display_(self) -> None:
        """Show the job in a notebook."""
        show_job(self)

    def __repr__(self) -> str:
        return f"JobClient({self._handle.name!r}, {self._handle.id}, {self._handle.status().name})"

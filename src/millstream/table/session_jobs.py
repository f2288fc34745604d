"""The jobs of a session, for SHOW JOBS, DESCRIBE JOB and STOP JOB.

Promises: Flink's columns. The list holds all running jobs that the environment has submitted, and the most recent of
those that have ended.
Does not know: what the jobs do."""

from __future__ import annotations

from datetime import UTC, datetime

from millstream.client.job_client import JobClient, JobExecutionResult
from millstream.client.job_listener import JobListener
from millstream.sql.ddl import OK, StatementResult, make_string_result
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t

_MAX_ENDED_JOBS = 100
_COLUMNS = t.row_of(
    ["job id", "job name", "status", "start time"],
    [t.STRING, t.STRING, t.STRING, t.LocalZonedTimestampType(3)],
    null=False,
)


class SessionJobs(JobListener):
    """Keep the job clients of an environment."""

    def __init__(self) -> None:
        self._clients: dict[str, JobClient] = {}

    def on_job_submitted(self, job_client: JobClient | None, throwable: BaseException | None) -> None:
        """Add a job to the list, and remove the oldest ended jobs beyond the limit."""
        if job_client is None:
            return
        self._clients[str(job_client.get_job_id())] = job_client
        ended = [job_id for job_id, client in self._clients.items() if client._handle.status().is_terminal_state()]
        for job_id in ended[:-_MAX_ENDED_JOBS]:
            del self._clients[job_id]

    def on_job_executed(self, job_execution_result: JobExecutionResult | None, throwable: BaseException | None) -> None:
        """Do nothing: a job that has ended stays in the list."""

    def show(self) -> StatementResult:
        """Execute SHOW JOBS."""
        return StatementResult(_COLUMNS, tuple(_describe_job(client) for client in self._clients.values()))

    def describe(self, job: str, at: int | None) -> StatementResult:
        """Execute DESCRIBE JOB."""
        return StatementResult(_COLUMNS, (_describe_job(self._find_client(job, at)),))

    def stop(self, node: s.StopJob, directory: str | None) -> StatementResult:
        """Execute STOP JOB: cancel the job, or stop it with a savepoint in `directory` and return its path."""
        client = self._find_client(node.job, node.at)
        if client._handle.status().is_terminal_state():
            message = f"job '{node.job}' has already ended: its status is {client._handle.status().name}"
            raise SqlValidationError(message, at=node.at)
        if not node.savepoint:
            client.cancel().result()
            return OK
        return make_string_result(["savepoint path"], [(client.stop_with_savepoint(node.drain, directory).result(),)])

    def _find_client(self, job: str, at: int | None) -> JobClient:
        client = self._clients.get(job)
        if client is None:
            message = f"there is no job '{job}' in this session"
            raise SqlValidationError(message, at=at, hint=nearest(job, self._clients) or "see SHOW JOBS")
        return client


def _describe_job(client: JobClient) -> tuple[str, str, str, datetime]:
    handle = client._handle
    started = datetime.fromtimestamp(handle.started() / 1000, UTC)
    return handle.id, handle.name, handle.status().name, started

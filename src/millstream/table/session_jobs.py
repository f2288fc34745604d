"""The jobs of a session: SHOW JOBS, DESCRIBE JOB, STOP JOB.

Promises: Flink's columns; every job that the environment has submitted and that runs, and the last of those that have
ended.
Does not know: what the jobs do."""

from __future__ import annotations

from datetime import UTC, datetime

from millstream.client.job_client import JobClient, JobExecutionResult
from millstream.client.job_listener import JobListener
from millstream.sql.ddl import OK, StatementResult, make_string_result
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t

_ENDED_KEPT = 100
_COLUMNS = t.row_of(
    ["job id", "job name", "status", "start time"],
    [t.STRING, t.STRING, t.STRING, t.LocalZonedTimestampType(3)],
    null=False,
)


class SessionJobs(JobListener):
    """Keeps the clients of an environment's jobs."""

    def __init__(self) -> None:
        self._clients: dict[str, JobClient] = {}

    def on_job_submitted(self, job_client: JobClient | None, throwable: BaseException | None) -> None:
        """Keep a job; forget the oldest that have ended when there are many."""
        if job_client is None:
            return
        self._clients[str(job_client.get_job_id())] = job_client
        ended = [key for key, each in self._clients.items() if each._handle.status().is_terminal_state()]
        for key in ended[:-_ENDED_KEPT]:
            del self._clients[key]

    def on_job_executed(self, job_execution_result: JobExecutionResult | None, throwable: BaseException | None) -> None:
        """A job that has ended stays in the list."""

    def shown(self) -> StatementResult:
        """SHOW JOBS."""
        return StatementResult(_COLUMNS, tuple(_row(each) for each in self._clients.values()))

    def described(self, job: str, at: int | None) -> StatementResult:
        """DESCRIBE JOB."""
        return StatementResult(_COLUMNS, (_row(self._client(job, at)),))

    def stop(self, node: s.StopJob, directory: str | None) -> StatementResult:
        """STOP JOB: with a savepoint in `directory` the answer is its path; without one the job is cancelled."""
        client = self._client(node.job, node.at)
        if client._handle.status().is_terminal_state():
            message = f"job '{node.job}' has ended already: it is {client._handle.status().name}"
            raise SqlValidationError(message, at=node.at)
        if not node.savepoint:
            client.cancel().result()
            return OK
        return make_string_result(["savepoint path"], [(client.stop_with_savepoint(node.drain, directory).result(),)])

    def _client(self, job: str, at: int | None) -> JobClient:
        found = self._clients.get(job)
        if found is None:
            message = f"there is no job '{job}' in this session"
            raise SqlValidationError(message, at=at, hint=nearest(job, self._clients) or "see SHOW JOBS")
        return found


def _row(client: JobClient) -> tuple[str, str, str, datetime]:
    handle = client._handle
    started = datetime.fromtimestamp(handle.started() / 1000, UTC)
    return handle.id, handle.name, handle.status().name, started

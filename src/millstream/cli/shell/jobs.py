"""The jobs of a shell: their progress, and the jobs that run in the background.

Promises: a progress belongs to the job that a statement started and to no other; the failure of a job is reported once,
with the statement that started it.
Does not know: statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from millstream.cli.shell.screen import Screen, StatusLine
from millstream.cli.shell.statements import StatementFailed, StatementLocation
from millstream.client.job_client import JobCancelled, JobClient
from millstream.client.job_progress import Progress
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.job.job_status import JobStatus


@contextmanager
def observe_job(env: StreamExecutionEnvironment, name: str) -> Iterator[Progress]:
    """Observe the progress of the job that is submitted inside of the context."""
    progress = Progress(name)
    env._listeners.append(progress)
    try:
        yield progress
    finally:
        env._listeners.remove(progress)


def show_progress(progress: Progress, show: Callable[[str], None]) -> None:
    """Call `show` with a summary whenever the progress changes."""
    progress.on_change = lambda: show(summarize(progress))


def summarize(progress: Progress) -> str:
    """Return the progress of a job as one line."""
    names = ("epoch", "rows", "watermark", "lag")
    facts = [f"{name} {text}" for name, text in progress.rows() if name in names]
    status = progress.status.name.lower()
    return "; ".join([status if progress.status is not JobStatus.CREATED else "starting", *facts])


@dataclass
class BackgroundJob:
    """A job that runs in the background, and the statement that started it."""

    client: JobClient
    progress: Progress
    location: StatementLocation
    is_reported: bool = False

    def status(self) -> JobStatus:
        """Return the current status."""
        status: JobStatus = self.client.get_job_status().result()
        return status

    def check(self) -> None:
        """Wait for the end of the job and raise `StatementFailed` if it failed."""
        self.is_reported = True
        try:
            self.client.get_job_execution_result().result()
        except JobCancelled:
            return  # STOP JOB
        except Exception as problem:
            raise StatementFailed(problem, self.location) from problem


class BackgroundJobs:
    """The jobs that statements started and did not wait for."""

    def __init__(self, env: StreamExecutionEnvironment, screen: Screen) -> None:
        self._env, self._screen = env, screen
        self._jobs: list[BackgroundJob] = []

    def add(self, job: BackgroundJob, *, wait: bool) -> None:
        """Add a job, or with `wait`, wait for its end."""
        job_id = job.client.get_job_id()
        if wait:
            self._screen.message(f"job {job_id} is running; Ctrl-C stops it")
            self._wait([job])
            self._screen.message(f"job {job_id} has finished")
            return
        self._jobs.append(job)
        self._screen.message(f"job {job_id} was submitted")

    def wait(self) -> None:
        """Wait for all jobs; the first failure is raised."""
        unreported = [job for job in self._jobs if not job.is_reported]
        if self._running():
            self._screen.message(f"waiting for {_count_jobs(len(self._running()))}; Ctrl-C stops")
        self._wait(unreported)

    def _wait(self, jobs: Sequence[BackgroundJob]) -> None:
        with StatusLine(self._screen.out, self._screen.err) as status:
            for job in jobs:
                show_progress(job.progress, status.show)
            waiting = list(jobs)
            try:
                while waiting:
                    for job in [job for job in waiting if job.client.wait(0.1 / len(waiting))]:
                        waiting.remove(job)
                        job.check()
            except KeyboardInterrupt:
                for job in waiting:
                    self._env._interrupt(job.client)
                raise

    def report_ended(self, report_error: Callable[[Exception, str], None]) -> None:
        """Report jobs that have ended since the last call."""
        for job in self._jobs:
            status = job.status()
            if job.is_reported or not status.is_terminal_state():
                continue
            name = f"job {job.client.get_job_id()}"
            try:
                job.check()
            except StatementFailed as failed:
                report_error(failed.error, f"{name} failed: ")
            else:
                self._screen.message(f"{name} is {status.name.lower()}")

    def describe_running(self) -> str | None:
        """Return the number of running jobs as text, such as "2 jobs"; None if no job is running."""
        count = len(self._running())
        return _count_jobs(count) if count else None

    def _running(self) -> list[BackgroundJob]:
        return [job for job in self._jobs if not job.status().is_terminal_state()]

    def end(self) -> None:
        """Stop the running jobs, as the option `millstream.on-interrupt` says."""
        running = self._running()
        if running:
            self._screen.message(f"stopping {_count_jobs(len(running))}")
        for job in running:
            self._env._interrupt(job.client)


def _count_jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"

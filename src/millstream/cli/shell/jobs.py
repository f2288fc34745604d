"""The jobs of a shell: how they are getting on, and what becomes of those that go on behind it.

Promises: the progress of a job is that of the job a statement started, and of no other; a job that fails is told once,
by the statement that started it.
Does not know: statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from millstream.cli.shell.failures import Failed, Place
from millstream.cli.shell.screen import Screen
from millstream.cli.shell.status import StatusLine
from millstream.client.job_client import JobCancelled, JobClient
from millstream.client.progress import Progress
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.job.job_status import JobStatus


@contextmanager
def watched(env: StreamExecutionEnvironment, name: str) -> Iterator[Progress]:
    """Have the progress of the job that is submitted inside."""
    progress = Progress(name)
    env._listeners.append(progress)
    try:
        yield progress
    finally:
        env._listeners.remove(progress)


def shown_on(progress: Progress, show: Callable[[str], None]) -> None:
    """Have a line shown whenever something changes."""
    progress.on_change = lambda: show(summary(progress))


def summary(progress: Progress) -> str:
    """How a job is getting on, on one line."""
    wanted = ("epoch", "rows", "watermark", "lag")
    facts = [f"{name} {text}" for name, text in progress.rows() if name in wanted]
    status = progress.status.name.lower()
    return "; ".join([status if progress.status is not JobStatus.CREATED else "starting", *facts])


@dataclass
class BackgroundJob:
    """A job that a statement left running."""

    client: JobClient
    progress: Progress
    place: Place
    told: bool = False

    def status(self) -> JobStatus:
        """Its status now."""
        status: JobStatus = self.client.get_job_status().result()
        return status

    def check(self) -> None:
        """Raise what made it fail."""
        self.told = True
        try:
            self.client.get_job_execution_result().result()
        except JobCancelled:
            return  # by STOP JOB
        except Exception as problem:
            raise Failed(problem, self.place) from problem


class BackgroundJobs:
    """The jobs that statements have left running."""

    def __init__(self, env: StreamExecutionEnvironment, screen: Screen) -> None:
        self._env, self._screen = env, screen
        self._jobs: list[BackgroundJob] = []

    def add(self, job: BackgroundJob, *, wait: bool) -> None:
        """Take a job over, or wait for its end."""
        job_id = job.client.get_job_id()
        if wait:
            self._screen.tell(f"job {job_id} runs, Ctrl-C stops it")
            self._wait([job])
            self._screen.tell(f"job {job_id} has finished")
            return
        self._jobs.append(job)
        self._screen.tell(f"job {job_id} was submitted")

    def wait(self) -> None:
        """Wait for all jobs; the first that fails raises."""
        waiting = [job for job in self._jobs if not job.told]
        if self._running():
            self._screen.tell(f"waiting for {_jobs(len(self._running()))}, Ctrl-C stops")
        self._wait(waiting)

    def _wait(self, jobs: Sequence[BackgroundJob]) -> None:
        with StatusLine(self._screen.out, self._screen.err) as status:
            for job in jobs:
                shown_on(job.progress, status.show)
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

    def tell_ended(self, problem: Callable[[Exception, str], None]) -> None:
        """Tell of jobs that have ended since this was last asked for."""
        for job in self._jobs:
            status = job.status()
            if job.told or not status.is_terminal_state():
                continue
            about = f"job {job.client.get_job_id()}"
            try:
                job.check()
            except Failed as failed:
                problem(failed.error, f"{about} failed: ")
            else:
                self._screen.tell(f"{about} is {status.name.lower()}")

    def running(self) -> str | None:
        """How many jobs run, in words; None for none."""
        count = len(self._running())
        return _jobs(count) if count else None

    def _running(self) -> list[BackgroundJob]:
        return [job for job in self._jobs if not job.status().is_terminal_state()]

    def end(self) -> None:
        """End those that still run, as `millstream.on-interrupt` says."""
        left = self._running()
        if left:
            self._screen.tell(f"ending {_jobs(len(left))}")
        for job in left:
            self._env._interrupt(job.client)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"

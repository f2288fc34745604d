"""Who is told when a program submits jobs and when they end.

Promises: a listener that raises is reported in the log and disturbs neither the job nor other listeners.
Does not know: what runs the jobs."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from millstream.client.job_client import JobClient, JobExecutionResult

_log = logging.getLogger("millstream.client")


class JobListener(ABC):
    """Told of the jobs of an environment, in the program's own thread."""

    @abstractmethod
    def on_job_submitted(self, job_client: JobClient | None, throwable: BaseException | None) -> None:
        """A job was submitted, or could not be: one of the two is None."""

    @abstractmethod
    def on_job_executed(self, job_execution_result: JobExecutionResult | None, throwable: BaseException | None) -> None:
        """A job run by `execute` has ended, well or not: one of the two is None."""


def tell(listeners: Iterable[JobListener], what: Callable[[JobListener], None]) -> None:
    """Tell every listener, whatever another one does."""
    for listener in listeners:
        try:
            what(listener)
        except Exception:
            _log.exception("the job listener %s raised; the job goes on", type(listener).__name__)

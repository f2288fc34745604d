"""Job listeners: notified when a program submits jobs and when they end.

Promises: an error of a listener is logged and affects neither the job nor other listeners.
Does not know: what runs the jobs."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from millstream.client.job_client import JobClient, JobExecutionResult

_log = logging.getLogger("millstream.client")


class JobListener(ABC):
    """Is notified of the jobs of an environment, in the thread of the program."""

    @abstractmethod
    def on_job_submitted(self, job_client: JobClient | None, throwable: BaseException | None) -> None:
        """Called after a job was submitted, or could not be submitted: one of the two arguments is None."""

    @abstractmethod
    def on_job_executed(self, job_execution_result: JobExecutionResult | None, throwable: BaseException | None) -> None:
        """Called after a job that `execute` ran has finished or failed: one of the two arguments is None."""


def notify_listeners(listeners: Iterable[JobListener], call: Callable[[JobListener], None]) -> None:
    """Call every listener, whether others fail or not."""
    for listener in listeners:
        try:
            call(listener)
        except Exception:
            _log.exception("the job listener %s raised; the job continues", type(listener).__name__)

"""The statuses of a job.

Promises: Flink's names, and which of them are final.
Does not know: which status follows which; the job machine decides that."""

from __future__ import annotations

from enum import Enum


class JobStatus(Enum):
    """The status of a job.

    Example:
        >>> JobStatus.RESTARTING.is_terminal_state(), JobStatus.FINISHED.is_globally_terminal_state()
        (False, True)

    """

    CREATED = 0
    RUNNING = 1
    FAILING = 2
    FAILED = 3
    CANCELLING = 4
    CANCELED = 5
    FINISHED = 6
    RESTARTING = 7
    SUSPENDED = 8
    RECONCILING = 9

    def is_globally_terminal_state(self) -> bool:
        """Return whether the job has ended: no process will run or recover it again."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """Return whether the job has ended in this process; a suspended job may continue in another one."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()

"""Times of a job and states of its subtasks, as Flink's clients read them.

Promises: pure functions of the statistics of a job; times are milliseconds since 1970.
Does not know: requests."""

from __future__ import annotations

from millstream.cluster.job_statistics import Statistics
from millstream.job.job_status import JobStatus

EXECUTION_STATES = (
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "INITIALIZING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
)


def start_time(statistics: Statistics) -> int:
    """Return when a job was submitted."""
    return statistics.status_times[JobStatus.CREATED]


def end_time(statistics: Statistics) -> int:
    """Return when a job ended; -1 if it runs."""
    return statistics.status_times[statistics.status] if statistics.status.is_terminal_state() else -1


def duration(statistics: Statistics, now: int) -> int:
    """Return how long a job has run, in milliseconds."""
    end = end_time(statistics)
    return (now if end < 0 else end) - start_time(statistics)


def execution_state(status: JobStatus) -> str:
    """Return the state of the subtasks of a job."""
    match status:
        case JobStatus.RUNNING | JobStatus.FINISHED | JobStatus.CANCELED | JobStatus.FAILED | JobStatus.CREATED:
            return status.name
        case JobStatus.CANCELLING | JobStatus.SUSPENDED | JobStatus.FAILING:
            return "CANCELING"
        case _:
            return "SCHEDULED"


def count_states(state: str, number: int) -> dict[str, int]:
    """Return the number of subtasks in each state; all of them are in the same one."""
    return {name: number if name == state else 0 for name in EXECUTION_STATES}

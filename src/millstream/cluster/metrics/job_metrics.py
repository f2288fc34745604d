"""The metrics of a job, under Flink's names.

Promises: pure functions of the statistics of the job.
Does not know: tasks and operators, see `task_metrics`."""

from __future__ import annotations

from millstream.cluster.job_statistics import Statistics
from millstream.cluster.metrics.metric import Value
from millstream.job.job_status import JobStatus

_NEVER = -1
_CHECKPOINT_NUMBERS = (
    "lastCheckpointDuration",
    "lastCheckpointSize",
    "lastCheckpointFullSize",
    "lastCheckpointCompletedTimestamp",
    "lastCompletedCheckpointId",
)
_TIMED_STATUSES = {
    "createdTime": JobStatus.CREATED,
    "runningTime": JobStatus.RUNNING,
    "restartingTime": JobStatus.RESTARTING,
    "failingTime": JobStatus.FAILING,
    "cancellingTime": JobStatus.CANCELLING,
}


def job_metrics(statistics: Statistics, now: int) -> dict[str, Value]:
    """Return the metrics of a job by name. Times are in milliseconds."""
    status = statistics.status
    completed = statistics.checkpoint_count + statistics.savepoint_count
    since = now - statistics.status_times.get(status, now)
    metrics: dict[str, Value] = {
        "uptime": since if status is JobStatus.RUNNING else 0,
        "downtime": since if status in (JobStatus.RESTARTING, JobStatus.FAILING) else 0,
        "numRestarts": statistics.restarts,
        "numRescales": len(statistics.rescales),
        **{name: since if status is timed else 0 for name, timed in _TIMED_STATUSES.items()},
        "totalNumberOfCheckpoints": completed + statistics.failed_checkpoint_count,
        "numberOfInProgressCheckpoints": 0,
        "numberOfCompletedCheckpoints": completed,
        "numberOfFailedCheckpoints": statistics.failed_checkpoint_count,
        "lastCheckpointRestoreTimestamp": _NEVER if statistics.restored is None else statistics.restored.time,
        "numEpochs": statistics.epochs,
        "numRecordsIn": statistics.records,
    }
    return metrics | _last_checkpoint(statistics) | _last_epoch(statistics)


def _last_checkpoint(statistics: Statistics) -> dict[str, Value]:
    if not statistics.checkpoints:
        return dict.fromkeys(_CHECKPOINT_NUMBERS, _NEVER)
    last = statistics.checkpoints[-1]
    return {
        "lastCheckpointDuration": round(last.event.duration_ms),
        "lastCheckpointSize": last.event.bytes,
        "lastCheckpointFullSize": last.event.full_bytes,
        "lastCheckpointCompletedTimestamp": last.time,
        "lastCheckpointExternalPath": last.event.path,
        "lastCompletedCheckpointId": last.event.id,
    }


def _last_epoch(statistics: Statistics) -> dict[str, Value]:
    last = statistics.last_epoch
    if last is None:
        return {}
    metrics: dict[str, Value] = {"lastEpochDuration": last.event.duration_ms, "lastEpochRecords": last.event.records}
    return metrics if last.event.lag is None else metrics | {"pendingRecords": last.event.lag}

"""REST resources of checkpoints: counts, history, sizes and configuration.

Promises: Flink's fields, for the newest checkpoints.
Does not know: how checkpoints are taken."""

from __future__ import annotations

from itertools import zip_longest
from typing import Annotated, Any, Literal, NotRequired

from fastapi import APIRouter, Body, status
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from millstream import options
from millstream.cluster.dispatcher import DispatchedJob
from millstream.cluster.job_events import CheckpointDone, CheckpointFailed, RestoreDone, SavepointDone
from millstream.cluster.job_statistics import Timed
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.distributions import summarize_numbers
from millstream.cluster.rest.errors import NotFound
from millstream.cluster.rest.operations import FAILED_OPERATION, OperationAnswer, TriggerAnswer, answer_operation
from millstream.cluster.rest.paths import JobPath, TriggerPath
from millstream.cluster.rest.triggers import Triggers
from millstream.graph.execution_plan import PlannedVertex
from millstream.times import millis


class Checkpoint(TypedDict):
    """A checkpoint that was completed, or has failed; or a savepoint."""

    className: str
    id: int
    status: str
    is_savepoint: bool
    savepointFormat: str | None
    trigger_timestamp: int
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int
    checkpoint_type: str
    tasks: dict[str, Any]
    external_path: str
    discarded: bool
    failure_timestamp: NotRequired[int]
    failure_message: NotRequired[str]


class RestoredCheckpoint(TypedDict):
    """The checkpoint or savepoint that the job was last restored from."""

    id: int
    restore_timestamp: int
    is_savepoint: bool
    savepointFormat: str | None
    external_path: str


class LatestCheckpoints(TypedDict):
    """The newest checkpoint of each type."""

    completed: Checkpoint | None
    savepoint: Checkpoint | None
    failed: Checkpoint | None
    restored: RestoredCheckpoint | None


class CheckpointHistory(TypedDict):
    """Numbers of checkpoints, statistics of their sizes and durations, and the newest ones, newest first."""

    counts: dict[str, int]
    summary: dict[str, dict[str, float]]
    latest: LatestCheckpoints
    history: list[Checkpoint]


class CheckpointConfiguration(TypedDict):
    """How checkpoints are configured."""

    mode: str
    interval: int
    timeout: int
    min_pause: int
    max_concurrent: int
    externalization: dict[str, bool]
    state_backend: str
    checkpoint_storage: str
    unaligned_checkpoints: bool
    tolerable_failed_checkpoints: int
    aligned_checkpoint_timeout: int
    checkpoints_after_tasks_finish: bool
    state_changelog_enabled: bool
    changelog_storage: str | None
    changelog_periodic_materialization_interval: int


class CheckpointTrigger(BaseModel):
    """The request for a checkpoint."""

    model_config = ConfigDict(populate_by_name=True, extra="ignore")

    checkpoint_type: Literal["CONFIGURED", "FULL", "INCREMENTAL"] = Field("CONFIGURED", alias="checkpointType")
    trigger_id: str | None = Field(None, alias="triggerId", pattern="^[0-9a-fA-F]{32}$")


_NOT_KNOWN = ("alignment_buffered", "processed_data", "persisted_data")


class NoSuchCheckpoint(NotFound):
    """The checkpoint does not exist, or is not among the newest ones."""

    def __init__(self, number: int) -> None:
        super().__init__(f"there is no checkpoint {number} among the newest ones")


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of checkpoints."""
    router = APIRouter(tags=["checkpoints"])
    dispatcher = context.dispatcher
    triggers: Triggers[int] = Triggers(context.clock.precise, context.new_id)

    @router.get("/jobs/{job_id}/checkpoints")
    def list_checkpoints(job_id: JobPath) -> CheckpointHistory:
        """Return the newest checkpoints of a job."""
        job = dispatcher.job(job_id)
        statistics = job.statistics()
        checkpoints = [_describe(job, checkpoint) for checkpoint in statistics.checkpoints]
        savepoints = [_describe_savepoint(job, savepoint) for savepoint in statistics.savepoints]
        completed = statistics.checkpoint_count + statistics.savepoint_count
        failed = [_describe_failed(job, checkpoint) for checkpoint in statistics.failed_checkpoints]
        return {
            "counts": {
                "restored": statistics.restore_count,
                "total": completed + statistics.failed_checkpoint_count,
                "in_progress": 0,
                "completed": completed,
                "failed": statistics.failed_checkpoint_count,
            },
            "summary": {name: _summarize(checkpoints + savepoints, name) for name in _NUMBERS},
            "latest": {
                "completed": checkpoints[-1] if checkpoints else None,
                "savepoint": savepoints[-1] if savepoints else None,
                "failed": failed[-1] if failed else None,
                "restored": None if statistics.restored is None else _describe_restored(statistics.restored),
            },
            "history": sorted(checkpoints + savepoints + failed, key=lambda each: -each["latest_ack_timestamp"]),
        }

    @router.post("/jobs/{job_id}/checkpoints", status_code=status.HTTP_202_ACCEPTED)
    def trigger_checkpoint(
        job_id: JobPath, request: Annotated[CheckpointTrigger | None, Body()] = None
    ) -> TriggerAnswer:
        """Take a checkpoint at the next epoch boundary. The type has no effect, because every checkpoint is
        complete."""
        job = dispatcher.job(job_id)
        return {"request-id": triggers.trigger(job.id, None if request is None else request.trigger_id, job.checkpoint)}

    @router.get("/jobs/{job_id}/checkpoints/config")
    def get_checkpoint_configuration(job_id: JobPath) -> CheckpointConfiguration:
        """Return how checkpoints are configured."""
        return _describe_configuration(dispatcher.job(job_id))

    @router.get("/jobs/{job_id}/checkpoints/details/{number}")
    def get_checkpoint(job_id: JobPath, number: int) -> Checkpoint:
        """Return one of the newest checkpoints."""
        return find_checkpoint(dispatcher.job(job_id), number)[0]

    # after the paths above, from which a trigger id differs in its form
    @router.get("/jobs/{job_id}/checkpoints/{trigger_id}", response_model=OperationAnswer, responses=FAILED_OPERATION)
    def get_triggered_checkpoint(job_id: JobPath, trigger_id: TriggerPath) -> OperationAnswer | JSONResponse:
        """Return whether a checkpoint is complete, and its number."""
        operation = triggers.get(dispatcher.job(job_id).id, trigger_id)
        return answer_operation(operation, lambda number: {"checkpointId": number, "failureCause": None})

    return router


_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_NUMBERS = (
    "checkpointed_size",
    "state_size",
    "end_to_end_duration",
    "alignment_buffered",
    "processed_data",
    "persisted_data",
)


def find_checkpoint(job: DispatchedJob, number: int) -> tuple[Checkpoint, CheckpointDone | None]:
    """Return one of the newest checkpoints, and its event; None if it has failed, or is a savepoint.

    Raises:
        NoSuchCheckpoint: None of them has this number.

    """
    statistics = job.statistics()
    for checkpoint in statistics.checkpoints:
        if checkpoint.event.id == number:
            return _describe_tasks(job, _describe(job, checkpoint), checkpoint.event), checkpoint.event
    for savepoint in statistics.savepoints:
        if savepoint.event.id == number:
            return _describe_tasks(job, _describe_savepoint(job, savepoint), None), None
    for failed in statistics.failed_checkpoints:
        if failed.event.id == number:
            return _describe_failed(job, failed), None
    raise NoSuchCheckpoint(number)


def subtask_sizes(planned: PlannedVertex, done: CheckpointDone | None) -> list[int]:
    """Return the size of the state of each subtask in a checkpoint; -1 for those that are not known."""
    states = {} if done is None else done.state_bytes
    known = [states[node.operator] for node in planned.vertex.nodes if node.operator in states]
    return [sum(sizes) for sizes in zip_longest(*known, fillvalue=0)] or [-1] * planned.task.parallelism


def summarize(values: list[int]) -> dict[str, float]:
    """Return the distribution of numbers; its average is an integer, which Flink's clients expect."""
    numbers = summarize_numbers(values, _QUANTILES)
    return {**numbers, "avg": round(numbers["avg"])}


def _describe(job: DispatchedJob, checkpoint: Timed[CheckpointDone]) -> Checkpoint:
    done = checkpoint.event
    subtasks = sum(planned.task.parallelism for planned in job.plan().vertices)
    return {
        "className": "completed",
        "id": done.id,
        "status": "COMPLETED",
        "is_savepoint": False,
        "savepointFormat": None,
        "trigger_timestamp": checkpoint.time - round(done.duration_ms),
        "latest_ack_timestamp": checkpoint.time,
        "checkpointed_size": done.bytes,
        "state_size": done.full_bytes,
        "end_to_end_duration": round(done.duration_ms),
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": subtasks,
        "num_acknowledged_subtasks": subtasks,
        "checkpoint_type": "CHECKPOINT",
        "tasks": {},
        "external_path": done.path,
        "discarded": False,
    }


def _describe_failed(job: DispatchedJob, checkpoint: Timed[CheckpointFailed]) -> Checkpoint:
    failed = checkpoint.event
    nothing = CheckpointDone(failed.id, 0, 0, 0, failed.duration_ms, "")
    return {
        **_describe(job, Timed(checkpoint.time, nothing)),
        "className": "failed",
        "status": "FAILED",
        "num_acknowledged_subtasks": 0,
        "failure_timestamp": checkpoint.time,
        "failure_message": failed.cause,
    }


def _describe_savepoint(job: DispatchedJob, savepoint: Timed[SavepointDone]) -> Checkpoint:
    written = savepoint.event
    whole = CheckpointDone(written.id, 0, written.bytes, written.bytes, written.duration_ms, written.path)
    return {
        **_describe(job, Timed(savepoint.time, whole)),
        "is_savepoint": True,
        "savepointFormat": written.form.upper(),
        "checkpoint_type": "SYNC_SAVEPOINT" if written.is_last else "SAVEPOINT",
    }


def _describe_restored(restored: Timed[RestoreDone]) -> RestoredCheckpoint:
    return {
        "id": restored.event.id,
        "restore_timestamp": restored.time,
        "is_savepoint": restored.event.is_savepoint,
        "savepointFormat": None,
        "external_path": restored.event.path,
    }


def _describe_tasks(job: DispatchedJob, checkpoint: Checkpoint, done: CheckpointDone | None) -> Checkpoint:
    """Add the vertices, all of which are part of every checkpoint. The bytes that each wrote since the last checkpoint
    are not known: -1."""
    sizes = {planned.task.vertex: subtask_sizes(planned, done) for planned in job.plan().vertices}
    copied = ("status", "latest_ack_timestamp", "end_to_end_duration", *_NOT_KNOWN)
    return {
        **checkpoint,
        "tasks": {
            vertex: {
                **{name: checkpoint[name] for name in copied},  # type: ignore[literal-required]
                "id": checkpoint["id"],
                "checkpointed_size": -1,
                "state_size": max(-1, sum(of_subtasks)),
                "num_subtasks": len(of_subtasks),
                "num_acknowledged_subtasks": len(of_subtasks),
            }
            for vertex, of_subtasks in sizes.items()
        },
    }


def _summarize(checkpoints: list[Checkpoint], name: str) -> dict[str, float]:
    return summarize([checkpoint[name] for checkpoint in checkpoints])  # type: ignore[literal-required]


def _describe_configuration(job: DispatchedJob) -> CheckpointConfiguration:
    get = job.configuration.get
    interval, retention = get(options.CHECKPOINT_INTERVAL), str(get(options.CHECKPOINT_RETENTION)).upper()
    return {
        "mode": "exactly_once",
        "interval": millis(interval) if interval is not None else 0,
        "timeout": millis(get(options.CHECKPOINT_TIMEOUT)),
        "min_pause": millis(get(options.CHECKPOINT_MIN_PAUSE)),
        "max_concurrent": 1,
        "externalization": {
            "enabled": retention != "NO_EXTERNALIZED_CHECKPOINTS",
            "delete_on_cancellation": retention == "DELETE_ON_CANCELLATION",
        },
        "state_backend": str(get(options.STATE_BACKEND)),
        "checkpoint_storage": str(get(options.CHECKPOINT_DIR) or get(options.CHECKPOINT_STORAGE) or ""),
        "unaligned_checkpoints": False,
        "tolerable_failed_checkpoints": get(options.TOLERABLE_FAILED_CHECKPOINTS),
        "aligned_checkpoint_timeout": 0,
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": False,
        "changelog_storage": None,
        "changelog_periodic_materialization_interval": 0,
    }

"""REST resources of checkpoints: counts, history, sizes and configuration.

Promises: Flink's fields, for the newest checkpoints.
Does not know: how checkpoints are taken."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, status
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from millstream import options
from millstream.cluster.dispatcher import DispatchedJob
from millstream.cluster.job_events import CheckpointDone
from millstream.cluster.job_statistics import At
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.distributions import summarize_numbers
from millstream.cluster.rest.errors import NotFound
from millstream.cluster.rest.operations import OperationAnswer, TriggerAnswer, answer_operation
from millstream.cluster.rest.paths import JobPath, TriggerPath
from millstream.cluster.rest.triggers import Triggers
from millstream.times import millis


class Checkpoint(TypedDict):
    """A completed checkpoint."""

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


class CheckpointHistory(TypedDict):
    """Numbers of checkpoints, statistics of their sizes and durations, and the newest ones, newest first."""

    counts: dict[str, int]
    summary: dict[str, dict[str, float]]
    latest: dict[str, Checkpoint | None]
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
        count = statistics.checkpoint_count
        return {
            "counts": {
                "restored": statistics.restarts,
                "total": count,
                "in_progress": 0,
                "completed": count,
                "failed": 0,
            },
            "summary": {name: _summarize(checkpoints, name) for name in _NUMBERS},
            "latest": {
                "completed": checkpoints[-1] if checkpoints else None,
                "savepoint": None,
                "failed": None,
                "restored": None,
            },
            "history": checkpoints[::-1],
        }

    @router.post("/jobs/{job_id}/checkpoints", status_code=status.HTTP_202_ACCEPTED)
    def trigger_checkpoint(
        job_id: JobPath, request: Annotated[CheckpointTrigger | None, Body()] = None
    ) -> TriggerAnswer:
        """Take a checkpoint at the next epoch boundary. All types are the same: each is complete in itself."""
        job = dispatcher.job(job_id)
        return {"request-id": triggers.trigger(job.id, None if request is None else request.trigger_id, job.checkpoint)}

    @router.get("/jobs/{job_id}/checkpoints/config")
    def get_checkpoint_configuration(job_id: JobPath) -> CheckpointConfiguration:
        """Return how checkpoints are configured."""
        return _describe_configuration(dispatcher.job(job_id))

    @router.get("/jobs/{job_id}/checkpoints/details/{number}")
    def get_checkpoint(job_id: JobPath, number: int) -> Checkpoint:
        """Return one of the newest checkpoints."""
        job = dispatcher.job(job_id)
        for checkpoint in job.statistics().checkpoints:
            if checkpoint.event.id == number:
                return _describe(job, checkpoint)
        raise NoSuchCheckpoint(number)

    # After the paths above: a trigger id has another form than their last parts.
    @router.get("/jobs/{job_id}/checkpoints/{trigger_id}", response_model=OperationAnswer)
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


def _describe(job: DispatchedJob, checkpoint: At[CheckpointDone]) -> Checkpoint:
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


def _summarize(checkpoints: list[Checkpoint], name: str) -> dict[str, float]:
    """Return the distribution of one number; its average is an integer, which Flink's clients expect."""
    numbers = summarize_numbers([checkpoint[name] for checkpoint in checkpoints], _QUANTILES)  # type: ignore[literal-required]
    return {**numbers, "avg": round(numbers["avg"])}


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

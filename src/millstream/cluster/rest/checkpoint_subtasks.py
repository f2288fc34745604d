"""REST resource of the subtasks of a vertex in one checkpoint.

Promises: Flink's fields. All subtasks are at the boundary of one epoch, so none waits for another: alignment is zero.
Fields that are not measured are -1, which Flink's dashboard shows as a dash.
Does not know: checkpoints as a whole, see `checkpoints`."""

from __future__ import annotations

from typing import Any, NotRequired

from fastapi import APIRouter
from typing_extensions import TypedDict

from millstream.cluster.rest.checkpoints import Checkpoint, find_checkpoint, subtask_sizes, summarize
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.paths import JobPath, VertexPath
from millstream.cluster.rest.vertices import find_vertex

_NOT_MEASURED = -1


class CheckpointedSubtask(TypedDict):
    """A subtask in a checkpoint. One that has failed has only the first three fields."""

    className: str
    index: int
    status: str
    ack_timestamp: NotRequired[int]
    end_to_end_duration: NotRequired[int]
    checkpointed_size: NotRequired[int]
    state_size: NotRequired[int]
    checkpoint: NotRequired[dict[str, int]]
    alignment: NotRequired[dict[str, int]]
    start_delay: NotRequired[int]
    unaligned_checkpoint: NotRequired[bool]
    aborted: NotRequired[bool]


class CheckpointedVertex(TypedDict):
    """A vertex in a checkpoint; `summary` has the distributions of the numbers of its subtasks."""

    id: int
    status: str
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int
    summary: dict[str, Any]
    subtasks: list[CheckpointedSubtask]


def create_router(context: RestContext) -> APIRouter:
    """Return the route of subtasks in checkpoints."""
    router = APIRouter(tags=["checkpoints"])

    @router.get("/jobs/{job_id}/checkpoints/details/{number}/subtasks/{vertex_id}")
    def get_checkpointed_vertex(job_id: JobPath, number: int, vertex_id: VertexPath) -> CheckpointedVertex:
        """Return the subtasks of a vertex in one of the newest checkpoints."""
        job = context.dispatcher.job(job_id)
        planned = find_vertex(job, vertex_id)
        checkpoint, done = find_checkpoint(job, number)
        return _describe(checkpoint, subtask_sizes(planned, done))

    return router


def _describe(checkpoint: Checkpoint, sizes: list[int]) -> CheckpointedVertex:
    is_done = checkpoint["status"] == "COMPLETED"
    none, not_measured = summarize([0]), summarize([_NOT_MEASURED])
    return {
        "id": checkpoint["id"],
        "status": checkpoint["status"],
        "latest_ack_timestamp": checkpoint["latest_ack_timestamp"],
        "checkpointed_size": _NOT_MEASURED,
        "state_size": max(_NOT_MEASURED, sum(sizes)),
        "end_to_end_duration": checkpoint["end_to_end_duration"],
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": len(sizes),
        "num_acknowledged_subtasks": len(sizes) if is_done else 0,
        "summary": {
            "checkpointed_size": not_measured,
            "state_size": summarize(sizes),
            "end_to_end_duration": summarize([checkpoint["end_to_end_duration"]]),
            "checkpoint_duration": {"sync": not_measured, "async": not_measured},
            "alignment": {"buffered": none, "processed": none, "persisted": none, "duration": none},
            "start_delay": none,
        },
        "subtasks": [
            _describe_subtask(checkpoint, index, size)
            if is_done
            else {"className": "pending", "index": index, "status": "pending_or_failed"}
            for index, size in enumerate(sizes)
        ],
    }


def _describe_subtask(checkpoint: Checkpoint, index: int, size: int) -> CheckpointedSubtask:
    return {
        "className": "completed",
        "index": index,
        "status": "completed",
        "ack_timestamp": checkpoint["latest_ack_timestamp"],
        "end_to_end_duration": checkpoint["end_to_end_duration"],
        "checkpointed_size": _NOT_MEASURED,
        "state_size": size,
        "checkpoint": {"sync": _NOT_MEASURED, "async": _NOT_MEASURED},
        "alignment": {"buffered": 0, "processed": 0, "persisted": 0, "duration": 0},
        "start_delay": 0,
        "unaligned_checkpoint": False,
        "aborted": False,
    }

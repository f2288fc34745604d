"""REST resources of single subtasks for Flink's dashboard and clients: their times, attempts, accumulators.

Promises: Flink's fields. A subtask has one attempt: Spark repeats its work within an epoch.
Does not know: vertices as a whole, see `vertices`."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from typing_extensions import TypedDict

from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.errors import NotFound
from millstream.cluster.rest.paths import JobPath, VertexPath
from millstream.cluster.rest.vertices import Subtask, describe_subtasks, find_vertex


class SubtaskTime(TypedDict):
    """When a subtask ran."""

    subtask: int
    endpoint: str
    duration: int
    timestamps: dict[str, int]


class SubtaskTimes(TypedDict):
    """When the subtasks of a vertex ran."""

    id: str
    name: str
    now: int
    subtasks: list[SubtaskTime]


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of subtasks."""
    router = APIRouter(prefix="/jobs/{job_id}/vertices/{vertex_id}", tags=["subtasks"])
    dispatcher = context.dispatcher

    def describe(job_id: str, vertex_id: str) -> list[Subtask]:
        job = dispatcher.job(job_id)
        return describe_subtasks(find_vertex(job, vertex_id), job.statistics(), context.clock.now())

    def find(job_id: str, vertex_id: str, subtask: int) -> Subtask:
        subtasks = describe(job_id, vertex_id)
        if not 0 <= subtask < len(subtasks):
            msg = f"the vertex has no subtask {subtask}; it has {len(subtasks)}"
            raise NotFound(msg)
        return subtasks[subtask]

    @router.get("/subtasktimes")
    def list_times(job_id: JobPath, vertex_id: VertexPath) -> SubtaskTimes:
        """Return when each subtask began to run."""
        subtasks = describe(job_id, vertex_id)
        return {
            "id": vertex_id,
            "name": find_vertex(dispatcher.job(job_id), vertex_id).task.name,
            "now": context.clock.now(),
            "subtasks": [
                {
                    "subtask": subtask["subtask"],
                    "endpoint": subtask["endpoint"],
                    "duration": subtask["duration"],
                    "timestamps": {subtask["status"]: subtask["start-time"]},
                }
                for subtask in subtasks
            ],
        }

    @router.get("/accumulators")
    def list_accumulators(job_id: JobPath, vertex_id: VertexPath) -> dict[str, Any]:
        """Return no accumulators: they are known for the whole job."""
        find_vertex(dispatcher.job(job_id), vertex_id)
        return {"id": vertex_id, "user-accumulators": []}

    @router.get("/subtasks/accumulators")
    def list_subtask_accumulators(job_id: JobPath, vertex_id: VertexPath) -> dict[str, Any]:
        """Return no accumulators: they are known for the whole job."""
        planned = find_vertex(dispatcher.job(job_id), vertex_id)
        return {"id": vertex_id, "parallelism": planned.task.parallelism, "subtasks": []}

    @router.get("/subtasks/{subtask}")
    def get_subtask(job_id: JobPath, vertex_id: VertexPath, subtask: int) -> Subtask:
        """Return a subtask."""
        return find(job_id, vertex_id, subtask)

    @router.get("/subtasks/{subtask}/attempts/{attempt}")
    def get_attempt(job_id: JobPath, vertex_id: VertexPath, subtask: int, attempt: int) -> Subtask:
        """Return the attempt of a subtask."""
        described = find(job_id, vertex_id, subtask)
        if attempt != described["attempt"]:
            msg = f"subtask {subtask} has no attempt {attempt}; its attempt is {described['attempt']}"
            raise NotFound(msg)
        return described

    @router.get("/subtasks/{subtask}/attempts/{attempt}/accumulators")
    def list_attempt_accumulators(job_id: JobPath, vertex_id: VertexPath, subtask: int, attempt: int) -> dict[str, Any]:
        """Return no accumulators: they are known for the whole job."""
        get_attempt(job_id, vertex_id, subtask, attempt)
        return {"subtask": subtask, "attempt": attempt, "id": vertex_id, "user-accumulators": []}

    return router

"""REST resources that change the parallelism of a job.

Promises: the parallelism is that of all operators for which the program sets none, or of single operators by uid; in
Flink's form, of vertices by id. A parallelism at which the job cannot run is refused at once.
Does not know: how a job is rescaled."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, status
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.operations import FAILED_OPERATION, OperationAnswer, TriggerAnswer, answer_operation
from millstream.cluster.rest.paths import JobPath, TriggerPath
from millstream.cluster.rest.triggers import Triggers
from millstream.cluster.rest.vertices import NoSuchVertex

_MOST = 32_768
Parallelism = Annotated[int, Field(ge=1, le=_MOST, strict=True)]


class RescaleTrigger(BaseModel):
    """The request for another parallelism."""

    model_config = ConfigDict(extra="forbid")

    parallelism: Parallelism | Annotated[dict[str, Parallelism], Field(min_length=1)]


class Bounds(TypedDict):
    """The least and the greatest parallelism of a vertex; here they are the same."""

    lowerBound: int
    upperBound: int


class VertexRequirements(BaseModel):
    """What a vertex needs."""

    model_config = ConfigDict(extra="ignore")

    parallelism: Bounds


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of rescaling."""
    router = APIRouter(tags=["rescaling"])
    dispatcher = context.dispatcher
    rescales: Triggers[int] = Triggers(context.clock.precise, context.new_id)

    @router.post("/jobs/{job_id}/rescale", status_code=status.HTTP_202_ACCEPTED)
    def rescale(job_id: JobPath, request: Annotated[RescaleTrigger, Body()]) -> TriggerAnswer:
        """Change the parallelism of a job between two epochs."""
        job = dispatcher.job(job_id)
        return {"request-id": rescales.trigger(job.id, None, lambda: job.rescale(request.parallelism))}

    @router.patch("/jobs/{job_id}/rescaling", status_code=status.HTTP_202_ACCEPTED)
    def rescale_all(job_id: JobPath, parallelism: Annotated[int, Query(ge=1, le=_MOST)]) -> TriggerAnswer:
        """Change the parallelism of a job between two epochs, with the old path of Flink."""
        job = dispatcher.job(job_id)
        return {"request-id": rescales.trigger(job.id, None, lambda: job.rescale(parallelism))}

    @router.get("/jobs/{job_id}/rescale/{trigger_id}", response_model=OperationAnswer, responses=FAILED_OPERATION)
    @router.get("/jobs/{job_id}/rescaling/{trigger_id}", response_model=OperationAnswer, responses=FAILED_OPERATION)
    def get_rescale(job_id: JobPath, trigger_id: TriggerPath) -> OperationAnswer | JSONResponse:
        """Return whether the job runs at the parallelism, in how many slots, and how many milliseconds it paused."""
        job = dispatcher.job(job_id)

        def describe(slots: int) -> dict[str, Any]:
            done = job.statistics().rescales
            return {"slots": slots, "pause": round(done[-1].event.pause_ms) if done else 0}

        return answer_operation(rescales.get(job.id, trigger_id), describe)

    @router.get("/jobs/{job_id}/resource-requirements")
    def get_requirements(job_id: JobPath) -> dict[str, Any]:
        """Return the parallelism of each vertex."""
        return {
            planned.task.vertex: {
                "parallelism": {"lowerBound": planned.task.parallelism, "upperBound": planned.task.parallelism}
            }
            for planned in dispatcher.job(job_id).plan().vertices
        }

    @router.put("/jobs/{job_id}/resource-requirements")
    def set_requirements(job_id: JobPath, request: Annotated[dict[str, VertexRequirements], Body()]) -> dict[str, Any]:
        """Change the parallelism of vertices to their upper bounds, between two epochs."""
        job = dispatcher.job(job_id)
        vertices = {vertex.id: vertex for vertex in job.plan().job.vertices}
        wanted = {}
        for vertex, requirements in request.items():
            if vertex not in vertices:
                raise NoSuchVertex(vertex)
            for node in vertices[vertex].nodes:
                wanted[node.uid or node.name] = requirements.parallelism["upperBound"]
        job.rescale(wanted)
        return {}

    return router

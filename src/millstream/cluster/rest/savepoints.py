"""REST resources that write and delete savepoints: triggers, and the results that clients poll for.

Promises: Flink's requests and answers; a savepoint that fails is an answer with status 500 and the reason.
Does not know: how savepoints are written."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Annotated, Literal

from fastapi import APIRouter, Body, status
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from millstream.checkpoint.savepoint import dispose_savepoint
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.operations import FAILED_OPERATION, OperationAnswer, TriggerAnswer, answer_operation
from millstream.cluster.rest.paths import JobPath, TriggerPath
from millstream.cluster.rest.triggers import Triggers
from millstream.job.savepoints import SavepointFormatType

Format = Literal["CANONICAL", "NATIVE"]


class _Request(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="ignore")


class SavepointTrigger(_Request):
    """The request for a savepoint."""

    target_directory: str | None = Field(None, alias="target-directory")
    cancel_job: bool = Field(False, alias="cancel-job")
    format_type: Format | None = Field(None, alias="formatType")
    trigger_id: str | None = Field(None, alias="triggerId", pattern="^[0-9a-fA-F]{32}$")


class StopTrigger(_Request):
    """The request to stop a job with a savepoint."""

    target_directory: str | None = Field(None, alias="targetDirectory")
    drain: bool = False
    format_type: Format | None = Field(None, alias="formatType")
    trigger_id: str | None = Field(None, alias="triggerId", pattern="^[0-9a-fA-F]{32}$")


class Disposal(_Request):
    """The request to delete a savepoint."""

    path: str = Field(alias="savepoint-path")


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of savepoints."""
    router = APIRouter(tags=["savepoints"])
    dispatcher = context.dispatcher
    savepoints: Triggers[str] = Triggers(context.clock.precise, context.new_id)
    disposals: Triggers[None] = Triggers(context.clock.precise, context.new_id)

    @router.post("/jobs/{job_id}/savepoints", status_code=status.HTTP_202_ACCEPTED)
    def trigger_savepoint(job_id: JobPath, request: Annotated[SavepointTrigger, Body()]) -> TriggerAnswer:
        """Write a savepoint of a job, and cancel the job afterwards if that is asked for."""
        job, form = dispatcher.job(job_id), SavepointFormatType.of(request.format_type)

        def start() -> Future[str]:
            return job.savepoint(request.target_directory, form=form, cancel=request.cancel_job)

        return {"request-id": savepoints.trigger(job.id, request.trigger_id, start)}

    @router.post("/jobs/{job_id}/stop", status_code=status.HTTP_202_ACCEPTED)
    def stop_job(job_id: JobPath, request: Annotated[StopTrigger, Body()]) -> TriggerAnswer:
        """Stop a job with a savepoint."""
        job, form = dispatcher.job(job_id), SavepointFormatType.of(request.format_type)

        def start() -> Future[str]:
            return job.savepoint(request.target_directory, form=form, stop=True, drain=request.drain)

        return {"request-id": savepoints.trigger(job.id, request.trigger_id, start)}

    @router.get("/jobs/{job_id}/savepoints/{trigger_id}", response_model=OperationAnswer, responses=FAILED_OPERATION)
    def get_savepoint(job_id: JobPath, trigger_id: TriggerPath) -> OperationAnswer | JSONResponse:
        """Return whether a savepoint is written, and where it is."""
        operation = savepoints.get(dispatcher.job(job_id).id, trigger_id)
        return answer_operation(operation, lambda path: {"location": path})

    @router.post("/savepoint-disposal")
    def trigger_disposal(request: Annotated[Disposal, Body()]) -> TriggerAnswer:
        """Delete a savepoint."""

        def start() -> Future[None]:
            future: Future[None] = Future()
            try:
                dispose_savepoint(request.path)
                future.set_result(None)
            except Exception as problem:
                future.set_exception(problem)
            return future

        return {"request-id": disposals.trigger("", None, start)}

    @router.get("/savepoint-disposal/{trigger_id}", response_model=OperationAnswer, responses=FAILED_OPERATION)
    def get_disposal(trigger_id: TriggerPath) -> OperationAnswer | JSONResponse:
        """Return whether a savepoint is deleted."""
        return answer_operation(disposals.get("", trigger_id), lambda _: {})

    return router

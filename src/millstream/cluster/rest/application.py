"""The REST application: Flink's paths under `/` and `/v1`, and Flink's form of errors.

Promises: every error is `{"errors": [text]}` with a status code that Flink's clients understand: 400 for an invalid
request, 404 for a resource that does not exist, 503 for an operation that is not possible now, 500 for all other
errors.
Does not know: sockets; `server` serves it."""

from __future__ import annotations

import logging

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from millstream.cluster.dispatcher import NoSuchJob
from millstream.cluster.rest import (
    applications,
    checkpoint_subtasks,
    checkpoints,
    flame_graphs,
    jobs,
    live,
    live_updates,
    logs,
    metrics,
    overview,
    process_pages,
    programs,
    rescaling,
    savepoints,
    snapshots,
    subtasks,
    taskmanagers,
    ui,
    vertices,
    watermarks,
)
from millstream.cluster.rest.bounded_bodies import BoundedBodies
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.errors import Busy, NotFound, UnsupportedOperation
from millstream.cluster.rest.forwarding import forward_to_programs
from millstream.cluster.rest.same_origin import refuse_other_hosts, refuse_other_sites
from millstream.cluster.rest.token import require_token
from millstream.cluster.session.errors import NoSuchProgram, NoSuchUpload, TooMany
from millstream.errors import MillstreamError, UserError

_log = logging.getLogger("millstream.rest")


def create_application(context: RestContext) -> FastAPI:
    """Return the application for the jobs of this process, or of a session cluster."""
    application = FastAPI(title="millstream", openapi_url="/openapi.json", docs_url=None, redoc_url=None)
    routers = [
        overview.create_router(context),
        metrics.create_router(context),  # before the routes of jobs, because /jobs/metrics is not a job
        applications.create_router(context),
        programs.create_router(context),
        jobs.create_router(context),
        checkpoints.create_router(context),
        checkpoint_subtasks.create_router(context),
        savepoints.create_router(context),
        rescaling.create_router(context),
        logs.create_router(context),
        taskmanagers.create_router(context),
        process_pages.create_router(context),
        vertices.create_router(context),
        flame_graphs.create_router(context),
        subtasks.create_router(context),
        live.create_router(context),
        snapshots.create_router(context),
        watermarks.create_router(context),
    ]
    for router in routers:
        _add_router(application, router)
    application.include_router(live_updates.create_router())
    application.include_router(ui.create_router())
    for path, mounted in context.mounted.items():
        application.mount(path, mounted)
    if context.session is not None:
        application.middleware("http")(forward_to_programs(context.session))
    application.middleware("http")(refuse_other_sites)
    application.middleware("http")(refuse_other_hosts if context.token is None else require_token(context.token))
    application.add_middleware(BoundedBodies, excluded_paths=programs.UPLOADING)
    application.add_exception_handler(RequestValidationError, _answer_invalid)
    application.add_exception_handler(HTTPException, _answer_http)
    application.add_exception_handler(MillstreamError, _answer_error)
    application.add_exception_handler(Exception, _answer_unexpected)
    return application


def _add_router(application: FastAPI, router: APIRouter) -> None:
    """Serve the paths with and without the version: Flink's command line uses /v1, and its dashboard does not."""
    application.include_router(router, prefix="/v1")
    application.include_router(router, include_in_schema=False)


def _errors(status: int, *texts: str) -> JSONResponse:
    return JSONResponse({"errors": list(texts)}, status_code=status)


def _answer_invalid(_: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    return _errors(400, *(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in problem.errors()))


def _answer_http(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, HTTPException)
    detail = f"there is no {request.url.path}" if problem.status_code == 404 else str(problem.detail)
    return _errors(problem.status_code, detail)


def _answer_error(_: Request, problem: Exception) -> JSONResponse:
    return _errors(_status_of(problem), str(problem))


def _status_of(problem: Exception) -> int:
    match problem:
        case NoSuchJob() | NotFound() | NoSuchProgram() | NoSuchUpload():
            return 404
        case UnsupportedOperation():
            return 405
        case UserError():
            return 400
    return 503 if isinstance(problem, Busy | TooMany) else 500


def _answer_unexpected(request: Request, problem: Exception) -> JSONResponse:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=problem)
    return _errors(500, f"{type(problem).__name__}: {problem}")

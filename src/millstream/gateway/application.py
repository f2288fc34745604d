"""The REST application of the gateway: Flink's paths of versions 1 to 4, and Flink's form of errors.

Promises: every path answers under `/v1` to `/v4`, and without a version as under the newest. Bodies are bounded. Every
error is `{"errors": [..]}`; the last text is what Flink's clients show.
Does not know: sockets; `server` serves it."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from millstream.cluster.rest.bounded_bodies import BoundedBodies
from millstream.cluster.rest.same_origin import refuse_other_hosts, refuse_other_sites
from millstream.cluster.rest.token import require_token
from millstream.errors import MillstreamError
from millstream.gateway import operations, session_resources, workspace_resources
from millstream.gateway.context import VERSIONS, GatewayContext
from millstream.gateway.errors import NoSuchOperation, NoSuchSession, describe

_log = logging.getLogger("millstream.gateway")


def create_application(context: GatewayContext, *, is_embedded: bool = False) -> FastAPI:
    """Return the application of a gateway. One that is embedded is part of another application, which refuses requests
    of other sites and those without a token."""
    application = FastAPI(title="millstream SQL gateway", openapi_url="/openapi.json", docs_url=None, redoc_url=None)
    for version in VERSIONS:
        for module in (session_resources, operations):
            application.include_router(module.create_router(context, version), prefix=f"/{version}")
    for module in (session_resources, operations):
        application.include_router(module.create_router(context, VERSIONS[-1]), include_in_schema=False)
    application.include_router(workspace_resources.create_router(context))
    if not is_embedded:
        application.middleware("http")(refuse_other_sites)
        application.middleware("http")(refuse_other_hosts if context.token is None else require_token(context.token))
    application.add_middleware(BoundedBodies)
    application.add_exception_handler(RequestValidationError, _answer_invalid)
    application.add_exception_handler(HTTPException, _answer_http)
    application.add_exception_handler(MillstreamError, _answer_error)
    application.add_exception_handler(Exception, _answer_unexpected)
    return application


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
    status = 404 if isinstance(problem, NoSuchSession | NoSuchOperation) else 500
    return _errors(status, "Internal server error.", describe(problem))


def _answer_unexpected(request: Request, problem: Exception) -> JSONResponse:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=problem)
    return _errors(500, "Internal server error.", describe(problem))

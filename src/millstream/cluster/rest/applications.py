"""REST resources of applications: the programs of a session cluster, with Flink's fields.

Promises: without a session cluster there are no applications, and the lists are empty.
Does not know: jobs, see `jobs`."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, status
from typing_extensions import TypedDict

from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.errors import NotFound
from millstream.cluster.rest.jobs import exception_name
from millstream.cluster.rest.paths import ApplicationPath
from millstream.cluster.rest.session_view import ProgramView, SessionView

ApplicationOverview = TypedDict(
    "ApplicationOverview",
    {
        "id": str,
        "name": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "status": str,
        "jobs": dict[str, int],
    },
)

ApplicationDetails = TypedDict(
    "ApplicationDetails",
    {
        "id": str,
        "name": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "status": str,
        "restarts": int,
        "waiting": dict[str, str],
        "error": str | None,
        "jobs": list[dict[str, Any]],
    },
)


class ApplicationOverviews(TypedDict):
    """The applications."""

    applications: list[ApplicationOverview]


class ApplicationException(TypedDict):
    """Why an application failed."""

    exceptionName: str
    stacktrace: str
    timestamp: int
    jobId: str | None


class ApplicationExceptionHistory(TypedDict):
    """The failures of an application."""

    entries: list[ApplicationException]


class ApplicationExceptions(TypedDict):
    """The failures of an application; there is at most one."""

    exceptionHistory: ApplicationExceptionHistory


class NoSession(NotFound):
    """This server has no session cluster."""

    def __init__(self) -> None:
        super().__init__(
            "this server belongs to one program and has no applications",
            hint="start a session cluster: millstream cluster start",
        )


def require_session(context: RestContext) -> SessionView:
    """Return the session cluster.

    Raises:
        NoSession: There is none.

    """
    if context.session is None:
        raise NoSession
    return context.session


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of applications."""
    router = APIRouter(tags=["applications"])

    @router.get("/applications/overview")
    def list_applications() -> ApplicationOverviews:
        """Return all programs of the cluster."""
        if context.session is None:
            return {"applications": []}
        states = {job["jid"]: job["state"] for job in context.session.job_overviews()}
        now = context.clock.now()
        return {"applications": [_describe(program, states, now) for program in context.session.programs()]}

    @router.get("/applications/{application_id}")
    def get_application(application_id: ApplicationPath) -> ApplicationDetails:
        """Return a program and its jobs."""
        session = require_session(context)
        program = session.program(application_id)
        jobs = [job for job in session.job_overviews() if job["jid"] in program.jobs]
        described = _describe(program, {job["jid"]: job["state"] for job in jobs}, context.clock.now())
        return {
            **described,
            "restarts": program.restarts,
            "waiting": program.waits,
            "error": program.error,
            "jobs": jobs,
        }

    @router.get("/applications/{application_id}/exceptions")
    def list_application_exceptions(application_id: ApplicationPath) -> ApplicationExceptions:
        """Return why a program failed; the failures of its jobs are those of `/jobs/ID/exceptions`."""
        program = require_session(context).program(application_id)
        entries: list[ApplicationException] = []
        if program.error is not None:
            name = exception_name(program.error)
            entries = [{"exceptionName": name, "stacktrace": program.error, "timestamp": program.end, "jobId": None}]
        return {"exceptionHistory": {"entries": entries}}

    @router.post("/applications/{application_id}/cancel", status_code=status.HTTP_202_ACCEPTED)
    def cancel_application(application_id: ApplicationPath) -> dict[str, Any]:
        """Cancel the jobs of a program."""
        require_session(context).cancel(application_id)
        return {}

    return router


def _describe(program: ProgramView, states: dict[str, str], now: int) -> ApplicationOverview:
    jobs: dict[str, int] = {}
    for job in program.jobs:
        state = states.get(job, "INITIALIZING")
        jobs[state] = jobs.get(state, 0) + 1
    return {
        "id": program.id,
        "name": program.name,
        "start-time": program.start,
        "end-time": program.end,
        "duration": (now if program.end < 0 else program.end) - program.start,
        "status": program.status.value,
        "jobs": jobs,
    }

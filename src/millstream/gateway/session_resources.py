"""REST resources of the gateway and of sessions.

Promises: Flink's fields.
Does not know: statements, see `operations`."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from fastapi import APIRouter, Body, Path
from typing_extensions import TypedDict

from millstream import __version__
from millstream.errors import UserError
from millstream.gateway.context import VERSIONS, GatewayContext
from millstream.gateway.errors import ERROR_ANSWER

SessionPath = Annotated[str, Path(pattern="^[0-9a-fA-F-]{36}$")]


class OpenSession(TypedDict):
    """The body that opens a session."""

    sessionName: NotRequired[str | None]
    properties: NotRequired[dict[str, str] | None]


class ConfigureSession(TypedDict):
    """The body of a statement that prepares a session."""

    statement: str
    executionTimeout: NotRequired[int | None]


class CompleteStatement(TypedDict):
    """The body that asks for completions."""

    statement: str
    position: int


class NoScripts(UserError):
    """Scripts are not run as applications."""

    def __init__(self) -> None:
        super().__init__("scripts cannot be deployed as applications", hint="run them with `millstream sql -f`")


def create_router(context: GatewayContext, version: str) -> APIRouter:
    """Return the routes of one version."""
    router = APIRouter(tags=[f"sessions {version}"])
    sessions = context.sessions

    @router.get("/info")
    def get_info() -> dict[str, str]:
        """Return the name and the release of the gateway."""
        return {"productName": "Apache Flink compatible: millstream", "version": __version__}

    @router.get("/api_versions")
    def list_versions() -> dict[str, list[str]]:
        """Return the versions of this interface."""
        return {"versions": [name.upper() for name in VERSIONS]}

    @router.post("/sessions", responses=ERROR_ANSWER)
    def open_session(body: Annotated[OpenSession | None, Body()] = None) -> dict[str, str]:
        """Open a session."""
        request = body or OpenSession()
        session = sessions.open(request.get("sessionName"), request.get("properties") or {})
        return {"sessionHandle": session.handle}

    @router.get("/sessions/{session_handle}")
    def get_session(session_handle: SessionPath) -> dict[str, dict[str, str]]:
        """Return the properties of a session."""
        return {"properties": sessions.get(session_handle).properties()}

    @router.delete("/sessions/{session_handle}")
    def close_session(session_handle: SessionPath) -> dict[str, str]:
        """Close a session."""
        sessions.close(session_handle)
        return {"status": "CLOSED"}

    @router.post("/sessions/{session_handle}/heartbeat")
    def keep_session(session_handle: SessionPath) -> dict[str, Any]:
        """Reset the idle timeout of a session."""
        sessions.get(session_handle)
        return {}

    if version == "v1":
        return router

    @router.post("/sessions/{session_handle}/configure-session", responses=ERROR_ANSWER)
    def configure_session(session_handle: SessionPath, body: Annotated[ConfigureSession, Body()]) -> dict[str, Any]:
        """Execute a statement that prepares a session."""
        sessions.get(session_handle).configure(body["statement"])
        return {}

    @router.get("/sessions/{session_handle}/complete-statement")
    def complete_statement(
        session_handle: SessionPath, body: Annotated[CompleteStatement, Body()]
    ) -> dict[str, list[str]]:
        """Return the completions at a position of a statement."""
        session = sessions.get(session_handle)
        return {"candidates": context.complete(body["statement"], body["position"], session.catalogs())}

    @router.post("/sessions/{session_handle}/scripts", responses=ERROR_ANSWER)
    def deploy_script(session_handle: SessionPath) -> dict[str, str]:
        """Answer that scripts are not deployed."""
        sessions.get(session_handle)
        raise NoScripts

    return router

"""REST resources of log files: those of the programs of a session cluster.

Promises: a log is named by the id of its program, and nothing else can be read; a part of it can be read with a Range
header. A server without a session cluster has no log files: its program configures its own logging.
Does not know: what is logged."""

from __future__ import annotations

import re

from fastapi import APIRouter
from fastapi.responses import FileResponse
from typing_extensions import TypedDict

from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.errors import NotFound

_NAME = re.compile(r"[0-9a-f]{32}\.log")


class LogFile(TypedDict):
    """A log file; `mtime` is in milliseconds since 1970."""

    name: str
    size: int
    mtime: int


class LogFiles(TypedDict):
    """The log files."""

    logs: list[LogFile]


class NoSuchLog(NotFound):
    """There is no log file of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no log file '{name[:100]}'", hint="list them: GET /jobmanager/logs")


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of log files."""
    router = APIRouter(tags=["logs"])

    @router.get("/jobmanager/logs")
    def list_logs() -> LogFiles:
        """Return the log files."""
        if context.session is None:
            return {"logs": []}
        files = sorted(path for path in context.session.logs.iterdir() if _NAME.fullmatch(path.name))
        return {
            "logs": [
                {"name": path.name, "size": path.stat().st_size, "mtime": path.stat().st_mtime_ns // 1_000_000}
                for path in files
            ]
        }

    @router.get("/jobmanager/logs/{name}", response_class=FileResponse)
    def get_log(name: str) -> FileResponse:
        """Return a log file as plain text."""
        path = None if context.session is None else context.session.logs / name
        if path is None or not _NAME.fullmatch(name) or not path.is_file():
            raise NoSuchLog(name)
        return FileResponse(path, media_type="text/plain; charset=utf-8", headers={"X-Content-Type-Options": "nosniff"})

    return router

"""Errors of requests to a session cluster.

Promises: each error names what is missing, or which limit is reached.
Does not know: HTTP."""

from __future__ import annotations

from millstream.errors import ExternalError, UserError


class NoSuchProgram(UserError):
    """The cluster has no such program."""

    def __init__(self, program: str) -> None:
        super().__init__(f"there is no program {program}", hint="list the programs: GET /applications/overview")


class NoSuchUpload(UserError):
    """The cluster has no such upload."""

    def __init__(self, upload: str) -> None:
        super().__init__(f"there is no uploaded program {upload}", hint="upload it first: POST /jars/upload")


class TooMany(ExternalError):
    """The cluster has as many programs or uploads as it can keep."""

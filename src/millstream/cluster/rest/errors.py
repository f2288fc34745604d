"""Errors of REST requests.

Promises: `NotFound` is answered with status 404, `UnsupportedOperation` with status 405, `Busy` with status
503.
Does not know: HTTP."""

from __future__ import annotations

from millstream.errors import ExternalError, UserError


class NotFound(UserError):
    """The resource that the path of a request names does not exist."""


class UnsupportedOperation(UserError):
    """An operation of Flink's server that this server does not have."""


class Busy(ExternalError):
    """The server is too busy to answer this request now."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the server is busy: {why}", hint="try again later")

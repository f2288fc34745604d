"""Errors of REST requests.

Promises: `NotFound` is answered with status 404, `NotHere` with status 405, `Busy` with status
503.
Does not know: HTTP."""

from __future__ import annotations

from millstream.errors import ExternalError, UserError


class NotFound(UserError):
    """What the path of a request names does not exist."""


class NotHere(UserError):
    """This server has no such operation, although Flink's has."""


class Busy(ExternalError):
    """The server has too much to do to answer this request now."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the server is busy: {why}", hint="try again later")

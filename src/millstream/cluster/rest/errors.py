"""Errors of REST requests.

Promises: `NotFound` is answered with status 404, `NotHere` with status 405.
Does not know: HTTP."""

from __future__ import annotations

from millstream.errors import UserError


class NotFound(UserError):
    """What the path of a request names does not exist."""


class NotHere(UserError):
    """This server has no such operation, although Flink's has."""

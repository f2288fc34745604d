"""Protects against requests of other web sites, which a browser would send with the user's access to this machine.

Promises: a request whose Host header does not name this server is refused with status 421, so that DNS rebinding has no
effect; a request that another site made is refused with status 403.
Does not know: what is requested."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
Answer = Callable[[Request], Awaitable[Response]]


async def refuse_other_hosts(request: Request, answer: Answer) -> Response:
    """Forward a request whose Host header names this machine, and refuse others. A server with a token does not need
    this, because a browser does not send the token."""
    host = request.headers.get("host", "")
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        name = None
    return await answer(request) if name in _LOCAL_NAMES else _refuse(421, f"the host {host!r} is not this server")


async def refuse_other_sites(request: Request, answer: Answer) -> Response:
    """Forward a request unless it comes from another site."""
    host = request.headers.get("host", "")
    origin = request.headers.get("origin")
    is_foreign = origin is not None and origin.partition("://")[2] != host
    if is_foreign or request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return _refuse(403, "requests of other sites are refused")
    return await answer(request)


def _refuse(status: int, text: str) -> JSONResponse:
    return JSONResponse({"errors": [text]}, status_code=status)

"""Limits the size of request bodies.

Promises: a body of more than four megabytes is refused with status 413, with or without a Content-Length header. Paths
whose handlers have their own limit are excluded.
Does not know: what bodies contain."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BYTES = 4 * 1024 * 1024


class BoundedBodies:
    """An ASGI application that forwards requests with small bodies to another one."""

    def __init__(self, application: ASGIApp, excluded_paths: frozenset[str] = frozenset()) -> None:
        self._application, self._excluded_paths = application, excluded_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope.get("path") in self._excluded_paths:
            await self._application(scope, receive, send)
            return
        announced = dict(scope.get("headers", ())).get(b"content-length", b"0")
        if not announced.isdigit() or int(announced) > MAX_BYTES:
            await _refusal()(scope, receive, send)
            return
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MAX_BYTES:
                raise HTTPException(413, f"the body has more than {MAX_BYTES} bytes")
            return message

        await self._application(scope, receive_bounded, send)


def _refusal() -> JSONResponse:
    return JSONResponse({"errors": [f"the body has more than {MAX_BYTES} bytes"]}, status_code=413)

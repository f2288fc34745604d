"""Bounds the bodies of requests.

Promises: a body of more than four megabytes is refused with status 413, whether its length is announced or not.
Does not know: what bodies contain."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BYTES = 4 * 1024 * 1024


class BoundedBodies:
    """An ASGI application that passes requests with small bodies on."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
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

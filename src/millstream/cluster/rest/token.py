"""Protection by a token, which clients send as `Authorization: Bearer TOKEN`.

Promises: a request without the token is refused with status 401, unless it asks for a file of the web UI, which is the
same everywhere; the UI then asks its reader for the token. Tokens are compared in constant time. A token file is
readable by its owner only.
Does not know: where tokens come from."""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from millstream.cluster.rest.ui import is_ui_file

Answer = Callable[[Request], Awaitable[Response]]


def require_token(token: str) -> Callable[[Request, Answer], Awaitable[Response]]:
    """Return a middleware that answers requests with this token only."""
    expected = f"Bearer {token}".encode()

    async def check(request: Request, answer: Answer) -> Response:
        sent = request.headers.get("authorization", "").encode()
        if not hmac.compare_digest(sent, expected) and not is_ui_file(request.method, request.url.path):
            text = "this server needs a token: send the header 'Authorization: Bearer TOKEN'"
            return JSONResponse({"errors": [text]}, status_code=401, headers={"WWW-Authenticate": "Bearer"})
        return await answer(request)

    return check


def read_or_create_token(path: str, new_token: Callable[[], str]) -> str:
    """Return the token in a file; a file that does not exist is created with a new one."""
    file = Path(path)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file.read_text(encoding="utf-8").strip()
    with os.fdopen(descriptor, "w", encoding="utf-8") as created:
        token = new_token()
        created.write(token + "\n")
    return token

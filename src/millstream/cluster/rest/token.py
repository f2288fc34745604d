"""Authentication by tokens: clients send `Authorization: Bearer TOKEN`, or a token as the password of basic
authentication.

Promises: a request without a token is refused with status 401, except for files of the web UI, which contain no data;
the UI prompts the user for the token. With basic authentication, the browser prompts for it, and the UI is protected,
too. A request that changes something is refused with status 403 if it has the read-only token. Tokens are compared in
constant time. A token file is readable by its owner only.
Does not know: where tokens come from."""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from millstream.cluster.rest.ui import is_ui_file

Answer = Callable[[Request], Awaitable[Response]]

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_CANCEL = "/yarn-cancel"  # Flink's dashboard cancels a job with a GET request


@dataclass(frozen=True)
class Access:
    """The tokens of a server: one for all requests, and one for read-only requests; `basic` accepts them as
    passwords."""

    token: str
    read_only_token: str | None = None
    basic: bool = False


def require_token(token: Access | str) -> Callable[[Request, Answer], Awaitable[Response]]:
    """Return a middleware that refuses requests without this token, or one of these tokens."""
    access = Access(token) if isinstance(token, str) else token

    async def check(request: Request, answer: Answer) -> Response:
        sent = _read_token(request.headers.get("authorization", ""), basic=access.basic)
        if hmac.compare_digest(sent, access.token.encode()):
            return await answer(request)
        if access.read_only_token is not None and hmac.compare_digest(sent, access.read_only_token.encode()):
            if request.method in _READING and not request.url.path.endswith(_CANCEL):
                return await answer(request)
            return JSONResponse({"errors": ["this token may only read"]}, status_code=403)
        if not access.basic and is_ui_file(request.method, request.url.path):
            return await answer(request)
        text = "this server needs a token: send the header 'Authorization: Bearer TOKEN'"
        scheme = 'Basic realm="millstream"' if access.basic else "Bearer"
        return JSONResponse({"errors": [text]}, status_code=401, headers={"WWW-Authenticate": scheme})

    return check


def _read_token(header: str, *, basic: bool) -> bytes:
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode()
    if basic and scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except ValueError:  # no base64
            return b""
    return b""


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

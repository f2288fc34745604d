"""Server-sent events: one stream for all resources that a page of the web UI shows.

Promises: an event has a resource whose answer changed, at most once a second; each resource is asked for as a request
of its own, so tokens and session clusters work as for other requests. A slow or disconnected reader does not delay
others.
Does not know: what the resources are. The path is not part of the OpenAPI document: its answer does not end."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from starlette.types import ASGIApp, Message, Scope

from millstream.cluster.rest.errors import Busy
from millstream.errors import UserError

# Resources that only read; the cancel button of Flink's dashboard, which sends GET, is none of them.
_RESOURCE = re.compile(r"(jobs|applications)/overview|overview|jobs/[0-9a-f]{32}(/(?!yarn-)[\w-]+)*")
_MOST_RESOURCES, _MOST_STREAMS = 16, 64
_INTERVAL, _SLICE, _SILENCE = 1.0, 0.1, 15.0  # seconds
_PAUSE = 9  # times as long as the answers took


class NoResource(UserError):
    """A path to which clients cannot subscribe."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"'{path}' is not a resource that can be followed",
            hint="name resources without a leading slash, such as jobs/overview",
        )


def create_router() -> APIRouter:
    """Return the route of the stream."""
    router = APIRouter(include_in_schema=False)
    open_streams: set[object] = set()

    @router.get("/millstream/live")
    async def follow(
        request: Request, path: Annotated[list[str], Query(min_length=1, max_length=_MOST_RESOURCES)]
    ) -> StreamingResponse:
        """Send the answers of resources as events, each again when it changes."""
        for each in path:
            if not _RESOURCE.fullmatch(each):
                raise NoResource(each)
        if len(open_streams) >= _MOST_STREAMS:
            msg = f"{_MOST_STREAMS} pages follow it"
            raise Busy(msg)
        stream = object()
        open_streams.add(stream)

        async def events() -> AsyncIterator[bytes]:
            try:
                async for event in _events(request, sorted(set(path))):
                    yield event
            finally:
                open_streams.discard(stream)

        return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    return router


async def _events(request: Request, paths: list[str]) -> AsyncIterator[bytes]:
    """Return the events, until the reader is gone or the server stops."""
    loop, sent, sent_at = asyncio.get_running_loop(), dict[str, bytes](), 0.0
    while True:
        begin = loop.time()
        for path in paths:
            status, body = await _ask(request.app, request.scope, f"/{path}")
            if sent.get(path) != body:
                sent[path], sent_at = body, loop.time()
                head = json.dumps({"path": path, "status": status})
                yield b"data: " + head[:-1].encode() + b', "answer": ' + body + b"}\n\n"
        if loop.time() - sent_at > _SILENCE:
            sent_at = loop.time()
            yield b":\n\n"  # a comment: without data, the server does not detect that the reader has gone
        # a machine under load is polled less often
        due = loop.time() + max(_INTERVAL, _PAUSE * (loop.time() - begin))
        while loop.time() < due:
            if getattr(request.app.state, "is_stopping", bool)() or await request.is_disconnected():
                return
            await asyncio.sleep(_SLICE)


async def _ask(application: ASGIApp, scope: Scope, path: str) -> tuple[int, bytes]:
    """Return the status and the JSON text of the answer to a GET request of the same client."""
    inner = {**scope, "path": path, "raw_path": path.encode(), "query_string": b"", "state": {}}
    status, body = 500, b""

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status, body
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            body += message.get("body", b"")

    await application(inner, receive, send)
    return status, body if _is_one_line(body) else json.dumps(_parse(body)).encode()


def _is_one_line(body: bytes) -> bool:
    return body.startswith((b"{", b"[")) and b"\n" not in body


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:  # a text, such as a log
        return None

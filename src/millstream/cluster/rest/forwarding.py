"""Forwards requests for the jobs and the SQL workspace of a session cluster to the processes of its programs.

Promises: a request for a job of a program is forwarded to its process, one for SQL to that of the workspace, and the
lists of jobs and slots are those of all programs; every other request is answered by this process. A slow process does
not delay other requests.
Does not know: what is requested."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from millstream.cluster.rest.overview import describe_cluster
from millstream.cluster.rest.session_view import SessionView
from millstream.job.job_status import JobStatus

_JOB = re.compile(r"/jobs/[0-9a-fA-F]{32}(/.*)?")
_SQL = "/sql/"
_MOST_BYTES = 1 << 20  # the maximum size of a request body

Answer = Callable[[Request], Awaitable[Response]]


def forward_to_programs(session: SessionView) -> Callable[[Request, Answer], Awaitable[Response]]:
    """Return the middleware for a session cluster."""
    lists: dict[str, Callable[[], Any]] = {
        "/jobs": lambda: {"jobs": [{"id": job["jid"], "status": job["state"]} for job in session.job_overviews()]},
        "/jobs/overview": lambda: {"jobs": session.job_overviews()},
        "/overview": lambda: _describe_cluster(session),
    }

    async def forward(request: Request, answer: Answer) -> Response:
        path = request.url.path.removeprefix("/v1")
        if request.method == "GET" and path in lists:
            return JSONResponse(await run_in_threadpool(lists[path]))
        is_sql = request.url.path.startswith(_SQL)
        if not is_sql and not _JOB.fullmatch(path):
            return await answer(request)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return JSONResponse({"errors": [f"the request has more than {_MOST_BYTES} bytes"]}, status_code=413)
        query = f"?{request.url.query}" if request.url.query else ""
        ask = session.forward_to_workspace if is_sql else session.forward
        forwarded = await run_in_threadpool(ask, request.method, path + query, body)
        if forwarded is None:
            text = f"there is no job {path.split('/')[2]}; list the jobs and their ids: millstream list"
            return JSONResponse({"errors": [text]}, status_code=404)
        return Response(forwarded.body, forwarded.status, media_type=forwarded.media_type)

    return forward


def _describe_cluster(session: SessionView) -> Any:
    total, free = session.slots()
    return describe_cluster(Counter(JobStatus[job["state"]] for job in session.job_overviews()), total, free)

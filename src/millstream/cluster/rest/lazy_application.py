"""An ASGI application that is created with its first request.

Promises: it is created once, in a thread, so that other requests are not delayed.
Does not know: what it serves."""

from __future__ import annotations

import threading
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send


class LazyApplication:
    """Passes requests to the application that `create` returns."""

    def __init__(self, create: Callable[[], ASGIApp]) -> None:
        self._create = create
        self._lock = threading.Lock()
        self._application: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        application = await run_in_threadpool(self._get) if self._application is None else self._application
        await application(scope, receive, send)

    def _get(self) -> ASGIApp:
        with self._lock:
            if self._application is None:
                self._application = self._create()
            return self._application

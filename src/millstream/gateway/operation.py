"""An operation: one statement of a session, from its submission to its result.

Promises: Flink's statuses. A status that ends the operation is final, except that an operation can be closed. A result
that arrives after a cancellation is closed at once.
Does not know: what statements do, HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum

from millstream.gateway.errors import NotFetchable
from millstream.gateway.result_pages import Page, ResultInfo, ResultPages


class OperationStatus(Enum):
    """The status of an operation, under Flink's names."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELED = "CANCELED"
    CLOSED = "CLOSED"
    ERROR = "ERROR"
    TIMEOUT = "TIMEOUT"


_ACTIVE = (OperationStatus.PENDING, OperationStatus.RUNNING)


class Operation:
    """One statement. The methods may be called from any thread; `now` is seconds of a monotonic clock."""

    def __init__(self, handle: str, deadline: float | None) -> None:
        self.handle = handle
        self._deadline = deadline
        self._lock = threading.Lock()
        self._status = OperationStatus.PENDING
        self._pages: ResultPages | None = None
        self._failure: Exception | None = None

    def run(self, execute: Callable[[], ResultPages]) -> None:
        """Execute the statement, unless it was cancelled before; keeps its result or its error."""
        with self._lock:
            if self._status is not OperationStatus.PENDING:
                return
            self._status = OperationStatus.RUNNING
        try:
            pages = execute()
        except Exception as problem:
            with self._lock:
                if self._status is OperationStatus.RUNNING:
                    self._status, self._failure = OperationStatus.ERROR, problem
            return
        with self._lock:
            is_wanted = self._status is OperationStatus.RUNNING
            if is_wanted:
                self._status, self._pages = OperationStatus.FINISHED, pages
        if not is_wanted:
            pages.close()

    def status(self, now: float) -> OperationStatus:
        """Return the status; an operation that runs for too long is ended."""
        if self._deadline is not None and now >= self._deadline:
            self._end(OperationStatus.TIMEOUT, only_active=True)
        with self._lock:
            return self._status

    def is_running(self) -> bool:
        """Whether the statement is executed, and was neither cancelled nor closed."""
        with self._lock:
            return self._status is OperationStatus.RUNNING

    def is_active(self, now: float) -> bool:
        """Whether the statement is still running. A query whose rows are not being read does not count."""
        return self.status(now) in _ACTIVE

    def fetch(self, token: int, now: float) -> tuple[ResultInfo, Page] | None:
        """Return a page of the result; None if the statement is still running.

        Raises:
            NotFetchable: The operation was cancelled, closed or timed out.

        """
        status = self.status(now)
        if status in _ACTIVE:
            return None
        if self._failure is not None:
            raise self._failure
        if self._pages is None or status is not OperationStatus.FINISHED:
            raise NotFetchable(status.value)
        return self._pages.info, self._pages.fetch(token)

    def cancel(self) -> None:
        """Cancel the statement; the job of a query is cancelled with it, the job of an INSERT is not."""
        self._end(OperationStatus.CANCELED)

    def close(self) -> None:
        """Drop the result; a running query is cancelled."""
        self._end(OperationStatus.CLOSED)

    def _end(self, status: OperationStatus, *, only_active: bool = False) -> None:
        with self._lock:
            if self._status in (OperationStatus.CLOSED, status) or (only_active and self._status not in _ACTIVE):
                return
            self._status = status
            pages = self._pages
        if pages is not None:
            pages.close()

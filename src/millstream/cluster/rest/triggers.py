"""Operations that a client triggers and whose result it polls for: savepoints and disposals.

Promises: the result of a finished operation is kept for five minutes, as in Flink; the number of results is bounded; a
request with a known trigger id returns the existing operation.
Does not know: what the operations do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from millstream.cluster.rest.errors import NotFound
from millstream.errors import ExternalError

_KEPT_SECONDS = 300.0
_MOST = 1_000

T = TypeVar("T")


class UnknownTrigger(NotFound):
    """There is no operation of this id, or its result is no longer kept."""

    def __init__(self, trigger: str) -> None:
        super().__init__(f"there is no operation {trigger}", hint="results are kept for five minutes")


class TooManyOperations(ExternalError):
    """Too many operations are under way."""

    def __init__(self) -> None:
        super().__init__(f"{_MOST} operations are under way", hint="wait until some of them have finished")


class Triggers(Generic[T]):
    """The operations of one type, by (scope, trigger id); the scope is the job, or empty."""

    def __init__(self, now: Callable[[], float], new_id: Callable[[], str]) -> None:
        """`now` returns monotonic seconds."""
        self._now, self._new_id = now, new_id
        self._lock = threading.Lock()
        self._operations: dict[tuple[str, str], Future[T]] = {}
        self._done_at: dict[tuple[str, str], float] = {}

    def trigger(self, scope: str, trigger: str | None, start: Callable[[], Future[T]]) -> str:
        """Start an operation and return its id; nothing is started for an id that is known."""
        trigger = trigger or self._new_id()
        key = scope, trigger
        with self._lock:
            self._forget()
            if key not in self._operations:
                if len(self._operations) >= _MOST:
                    raise TooManyOperations
                self._operations[key] = start()
        return trigger

    def get(self, scope: str, trigger: str) -> Future[T]:
        """Return the operation of an id.

        Raises:
            UnknownTrigger: There is none.

        """
        with self._lock:
            self._forget()
            try:
                return self._operations[scope, trigger]
            except KeyError:
                raise UnknownTrigger(trigger) from None

    def _forget(self) -> None:
        """Forget operations that finished long ago."""
        now = self._now()
        for key, operation in list(self._operations.items()):
            if operation.done() and now - self._done_at.setdefault(key, now) > _KEPT_SECONDS:
                del self._operations[key], self._done_at[key]

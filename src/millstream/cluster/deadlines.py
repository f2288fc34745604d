"""Calls with a deadline, so that every wait ends with a result or an error.

Promises: a call returns the result of its work, raises the error of the work, or raises `late` if the work has not
ended in time. Work that cannot be cancelled continues in its thread, so its later effects must be harmless.
Does not know: what the work is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from heapq import heappop, heappush
from itertools import count
from queue import SimpleQueue
from threading import Condition, Event, Thread
from typing import TypeVar

from millstream.errors import ExternalError

T = TypeVar("T")

_disabled: ContextVar[bool] = ContextVar("disabled", default=False)


@contextmanager
def without_deadlines() -> Iterator[None]:
    """Disable deadlines in a block: work runs in the calling thread. For simulations, whose clock is virtual."""
    token = _disabled.set(True)
    try:
        yield
    finally:
        _disabled.reset(token)


def has_no_deadlines() -> bool:
    """Whether deadlines are disabled."""
    return _disabled.get()


def start_in_thread(work: Callable[[], T]) -> Future[T]:
    """Start work in another thread and return the future of its result.

    Threads are reused, because every epoch has such work, and starting a thread takes longer than most of it."""
    outcome: Future[T] = Future()

    def run() -> Callable[[], None]:
        try:
            result = work()
        except BaseException as problem:  # the caller gets the error from the future
            return partial(outcome.set_exception, problem)
        return partial(outcome.set_result, result)

    call = partial(copy_context().run, run)
    try:
        _idle.pop().put(call)
    except IndexError:
        calls: _Calls = SimpleQueue()
        calls.put(call)
        Thread(target=_serve, args=(calls,), name="with-deadline", daemon=True).start()
    return outcome


_Calls = SimpleQueue[Callable[[], Callable[[], None]] | None]
_idle: list[_Calls] = []  # the queues of idle threads
_MAX_IDLE = 8


def _serve(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        answer = call()
        if len(_idle) < _MAX_IDLE:
            _idle.append(calls)  # before the result is set, so that the next call of the caller finds this thread
        else:
            calls.put(None)
        answer()
        call = answer = None  # type: ignore[assignment]  # references would keep the result alive


_WATCH_INTERVAL = 1.0  # seconds between two checks of the list; only a shorter deadline must wake the thread


class _Watchdog:
    """Calls functions when their deadline has passed, each in its own thread. A single thread waits for all deadlines,
    because a timer for each epoch would start a thread for each epoch."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._due: list[tuple[float, int, Callable[[], None], Event]] = []
        self._numbers = count()
        self._is_running = False

    def call_after(self, seconds: float, expire: Callable[[], None]) -> Event:
        """Call `expire` after this time, unless the returned event is set before."""
        ended = Event()
        entry = time.monotonic() + seconds, next(self._numbers), expire, ended
        with self._changed:
            self._forget_ended()
            heappush(self._due, entry)
            if not self._is_running:
                self._is_running = True
                Thread(target=self._run, name="deadlines", daemon=True).start()
            elif seconds < _WATCH_INTERVAL:
                self._changed.notify()
        return ended

    def _forget_ended(self) -> None:
        while self._due and self._due[0][3].is_set():
            heappop(self._due)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._forget_ended()
                remaining = self._due[0][0] - time.monotonic() if self._due else _WATCH_INTERVAL
                if remaining > 0:
                    self._changed.wait(min(remaining, _WATCH_INTERVAL))
                    continue
                expire = heappop(self._due)[2]
            Thread(target=expire, name="deadline-passed", daemon=True).start()


_watchdog = _Watchdog()


def run_within(millis: int, work: Callable[[], T], late: Exception) -> T:
    """Return the result of `work`, which runs in another thread, if it ends within `millis` milliseconds."""
    if _disabled.get():
        return work()
    outcome = start_in_thread(work)
    try:
        return outcome.result(millis / 1000)
    except TimeoutError:
        if outcome.done():  # the work itself raised a timeout error
            raise
        raise late from None


def run_watched(
    millis: int,
    work: Callable[[], T],
    cancel: Callable[[], None],
    late: Exception,
    grace: int = 0,
    abandon: Callable[[], None] = lambda: None,
) -> T:
    """Return the result of `work`, which runs in this thread and is cancelled from another one after `millis`
    milliseconds. If it has not ended `grace` milliseconds after that, `abandon` is called and must make it end; a
    `grace` of 0 disables this."""
    if _disabled.get():
        return work()
    expired = Event()

    def expire() -> None:
        expired.set()
        cancel()
        if grace and not ended.wait(grace / 1000):
            abandon()

    ended = _watchdog.call_after(millis / 1000, expire)
    try:
        return work()
    except ExternalError:
        if expired.is_set():
            raise late from None
        raise
    finally:
        ended.set()

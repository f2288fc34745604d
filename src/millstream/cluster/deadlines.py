"""Calls with a deadline: every wait ends, with a reason.

Promises: a call returns the result of its work, raises what the work raised, or raises `late` when the work has not
ended in time. Work that cannot be cancelled goes on in its thread, so its later effects must be harmless.
Does not know: what the work is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event, Thread, Timer
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
    """Start work in a new thread and return the future of its result."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as problem:  # the caller gets it from the future
            outcome.set_exception(problem)

    Thread(target=copy_context().run, args=(run,), name="with-deadline", daemon=True).start()
    return outcome


def run_within(millis: int, work: Callable[[], T], late: Exception) -> T:
    """Return the result of `work`, which runs in another thread, if it ends within `millis` milliseconds."""
    if _disabled.get():
        return work()
    outcome = start_in_thread(work)
    try:
        return outcome.result(millis / 1000)
    except TimeoutError:
        if outcome.done():  # the work itself raised it
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
    expired, ended = Event(), Event()

    def expire() -> None:
        expired.set()
        cancel()
        if grace and not ended.wait(grace / 1000):
            abandon()

    watchdog = Timer(millis / 1000, expire)
    watchdog.daemon = True
    watchdog.start()
    try:
        return work()
    except ExternalError:
        if expired.is_set():
            raise late from None
        raise
    finally:
        ended.set()
        watchdog.cancel()

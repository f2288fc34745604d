"""Work with a deadline: every wait ends, with a reason.

Promises: gives the result, raises what the work raised, or raises `late` when it has not ended in time.
Does not know: what the work is. What cannot be cancelled is left behind, and what it does later must do no harm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event, Thread, Timer
from typing import TypeVar

from millstream.errors import ExternalError

T = TypeVar("T")

_endless: ContextVar[bool] = ContextVar("endless", default=False)


@contextmanager
def without_deadlines() -> Iterator[None]:
    """Work in the calling thread, however long it takes: where the clock is not real, no deadline is."""
    before = _endless.set(True)
    try:
        yield
    finally:
        _endless.reset(before)


def has_no_deadlines() -> bool:
    """Whether work is done in the calling thread, however long it takes."""
    return _endless.get()


def begun(work: Callable[[], T]) -> Future[T]:
    """Do work in a thread of its own; gives what comes of it."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as problem:  # handed to the caller, whatever it is
            outcome.set_exception(problem)

    Thread(target=copy_context().run, args=(run,), name="with-deadline", daemon=True).start()
    return outcome


def within(millis: int, work: Callable[[], T], late: Exception) -> T:
    """The result of `work`, if it comes within `millis` milliseconds."""
    if _endless.get():
        return work()
    outcome = begun(work)
    try:
        return outcome.result(millis / 1000)
    except TimeoutError:
        if outcome.done():  # the work itself raised it
            raise
        raise late from None


def watched(
    millis: int,
    work: Callable[[], T],
    cancel: Callable[[], None],
    late: Exception,
    grace: int = 0,
    abandon: Callable[[], None] = lambda: None,
) -> T:
    """The result of `work`, done in this thread and cancelled from another one after `millis` milliseconds. When it has
    not ended `grace` milliseconds after that, it is abandoned: `abandon` must make it end; 0 for never."""
    if _endless.get():
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

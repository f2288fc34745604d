"""Calls to Spark in a thread that can be abandoned.

Promises: a call returns its result, raises its error, or raises an error that says why the caller no longer waits:
Spark is gone or does not answer, the time limit has passed, or another thread has abandoned the call. The calls of one
engine run one after another in one thread, because Spark keeps the description of a job for each thread; a thread whose
call was abandoned makes no further call.
Does not know: what is called."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_log = logging.getLogger("millstream.spark")


class Calls:
    """The thread in which one engine calls Spark. `interval`: the seconds between two health checks during a call."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._lock = threading.Lock()
        self._work: SimpleQueue[Callable[[], None] | None] | None = None
        self._waiting: Future[Any] | None = None

    def run(
        self,
        work: Callable[[], T],
        find_problem: Callable[[], Exception | None],
        seconds: float,
        on_timeout: Callable[[], Exception],
    ) -> T:
        """Return the result of `work`. `find_problem` is called at each interval; an error that it returns is
        raised."""
        with self._lock:
            return self._run(work, find_problem, seconds, on_timeout)

    def _run(
        self,
        work: Callable[[], T],
        find_problem: Callable[[], Exception | None],
        seconds: float,
        on_timeout: Callable[[], Exception],
    ) -> T:
        outcome: Future[T] = Future()
        self._waiting = outcome  # from here on another thread may abandon the call and its queue
        calls = self._work
        if calls is None:
            calls = self._work = SimpleQueue()
            threading.Thread(target=_serve, args=(calls,), name="spark-calls", daemon=True).start()
        context = copy_context()
        calls.put(lambda: context.run(_complete, outcome, work))
        deadline = time.monotonic() + seconds
        while not _wait(outcome, min(self._interval, max(0.0, deadline - time.monotonic()))):
            problem = find_problem() or (on_timeout() if time.monotonic() >= deadline else None)
            if problem is not None:
                self.give_up(problem)
        self._waiting = None
        return outcome.result()

    def give_up(self, problem: Exception) -> None:
        """Make the waiting caller raise this error, and abandon the call; from any thread."""
        outcome = self._waiting
        if outcome is None:
            return
        with suppress(InvalidStateError):  # the call has just ended
            outcome.set_exception(problem)
            self.close()

    def close(self) -> None:
        """End the thread after its last call."""
        work, self._work = self._work, None
        if work is not None:
            work.put(None)


def call_within(work: Callable[[], T], seconds: float) -> T:
    """Return the result of `work`, called in a new thread; raise `TimeoutError` if it takes longer than this."""
    outcome: Future[T] = Future()
    call = partial(copy_context().run, _complete, outcome, work)
    threading.Thread(target=call, name="spark-call", daemon=True).start()
    return outcome.result(seconds)


def try_within(action: str, work: Callable[[], Any], seconds: float) -> bool:
    """Call `work`, which may fail or never end; return whether it succeeded in time. Raises nothing."""
    try:
        call_within(work, seconds)
    except Exception as problem:
        _log.info("could not %s: %s", action, str(problem) or f"Spark did not answer within {seconds:g} s")
        return False
    return True


def _complete(outcome: Future[T], work: Callable[[], T]) -> None:
    """Call `work` and complete the future, unless it was abandoned."""
    try:
        result = work()
    except BaseException as problem:  # raised in the waiting thread
        with suppress(InvalidStateError):
            outcome.set_exception(problem)
    else:
        with suppress(InvalidStateError):
            outcome.set_result(result)


def _serve(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := calls.get()) is not None:
        call()
        call = None  # a reference would keep the result alive


def _wait(outcome: Future[Any], seconds: float) -> bool:
    with suppress(TimeoutError):
        outcome.exception(seconds)
    return outcome.done()

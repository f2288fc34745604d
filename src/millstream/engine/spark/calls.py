"""Calls to Spark, made in a thread that can be left behind.

Promises: a call gives its result, raises what it raised, or raises an error that says why nobody waits for it any more:
Spark is gone or silent, the time is over, or someone gave the call up. The calls of one engine are made one after
another in one thread, because Spark keeps the description of a job for each thread; a thread whose call was left behind
makes no further one.
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
    """The thread in which one engine calls Spark. `every`: the seconds between two looks at a Spark that is waited
    for."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._lock = threading.Lock()
        self._work: SimpleQueue[Callable[[], None] | None] | None = None
        self._waiting: Future[Any] | None = None

    def run(
        self, work: Callable[[], T], look: Callable[[], Exception | None], seconds: float, late: Callable[[], Exception]
    ) -> T:
        """The result of `work`. `look` is called again and again meanwhile; what it finds is raised."""
        with self._lock:
            return self._run(work, look, seconds, late)

    def _run(
        self, work: Callable[[], T], look: Callable[[], Exception | None], seconds: float, late: Callable[[], Exception]
    ) -> T:
        outcome: Future[T] = Future()
        self._waiting = outcome  # from here on another thread may give the call up, and with it the queue
        calls = self._work
        if calls is None:
            calls = self._work = SimpleQueue()
            threading.Thread(target=_serve, args=(calls,), name="spark-calls", daemon=True).start()
        context = copy_context()
        calls.put(lambda: context.run(_settle, outcome, work))
        until = time.monotonic() + seconds
        while not _ended(outcome, min(self._every, max(0.0, until - time.monotonic()))):
            problem = look() or (late() if time.monotonic() >= until else None)
            if problem is not None:
                self.give_up(problem)
        self._waiting = None
        return outcome.result()

    def give_up(self, problem: Exception) -> None:
        """Make the waiting caller raise this, and leave the call behind; from any thread."""
        outcome = self._waiting
        if outcome is None:
            return
        with suppress(InvalidStateError):  # it has just ended
            outcome.set_exception(problem)
            self.close()

    def close(self) -> None:
        """End the thread after its last call."""
        work, self._work = self._work, None
        if work is not None:
            work.put(None)


def answer(work: Callable[[], T], seconds: float) -> T:
    """The result of `work`, done in a thread of its own; `TimeoutError` when it has not come within this time."""
    outcome: Future[T] = Future()
    question = partial(copy_context().run, _settle, outcome, work)
    threading.Thread(target=question, name="spark-question", daemon=True).start()
    return outcome.result(seconds)


def attempt(what: str, work: Callable[[], Any], seconds: float) -> bool:
    """Do something that may fail or never end; whether it was done within this time. Raises nothing."""
    try:
        answer(work, seconds)
    except Exception as problem:
        _log.info("could not %s: %s", what, str(problem) or f"Spark did not answer within {seconds:g} s")
        return False
    return True


def _settle(outcome: Future[T], work: Callable[[], T]) -> None:
    """Do the work, and give what came of it to whoever still waits."""
    try:
        result = work()
    except BaseException as problem:  # handed on, whatever it is
        with suppress(InvalidStateError):
            outcome.set_exception(problem)
    else:
        with suppress(InvalidStateError):
            outcome.set_result(result)


def _serve(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := calls.get()) is not None:
        call()
        call = None  # it holds its result


def _ended(outcome: Future[Any], seconds: float) -> bool:
    with suppress(TimeoutError):
        outcome.exception(seconds)
    return outcome.done()

"""Work with a deadline: every wait ends, with a reason.

Promises: gives the result, raises what the work raised, or raises `late` when it has not ended in time.
Does not know: how to stop the work; it is left behind, and what it does later must do no harm."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def within(millis: int, work: Callable[[], T], late: Exception) -> T:
    """The result of `work`, if it comes within `millis` milliseconds."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as problem:  # handed to the caller, whatever it is
            outcome.set_exception(problem)

    Thread(target=run, name="with-deadline", daemon=True).start()
    try:
        return outcome.result(millis / 1000)
    except TimeoutError:
        if outcome.done():  # the work itself raised it
            raise
        raise late from None

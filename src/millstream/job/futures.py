"""A result that is not there yet.

Promises: PyFlink's CompletableFuture on top of `concurrent.futures.Future`; a result is converted once it is asked for.
Does not know: who completes it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any


class CompletableFuture:
    """The outcome of something under way, with PyFlink's methods."""

    def __init__(self, future: Future[Any], convert: Callable[[Any], Any] | None = None) -> None:
        self._future = future
        self._convert = convert

    @staticmethod
    def completed(value: Any) -> CompletableFuture:
        """A future that already has its result."""
        future: Future[Any] = Future()
        future.set_result(value)
        return CompletableFuture(future)

    @staticmethod
    def failed(error: BaseException) -> CompletableFuture:
        """A future that has already failed."""
        future: Future[Any] = Future()
        future.set_exception(error)
        return CompletableFuture(future)

    def cancel(self) -> bool:
        """Give up on the result; True if the future is cancelled now."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Whether it was cancelled before it completed."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Whether it has completed in any way: with a result, an error or by being cancelled."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result (at most `timeout` seconds) and return it, or raise the error it failed with."""
        value = self._future.result(timeout)
        return value if self._convert is None else self._convert(value)

    def exception(self) -> BaseException | None:
        """The error it has failed with by now, if any; does not wait."""
        if not self._future.done():
            return None
        try:
            return self._future.exception()
        except CancelledError as cancelled:
            return cancelled

    def __str__(self) -> str:
        if not self._future.done():
            return "CompletableFuture[not completed]"
        return f"CompletableFuture[{'completed exceptionally' if self.exception() else 'completed normally'}]"

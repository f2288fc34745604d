"""CompletableFuture: the future result of an asynchronous operation.

Promises: PyFlink's CompletableFuture on top of `concurrent.futures.Future`; a result is converted when it is read.
Does not know: who completes it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any


class CompletableFuture:
    """The future result of an operation, with PyFlink's methods.

    Example:
        >>> CompletableFuture.completed(5).result()
        5

    """

    def __init__(self, future: Future[Any], convert: Callable[[Any], Any] | None = None) -> None:
        self._future = future
        self._convert = convert

    @staticmethod
    def completed(value: Any) -> CompletableFuture:
        """Create a future that already has its result.

        Args:
            value: The result.

        """
        future: Future[Any] = Future()
        future.set_result(value)
        return CompletableFuture(future)

    @staticmethod
    def failed(error: BaseException) -> CompletableFuture:
        """Create a future that has already failed.

        Args:
            error: What `result` raises.

        """
        future: Future[Any] = Future()
        future.set_exception(error)
        return CompletableFuture(future)

    def cancel(self) -> bool:
        """Cancel the operation; return whether the future is cancelled now."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Return whether it was cancelled before it completed."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Return whether it has completed: with a result, with an error, or because it was cancelled."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result, at most `timeout` seconds, and return it.

        Args:
            timeout: Seconds; None waits without a limit.

        Raises:
            TimeoutError: The operation has not completed in time.
            BaseException: The error of the operation, if it failed.

        """
        value = self._future.result(timeout)
        return value if self._convert is None else self._convert(value)

    def exception(self) -> BaseException | None:
        """Return the error of an operation that has failed, else None; does not wait."""
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

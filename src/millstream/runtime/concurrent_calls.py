"""Concurrent calls of one asynchronous function, up to a capacity, on an event loop of its own.

Promises: `run` returns when every record has its result, and no call is left running. A call that exceeds the timeout
is cancelled, and `timeout()` of the function returns its result. The first call that fails ends the run; its error
names the record and its key.
Does not know: epochs, watermarks, how results are used."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import select
import selectors
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from millstream.errors import UserError
from millstream.functions import AsyncFunction, AsyncRetryStrategy
from millstream.runtime import rowwise

_FD_SETSIZE = 1024  # select() supports only smaller file descriptors


class AsyncCallTimedOut(UserError, TimeoutError):
    """A call did not return in time, and the function does not handle timeouts."""

    __str__ = UserError.__str__

    def __init__(self, seconds: float, record: object) -> None:
        self.seconds = seconds
        values = list(record) if isinstance(record, tuple) else record
        super().__init__(
            f"TimeoutError: Async function call has timed out for input: {rowwise.shorten(values)}; "
            f"the timeout is {seconds:g} s",
            hint="increase the timeout, or override timeout() to return a result instead",
        )


class NotAList(UserError, TypeError):
    """An asynchronous function returned something that is not a list of results."""

    __str__ = UserError.__str__

    def __init__(self, method: str, result: object) -> None:
        words = "cannot be none" if result is None else "should be of list type"  # as in PyFlink
        super().__init__(
            f"The result of AsyncFunction {words}: {method} returned {rowwise.shorten(result)}",
            hint="return [] for none, and [result] for one",
        )


class ConcurrentCalls:
    """Calls `function` for many records, at most `capacity` of them at once. `timeout` is in seconds, 0 for none.

    A call occupies its slot of the capacity until it has a result, also while it waits for a retry."""

    def __init__(
        self,
        operator: str,
        function: AsyncFunction[Any, Any],
        *,
        capacity: int,
        timeout: float = 0,
        retry: AsyncRetryStrategy[Any],
        count: Callable[[str], None],
    ) -> None:
        self.operator, self.function, self.capacity, self.timeout = operator, function, capacity, timeout
        self.count = count
        self.loop = precise_event_loop()
        predicate = retry.get_retry_predicate()
        retries = predicate.result_predicate() is not None or predicate.exception_predicate() is not None
        self.invoke: Callable[[Any], Awaitable[Any]] = function.async_invoke
        if retries:
            self.invoke = _with_retries(function.async_invoke, retry, count)

    def run(self, rows: Sequence[Any], keys: Sequence[Any] | None) -> tuple[list[int], list[list[Any]]]:
        """Return the indexes of the records in the order in which their calls ended, and the results of every
        record."""
        return self.loop.run_until_complete(_Run(self, rows, keys).results())

    def close(self) -> None:
        """Cancel running calls and close the event loop."""
        if self.loop.is_closed():
            return
        running = asyncio.all_tasks(self.loop)
        for task in running:
            task.cancel()
        if running:
            self.loop.run_until_complete(asyncio.wait(running, timeout=0.1))
        with contextlib.suppress(RuntimeError):
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


def precise_event_loop() -> asyncio.AbstractEventLoop:
    """Create an event loop whose timers are more precise than a millisecond, if the system supports it."""
    if not hasattr(selectors, "EpollSelector"):
        return asyncio.new_event_loop()

    class PreciseSelector(selectors.EpollSelector):
        """epoll waits for whole milliseconds, a fifth of a fast look-up; select() on its descriptor is more precise."""

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is not None and timeout > 0 and self.fileno() < _FD_SETSIZE:
                select.select([self.fileno()], [], [], timeout)
                timeout = 0
            return super().select(timeout)

    return asyncio.SelectorEventLoop(PreciseSelector())


class _CallSlot:
    """A slot of the capacity, with a running call. A slot that was given up is replaced by another."""

    __slots__ = ("given_up", "index", "since", "task")

    def __init__(self, since: float) -> None:
        self.index = -1  # no call yet
        self.since = since
        self.given_up = False
        self.task: asyncio.Task[None] | None = None


class _Run:
    """One run over some records. There is one task for each slot, which makes many calls: a task per record costs
    more."""

    def __init__(self, calls: ConcurrentCalls, rows: Sequence[Any], keys: Sequence[Any] | None) -> None:
        self._calls = calls
        self._rows, self._keys = rows, keys
        self._waiting: Iterator[int] = iter(range(len(rows)))
        self._results: list[list[Any]] = [[]] * len(rows)
        self._ended: list[int] = []
        self._slots: set[_CallSlot] = set()
        self._all_done: asyncio.Future[None] = calls.loop.create_future()
        self._watcher: asyncio.TimerHandle | None = None

    async def results(self) -> tuple[list[int], list[list[Any]]]:
        """Start as many calls as the capacity allows, then wait for all records."""
        calls = self._calls
        for _ in range(min(calls.capacity, len(self._rows))):
            self._open_slot()
        if calls.timeout > 0:
            self._watcher = calls.loop.call_later(calls.timeout, self._watch)
        try:
            if self._rows:
                await self._all_done
        finally:
            if self._watcher is not None:
                self._watcher.cancel()
            running = [slot for slot in self._slots if slot.task is not None and not slot.task.done()]
            for slot in running:
                slot.given_up = True
                slot.task.cancel()  # type: ignore[union-attr]
            if running:
                await asyncio.sleep(0)  # cancelled calls end now
        return self._ended, self._results

    def _open_slot(self) -> None:
        slot = _CallSlot(self._calls.loop.time())
        self._slots.add(slot)
        slot.task = self._calls.loop.create_task(self._work(slot))

    async def _work(self, slot: _CallSlot) -> None:
        """Make one call after the other, as long as there are records."""
        rows, invoke, time = self._rows, self._calls.invoke, self._calls.loop.time
        for index in self._waiting:
            slot.index, slot.since = index, time()
            try:
                result = await invoke(rows[index])
                if slot.given_up:
                    return
                self._finish(index, result, "async_invoke()")
            except asyncio.CancelledError:
                if not slot.given_up:  # the function cancelled itself
                    self._fail(index, RuntimeError("the asynchronous call was cancelled"))
                raise
            except (Exception, SystemExit) as problem:
                if not slot.given_up:
                    self._fail(index, problem)
                return
        self._slots.discard(slot)

    def _finish(self, index: int, result: Any, method: str) -> None:
        self._results[index] = result if result.__class__ is list else as_list(result, method)
        self._ended.append(index)
        if len(self._ended) == len(self._rows) and not self._all_done.done():
            self._all_done.set_result(None)

    def _fail(self, index: int, problem: BaseException) -> None:
        if not self._all_done.done():
            key = {} if self._keys is None else {"key": self._keys[index]}
            failure = rowwise.failure(self._calls.operator, problem, record=self._rows[index], **key)
            self._all_done.set_exception(failure)

    def _watch(self) -> None:
        """Give up calls that exceed the timeout, and schedule the next check."""
        calls = self._calls
        now = calls.loop.time()
        timed_out = [slot for slot in self._slots if slot.index >= 0 and now - slot.since >= calls.timeout]
        for slot in timed_out:
            self._give_up(slot)
            if self._all_done.done():
                return
        first = min((slot.since for slot in self._slots), default=now)
        self._watcher = calls.loop.call_at(max(first, now - calls.timeout) + calls.timeout, self._watch)

    def _give_up(self, slot: _CallSlot) -> None:
        slot.given_up = True
        self._slots.discard(slot)
        if slot.task is not None:
            slot.task.cancel()
        self._calls.count("numAsyncTimeouts")
        function = self._calls.function
        try:
            if type(function).timeout is AsyncFunction.timeout:
                raise AsyncCallTimedOut(self._calls.timeout, self._rows[slot.index])
            self._finish(slot.index, function.timeout(self._rows[slot.index]), "timeout()")
        except (Exception, SystemExit) as problem:
            self._fail(slot.index, problem)
        else:
            self._open_slot()


def as_list(result: Any, method: str) -> list[Any]:
    """Return the results of one call as a list; refuse texts, mappings and values that are not iterable."""
    if isinstance(result, str | bytes | Mapping) or not isinstance(result, Iterable):
        if inspect.iscoroutine(result):
            result.close()
        raise NotAList(method, result)
    return list(result)


def _with_retries(
    invoke: Callable[[Any], Awaitable[Any]], strategy: AsyncRetryStrategy[Any], count: Callable[[str], None]
) -> Callable[[Any], Awaitable[Any]]:
    """Return a function that calls `invoke` with the retries of the strategy; the timeout covers all attempts."""
    predicate = strategy.get_retry_predicate()
    retries_result, retries_error = predicate.result_predicate(), predicate.exception_predicate()

    async def call(value: Any) -> Any:
        attempts = 1
        while True:
            try:
                result = as_list(await invoke(value), "async_invoke()")
            except Exception as problem:
                if retries_error is None or not retries_error(problem) or not strategy.can_retry(attempts):
                    raise
            else:
                if retries_result is None or not retries_result(result) or not strategy.can_retry(attempts):
                    return result
            count("numAsyncRetries")
            await asyncio.sleep(strategy.get_backoff_time_millis(attempts) / 1000)
            attempts += 1

    return call

"""Calls of one asynchronous function, a bounded number at a time, on an event loop of its own.

Promises: `run` comes back when every record has its result, and leaves no call behind; a call that takes too long is
given up and `timeout` speaks for it; the first call that fails ends the run, with the record and its key.
Does not know: epochs, watermarks, what becomes of the results."""

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

_FD_SETSIZE = 1024  # file descriptors from here on are beyond select()


class AsyncCallTimedOut(UserError, TimeoutError):
    """A call did not return in time, and the function does not handle timeouts."""

    __str__ = UserError.__str__

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            f"TimeoutError: the asynchronous call took longer than its timeout of {seconds:g} s",
            hint="raise the timeout, or override timeout() to give a result in its place",
        )


class NotAList(UserError, TypeError):
    """An asynchronous function gave something that is not a list of results."""

    __str__ = UserError.__str__

    def __init__(self, method: str, given: object) -> None:
        super().__init__(
            f"{method} must return a list of results, not {rowwise.shorten(given)}",
            hint="return [] for none, and [result] for one",
        )


class ConcurrentCalls:
    """`function` called for many records, at most `capacity` of them at once. `timeout` is in seconds, 0 for none.

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
        self.loop = fine_event_loop()
        predicate = retry.get_retry_predicate()
        retries = predicate.result_predicate() is not None or predicate.exception_predicate() is not None
        self.invoke: Callable[[Any], Awaitable[Any]] = function.async_invoke
        if retries:
            self.invoke = _retrying(function.async_invoke, retry, count)

    def run(self, rows: Sequence[Any], keys: Sequence[Any] | None) -> tuple[list[int], list[list[Any]]]:
        """The results of every record, and the positions of the records in the order their calls ended."""
        return self.loop.run_until_complete(_Run(self, rows, keys).results())

    def close(self) -> None:
        """Give up whatever still runs, and the loop."""
        if self.loop.is_closed():
            return
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        if left:
            self.loop.run_until_complete(asyncio.wait(left, timeout=0.1))
        with contextlib.suppress(RuntimeError):
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


def fine_event_loop() -> asyncio.AbstractEventLoop:
    """An event loop whose timers are exact to less than a millisecond, where the system allows it."""
    if not hasattr(selectors, "EpollSelector"):
        return asyncio.new_event_loop()

    class FineSelector(selectors.EpollSelector):
        """epoll waits whole milliseconds, a fifth of a fast look-up; but it can itself be waited for more finely."""

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is not None and timeout > 0 and self.fileno() < _FD_SETSIZE:
                select.select([self.fileno()], [], [], timeout)
                timeout = 0
            return super().select(timeout)

    return asyncio.SelectorEventLoop(FineSelector())


class _CallSlot:
    """A slot of the capacity, with a running call. A slot that was `given_up` is replaced by another."""

    __slots__ = ("given_up", "index", "since", "task")

    def __init__(self, since: float) -> None:
        self.index = -1  # nothing yet
        self.since = since
        self.given_up = False
        self.task: asyncio.Task[None] | None = None


class _Run:
    """One run over some records. Places are few and live long: a record costs a call, not a task of its own."""

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
            self._open_place()
        if calls.timeout > 0:
            self._watcher = calls.loop.call_later(calls.timeout, self._watch)
        try:
            if self._rows:
                await self._all_done
        finally:
            if self._watcher is not None:
                self._watcher.cancel()
            left = [slot for slot in self._slots if slot.task is not None and not slot.task.done()]
            for slot in left:
                slot.given_up = True
                slot.task.cancel()  # type: ignore[union-attr]
            if left:
                await asyncio.sleep(0)  # they end now, unless they will not be cancelled
        return self._ended, self._results

    def _open_place(self) -> None:
        slot = _CallSlot(self._calls.loop.time())
        self._slots.add(slot)
        slot.task = self._calls.loop.create_task(self._work(slot))

    async def _work(self, slot: _CallSlot) -> None:
        """One call after the other, as long as there are records."""
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
            known = {} if self._keys is None else {"key": self._keys[index]}
            failure = rowwise.failure(self._calls.operator, problem, record=self._rows[index], **known)
            self._all_done.set_exception(failure)

    def _watch(self) -> None:
        """Give up the calls that are over their time; come back when the next may be."""
        calls = self._calls
        now = calls.loop.time()
        late = [slot for slot in self._slots if slot.index >= 0 and now - slot.since >= calls.timeout]
        for slot in late:
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
                raise AsyncCallTimedOut(self._calls.timeout)
            self._finish(slot.index, function.timeout(self._rows[slot.index]), "timeout()")
        except (Exception, SystemExit) as problem:
            self._fail(slot.index, problem)
        else:
            self._open_place()


def as_list(result: Any, method: str) -> list[Any]:
    """The results of one call; what is text, a mapping or no collection at all is a mistake."""
    if isinstance(result, str | bytes | Mapping) or not isinstance(result, Iterable):
        if inspect.iscoroutine(result):
            result.close()
        raise NotAList(method, result)
    return list(result)


def _retrying(
    invoke: Callable[[Any], Awaitable[Any]], strategy: AsyncRetryStrategy[Any], count: Callable[[str], None]
) -> Callable[[Any], Awaitable[Any]]:
    """Call `invoke` with the retries of the strategy; the timeout is for all tries together."""
    predicate = strategy.get_retry_predicate()
    bad_result, bad_end = predicate.result_predicate(), predicate.exception_predicate()

    async def call(value: Any) -> Any:
        attempts = 1
        while True:
            try:
                result = as_list(await invoke(value), "async_invoke()")
            except Exception as problem:
                if bad_end is None or not bad_end(problem) or not strategy.can_retry(attempts):
                    raise
            else:
                if bad_result is None or not bad_result(result) or not strategy.can_retry(attempts):
                    return result
            count("numAsyncRetries")
            await asyncio.sleep(strategy.get_backoff_time_millis(attempts) / 1000)
            attempts += 1

    return call

"""Asynchronous I/O: a slow system is asked for many records at once.

Promises: all results of what came before a watermark, and of an epoch, are emitted before it ends, so nothing is in
flight at an epoch's boundary and nothing is lost or doubled over a restart; ordered keeps the order of the records,
unordered that of the answers; results carry the timestamp of their record.
Does not know: event loops; `concurrent_calls` does."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.errors import UserError
from millstream.functions import AsyncFunction, AsyncRetryStrategy
from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.concurrent_calls import ConcurrentCalls
from millstream.runtime.context import StreamingRuntimeContext
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec


class NoStateInAsyncFunction(UserError):
    """An asynchronous function asked for keyed state."""

    def __init__(self, operator: str, name: str) -> None:
        super().__init__(
            f"operator '{operator}' asks for keyed state '{name}', but its calls for several keys run at once",
            hint="keep the state in a process function before or after it",
        )


class AsyncRuntimeContext(StreamingRuntimeContext):
    """The runtime context of an asynchronous function: it has no keyed state."""

    def _refuse(self, state_descriptor: Any) -> Any:
        raise NoStateInAsyncFunction(self.get_task_name(), state_descriptor.name)

    get_state = get_list_state = get_map_state = get_reducing_state = get_aggregating_state = _refuse


@dataclass(frozen=True)
class AsyncSpec(OperatorSpec):
    """An asynchronous function; `timeout` is in milliseconds, 0 for none, and covers all tries of a record."""

    function: AsyncFunction[Any, Any]
    timeout: int
    capacity: int
    retry: AsyncRetryStrategy[Any]
    ordered: bool
    key: KeySelection | None = None

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return AsyncOperator(context, self)


class AsyncOperator(Operator):
    """Gathers records until a watermark, the end of the epoch or a full block; then asks for all of them."""

    def __init__(self, context: OperatorContext, spec: AsyncSpec) -> None:
        super().__init__(context)
        self._spec = spec
        self._calls: ConcurrentCalls | None = None
        self._rows: list[Any] = []
        self._times: list[int] = []
        self._keys: list[Any] | None = None if spec.key is None else []

    def open(self) -> None:
        """Open the function."""
        rowwise.guarded(self.context, self._spec.function.open, AsyncRuntimeContext(self.context, keyed=False))

    def _running(self) -> ConcurrentCalls:
        """The calls and their event loop, which lives as long as this subtask is in the worker."""
        if self._calls is None:
            spec, context = self._spec, self.context
            self._calls = ConcurrentCalls(
                context.name,
                spec.function,
                capacity=spec.capacity,
                timeout=spec.timeout / 1000,
                retry=spec.retry,
                count=context.metrics.count,
            )
        return self._calls

    def on_batch(self, batch: Batch, side: int) -> None:
        """Take the records; more than a block of them do not wait."""
        self._rows.extend(batch.rows())
        self._times.extend(batch.times())
        if self._keys is not None and self._spec.key is not None:
            self._keys.extend(self._spec.key.keys(batch, self.context.name))
        if len(self._rows) >= self.context.block_records:
            self._ask()

    def _ask(self) -> None:
        """Call the function for all that wait, and emit what came back."""
        if not self._rows:
            return
        rows, times, keys = self._rows, np.array(self._times, dtype=np.int64), self._keys
        self._forget()
        ended, results = self._running().run(rows, keys)
        order = range(len(rows)) if self._spec.ordered else ended
        found = [result for index in order for result in results[index]]
        if not found:
            return
        name, kind = self.context.name, self.context.output_type
        stamps = None
        if not (times == NO_TIMESTAMP).all():
            counts = np.fromiter((len(results[index]) for index in order), dtype=np.int64, count=len(rows))
            stamps = np.repeat(times if self._spec.ordered else times[ended], counts)
        self.out.emit(Batch(kind, rows=rowwise.conform(name, kind, found), timestamps=stamps))

    def _forget(self) -> None:
        self._rows, self._times = [], []
        self._keys = None if self._spec.key is None else []

    def on_watermark(self, watermark: int) -> None:
        """Results of the records before a watermark stay before it."""
        self._ask()
        super().on_watermark(watermark)

    def on_idle(self) -> None:
        """As for a watermark."""
        self._ask()
        super().on_idle()

    def on_active(self) -> None:
        """As for a watermark."""
        self._ask()
        super().on_active()

    def end_epoch(self) -> None:
        """An epoch ends with nothing in flight."""
        self._ask()

    def abandon(self) -> None:
        """The records come again."""
        self._forget()

    def close(self) -> None:
        """Close the function, then the loop it may still have used."""
        rowwise.guarded(self.context, self._spec.function.close)
        self.dispose()

    def dispose(self) -> None:
        """Give up the event loop."""
        calls, self._calls = self._calls, None
        if calls is not None:
            with contextlib.suppress(Exception):  # there is nothing left to report the failure to
                calls.close()

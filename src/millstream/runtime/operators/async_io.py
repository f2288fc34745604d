"""Asynchronous I/O: concurrent requests to an external system, for many records at once.

Promises: results of records before a watermark, or of an epoch, are emitted before the watermark or the end of the
epoch. So no call is pending between two epochs, and nothing is lost or duplicated by a restart. In ordered mode results
have the order of their records, in unordered mode that in which the calls end. Results have the timestamp of their
record.
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
    """An asynchronous function uses keyed state."""

    def __init__(self, operator: str, name: str) -> None:
        super().__init__(
            f"operator '{operator}' uses keyed state '{name}', but it calls its function for several keys at once",
            hint="keep the state in a process function before or after it",
        )


class AsyncRuntimeContext(StreamingRuntimeContext):
    """The runtime context of an asynchronous function: it has no keyed state."""

    def _refuse(self, state_descriptor: Any) -> Any:
        raise NoStateInAsyncFunction(self.get_task_name(), state_descriptor.name)

    get_state = get_list_state = get_map_state = get_reducing_state = get_aggregating_state = _refuse


@dataclass(frozen=True)
class AsyncSpec(OperatorSpec):
    """An asynchronous function; `timeout` is in milliseconds, 0 for none, and covers all attempts of a record."""

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
    """Buffers records until a watermark, the end of the epoch or a full block; then calls the function for all of
    them."""

    def __init__(self, context: OperatorContext, spec: AsyncSpec) -> None:
        super().__init__(context)
        self._spec = spec
        self._calls: ConcurrentCalls | None = None
        self._rows: list[Any] = []
        self._times: list[int] = []
        self._keys: list[Any] | None = None if spec.key is None else []

    def open(self) -> None:
        """Open the function."""
        rowwise.call_user_code(self.context, self._spec.function.open, AsyncRuntimeContext(self.context, keyed=False))

    def _concurrent_calls(self) -> ConcurrentCalls:
        """Return the calls with their event loop, which is kept as long as this subtask is in the worker."""
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
        """Buffer the records; a full block is processed at once."""
        self._rows.extend(batch.rows())
        self._times.extend(batch.times())
        if self._keys is not None and self._spec.key is not None:
            self._keys.extend(self._spec.key.keys(batch, self.context.name))
        if len(self._rows) >= self.context.block_records:
            self._call_all()

    def _call_all(self) -> None:
        """Call the function for all buffered records, and emit the results."""
        if not self._rows:
            return
        rows, times, keys = self._rows, np.array(self._times, dtype=np.int64), self._keys
        self._clear_buffer()
        ended, results = self._concurrent_calls().run(rows, keys)
        order = range(len(rows)) if self._spec.ordered else ended
        values = [result for index in order for result in results[index]]
        if not values:
            return
        name, output_type = self.context.name, self.context.output_type
        timestamps = None
        if not (times == NO_TIMESTAMP).all():
            counts = np.fromiter((len(results[index]) for index in order), dtype=np.int64, count=len(rows))
            timestamps = np.repeat(times if self._spec.ordered else times[ended], counts)
        self.out.emit(Batch(output_type, rows=rowwise.conform(name, output_type, values), timestamps=timestamps))

    def _clear_buffer(self) -> None:
        self._rows, self._times = [], []
        self._keys = None if self._spec.key is None else []

    def on_watermark(self, watermark: int) -> None:
        """Emit the results of earlier records before the watermark."""
        self._call_all()
        super().on_watermark(watermark)

    def on_idle(self) -> None:
        """Emit the results of earlier records first, as for a watermark."""
        self._call_all()
        super().on_idle()

    def on_active(self) -> None:
        """Emit the results of earlier records first, as for a watermark."""
        self._call_all()
        super().on_active()

    def end_epoch(self) -> None:
        """Emit all results, so that no call is pending between two epochs."""
        self._call_all()

    def abandon(self) -> None:
        """Discard the buffered records: a replay reads them again."""
        self._clear_buffer()

    def close(self) -> None:
        """Close the function, then the event loop, which closing it may still use."""
        rowwise.call_user_code(self.context, self._spec.function.close)
        self.dispose()

    def dispose(self) -> None:
        """Close the event loop."""
        calls, self._calls = self._calls, None
        if calls is not None:
            with contextlib.suppress(Exception):  # the subtask has ended, so a failure is not reported any more
                calls.close()

"""execute_and_collect: the program reads results while the job runs.

Promises: the iterator ends with the job and raises its failure; closing it early cancels the job.
Does not know: how results are transferred."""

from __future__ import annotations

import itertools
import queue
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from millstream.client.job_client import JobClient
from millstream.connectors import collect as collecting
from millstream.datastream.collected_values import collected_value_converter
from millstream.functions import KeyedProcessFunction
from millstream.job.job_status import JobStatus
from millstream.types.row import Row

if TYPE_CHECKING:
    from millstream.datastream.data_stream import DataStream


class CloseableIterator:
    """Iterates over the results of a running job. It is a context manager; closing it early cancels the job.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> with env.from_collection([1, 2]).execute_and_collect() as numbers:
        ...     list(numbers)
        [1, 2]

    """

    def __init__(self, client: JobClient, name: str, convert: Callable[[Any], Any] | None = None) -> None:
        self._client = client
        self._results = collecting.get_results(name)
        self._release = weakref.finalize(
            self, collecting.forget, name
        )  # otherwise the job would wait for a reader that no longer exists
        self._closed = False
        self._convert = convert

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self._closed:
            try:
                value = self._results.get(timeout=0.02)
                return value if self._convert is None else self._convert(value)
            except queue.Empty:
                if self._client.wait(0) and self._results.empty():
                    self.close()
        raise StopIteration

    next = __next__

    def hold_all(self) -> None:
        """Buffer any number of results: the program waits for the end of the job before it reads them."""
        self._results.hold_all()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading. A running job is cancelled; the failure of a failed job is raised."""
        if self._closed:
            return
        self._closed = True
        self._release()
        status = self._client.get_job_status().result()
        if not status.is_terminal_state():
            self._client.cancel().result()
        elif status is JobStatus.FAILED:
            self._client.get_job_execution_result().result()


class PairWithKey(KeyedProcessFunction):
    """Emits each record with its key, as a row."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Row]:
        """Emit the key and the record."""
        yield Row(ctx.get_current_key(), value)


def collect(stream: DataStream, job_name: str | None, limit: int | None) -> Any:
    """Run the program and return its results: an iterator, or with a limit a list."""
    env = stream._env
    name = f"{env._collect_prefix}-{len(env._program.transformations)}"
    sink = stream.sink_to(collecting.CollectSink(name)).name("Sink: Collect")
    env._program.change(sink._id, follows_input=True)  # so that the records of a single subtask stay in their order
    convert = collected_value_converter(stream.get_type())
    results = CloseableIterator(env.execute_async(job_name or "Collect"), name, convert)
    if limit is None:
        return results
    with results:
        return list(itertools.islice(results, limit))

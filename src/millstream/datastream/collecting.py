"""execute_and_collect: results read by the program while the job runs.

Promises: an iterator that ends with the job, raises its failure, and cancels it when closed early.
Does not know: how results travel."""

from __future__ import annotations

import itertools
import queue
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from millstream.client.job_client import JobClient
from millstream.connectors import collect as collecting
from millstream.job.job_status import JobStatus

if TYPE_CHECKING:
    from millstream.datastream.data_stream import DataStream


class CloseableIterator:
    """Results as they come; also a context manager."""

    def __init__(self, client: JobClient, name: str) -> None:
        self._client = client
        self._results = collecting.get_results(name)
        self._release = weakref.finalize(self, collecting.forget, name)  # the job waits for no reader that is gone
        self._closed = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self._closed:
            try:
                return self._results.get(timeout=0.02)
            except queue.Empty:
                if self._client.wait(0) and self._results.empty():
                    self.close()
        raise StopIteration

    next = __next__

    def hold_all(self) -> None:
        """Keep all results until they are read, however many: the program waits for the end of the job first."""
        self._results.hold_all()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading; a job that still runs is cancelled, one that failed raises."""
        if self._closed:
            return
        self._closed = True
        self._release()
        status = self._client.get_job_status().result()
        if not status.is_terminal_state():
            self._client.cancel().result()
        elif status is JobStatus.FAILED:
            self._client.get_job_execution_result().result()


def collect(stream: DataStream, job_name: str | None, limit: int | None) -> Any:
    """Run the program with its results read here."""
    env = stream._env
    name = f"{env._collect_prefix}-{len(env._program.transformations)}"
    stream.sink_to(collecting.CollectSink(name)).name("Sink: Collect")
    results = CloseableIterator(env.execute_async(job_name or "Collect"), name)
    if limit is None:
        return results
    with results:
        return list(itertools.islice(results, limit))

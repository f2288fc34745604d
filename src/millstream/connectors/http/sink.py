"""HTTP sink: records as requests to a server, at least once.

Promises: every record of an epoch was accepted by the server before the epoch ends. A refused request fails the job, so
no record is lost; after a failure records may be sent again.
Does not know: formats of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from millstream.connector.http_client import HttpClient, HttpOptions, HttpRequestFailed, StatusCodes
from millstream.connector.sink import Sink, SinkWriter, WriterContext

_SHOWN = 300  # characters of a response that an error shows


@dataclass(frozen=True)
class HttpSink(Sink):
    """Sends records to `url`. `encode` returns the bytes of each record.

    With `batch_size`, a request has a JSON array of up to this many records, which must be JSON documents; with None,
    each record is a request. Responses with a status code in `errors` fail the job."""

    url: str
    method: str
    encode: Callable[[Sequence[Any]], list[bytes]]
    options: HttpOptions
    errors: StatusCodes
    batch_size: int | None = 500
    threads: int = 1

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer."""
        return HttpWriter(self)


class HttpWriter(SinkWriter):
    """Sends full batches as records arrive, and the remaining records at the end of the epoch."""

    def __init__(self, sink: HttpSink) -> None:
        self._sink = sink
        self._client = HttpClient(sink.options)
        self._buffer: list[bytes] = []
        self._threads: ThreadPoolExecutor | None = None

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Buffer records and send full batches."""
        self._buffer += self._sink.encode(values)
        self._flush(self._sink.batch_size or 1)

    def _flush(self, least: int) -> None:
        """Send batches while at least this many records are buffered."""
        size = self._sink.batch_size
        bodies: list[bytes] = []
        start = 0
        while len(self._buffer) - start >= max(least, 1):
            batch = self._buffer[start : start + (size or 1)]
            bodies.append(batch[0] if size is None else b"[" + b",".join(batch) + b"]")
            start += len(batch)
        if self._sink.threads == 1 or len(bodies) < 2:
            for body in bodies:
                self._send(body)
        else:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._sink.threads, thread_name_prefix="http-sink")
            list(self._threads.map(self._send, bodies))
        del self._buffer[:start]

    def _send(self, body: bytes) -> None:
        sink = self._sink
        response = self._client.request(sink.method, sink.url, body)
        if response.status in sink.errors:
            answer = response.body[:_SHOWN].decode(errors="replace")
            raise HttpRequestFailed(sink.method, sink.url, f"HTTP status {response.status}: {answer}", response.status)

    def prepare_commit(self) -> list[Any]:
        """Send the remaining records; there is nothing to commit."""
        self._flush(1)
        return []

    def abort(self) -> None:
        """Drop buffered records; those that were sent cannot be undone."""
        self._buffer = []

    def close(self) -> None:
        """Close the connections."""
        if self._threads is not None:
            self._threads.shutdown()
        self._client.close()

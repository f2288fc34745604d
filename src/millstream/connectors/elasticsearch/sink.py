"""Elasticsearch sink: records as actions on documents, at least once.

Promises: all actions of an epoch are carried out, in order, before the epoch ends. After a failure they may be sent
again, which changes nothing for documents that have an id.
Does not know: which actions records become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.sink import Sink, SinkWriter, WriterContext
from millstream.connectors.elasticsearch.bulk import BulkAction, BulkClient, BulkServer

ToActions = Callable[[Sequence[Any], int], list[BulkAction]]  # of records, and the processing time


@dataclass(frozen=True)
class ElasticsearchSink(Sink):
    """Writes documents to Elasticsearch or OpenSearch. Created by a builder.

    A request has up to `max_actions` actions and `max_bytes` bytes; None is no limit.

    Example:
        >>> from millstream.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder, ElasticsearchEmitter
        >>> builder = Elasticsearch7SinkBuilder().set_hosts("localhost:9200")
        >>> builder.set_emitter(ElasticsearchEmitter.static_index("users", "id")).build().server.hosts
        ('http://localhost:9200',)

    """

    server: BulkServer
    to_actions: ToActions
    max_actions: int | None = 1000
    max_bytes: int | None = None

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer."""
        return ElasticsearchWriter(self, context.now)

    def check(self) -> None:
        """Check that the server answers."""
        client = BulkClient(self.server)
        try:
            client.ping()
        finally:
            client.close()


class ElasticsearchWriter(SinkWriter):
    """Sends full requests as records arrive, and the rest at the end of the epoch."""

    def __init__(self, sink: ElasticsearchSink, now: int) -> None:
        self._sink, self._now = sink, now
        self._client = BulkClient(sink.server)
        self._buffer: list[BulkAction] = []
        self._bytes = 0

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Buffer actions and send full requests."""
        sink = self._sink
        for action in sink.to_actions(values, self._now):
            size = len(action.lines)
            if self._buffer and sink.max_bytes is not None and self._bytes + size > sink.max_bytes:
                self._flush()
            self._buffer.append(action)
            self._bytes += size
            if len(self._buffer) == sink.max_actions:
                self._flush()

    def _flush(self) -> None:
        if self._buffer:
            self._client.send(self._buffer)
            self._buffer, self._bytes = [], 0

    def prepare_commit(self) -> list[Any]:
        """Send the rest; there is nothing to commit."""
        self._flush()
        return []

    def abort(self) -> None:
        """Drop buffered actions; those that were sent stay."""
        self._buffer, self._bytes = [], 0

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

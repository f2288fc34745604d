"""Redis sink: records as commands, at least once.

Promises: all commands of an epoch are sent, in order, before the epoch ends. After a failure they may be sent again,
which has no effect for commands such as SET and HSET.
Does not know: how records are converted to commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.sink import Sink, SinkWriter, WriterContext
from millstream.connectors.redis.client import Command, RedisClient, RedisServer

_BATCH = 1000  # commands in one pipeline


@dataclass(frozen=True)
class RedisSink(Sink):
    """Sends the commands of records."""

    server: RedisServer
    to_commands: Callable[[Any], Sequence[Command]]

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer."""
        return RedisWriter(self)


class RedisWriter(SinkWriter):
    """Sends commands in pipelines."""

    def __init__(self, sink: RedisSink) -> None:
        self._sink = sink
        self._client = RedisClient(sink.server)
        self._buffer: list[Command] = []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Buffer commands and send full batches."""
        for value in values:
            self._buffer.extend(self._sink.to_commands(value))
            if len(self._buffer) >= _BATCH:
                self._flush()

    def _flush(self) -> None:
        if self._buffer:
            self._client.send(self._buffer, "write to")
            self._buffer = []

    def prepare_commit(self) -> list[Any]:
        """Send the remaining commands; there is nothing to commit."""
        self._flush()
        return []

    def abort(self) -> None:
        """Drop buffered commands; those that were sent cannot be undone."""
        self._buffer = []

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

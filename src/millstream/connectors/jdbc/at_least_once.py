"""At-least-once output: rows are written as they arrive.

Promises: every record of an epoch is in the database before the epoch ends; after a failure records may be written
twice, which has no effect if the statement is idempotent, as an upsert is.
Does not know: checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from millstream.connector.sink import SinkWriter
from millstream.connectors.jdbc.driver import DatabaseFailure, Session
from millstream.connectors.jdbc.options import JdbcExecutionOptions
from millstream.connectors.jdbc.targets import Target

_FIRST_PAUSE = 0.1


class AtLeastOnceWriter(SinkWriter):
    """Writes batches, each in a transaction of its own."""

    def __init__(self, conninfo: str, target: Target, options: JdbcExecutionOptions) -> None:
        self._session = Session(conninfo)
        self._target = target
        self._options = options
        self._waiting: list[Any] = []
        self._written_at = time.monotonic()

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Buffer records and write full batches."""
        self._waiting.extend(values)
        size = self._options.batch_size
        while size and len(self._waiting) >= size:
            self._flush(size)
        interval = self._options.batch_interval_ms
        if self._waiting and interval and (time.monotonic() - self._written_at) * 1000 >= interval:
            self._flush(len(self._waiting))

    def prepare_commit(self) -> list[Any]:
        """Write the remaining records; there is nothing to commit."""
        if self._waiting:
            self._flush(len(self._waiting))
        return []

    def _flush(self, count: int) -> None:
        batch = self._waiting[:count]
        retry(lambda: self._session.run("cannot write to the database", lambda c: self._send(c, batch)), self._tries)
        del self._waiting[:count]
        self._written_at = time.monotonic()

    @property
    def _tries(self) -> int:
        return self._options.max_retries + 1

    def _send(self, connection: Any, batch: list[Any]) -> None:
        with connection.transaction():
            self._target.send(connection, batch)

    def abort(self) -> None:
        """Drop buffered records; records that were written stay."""
        self._waiting = []
        self._session.drop()

    def close(self) -> None:
        """Return the connection to the pool of this process."""
        self._session.close()


def retry(work: Callable[[], Any], tries: int) -> Any:
    """Call `work`; after a failure of the database, call it again with exponential backoff."""
    for number in range(1, tries + 1):
        try:
            return work()
        except DatabaseFailure:
            if number == tries:
                raise
        time.sleep(_FIRST_PAUSE * 2 ** (number - 1))
    raise AssertionError(tries)

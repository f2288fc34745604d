"""The enumerator of a CDC source: plans ranges of the log, and writes the chunks of a snapshot into it.

Promises: a planned range has the same records each time, until a checkpoint contains a later position. Nothing is lost
or duplicated between the snapshot and the changes.
Does not know: rows.

A chunk of a table is a message in the log, written by a transaction that reads it with one database snapshot. A
transaction that is not visible in this snapshot must have its commit in the same range or a later one, else its change
would be lost. Its commit may be in the log before the start of the range and still be invisible for a moment; such a
transaction still holds its locks. So before a chunk is written, all transactions that held write locks on the table
after the start of the range was determined must have ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from millstream.connector.source import Budget, SplitRange
from millstream.connectors.jdbc.cdc.pgoutput import format_lsn
from millstream.connectors.jdbc.cdc.planning import MAX_CHUNK_ROWS, SnapshotEnumerator
from millstream.connectors.jdbc.cdc.progress import Chunk, Key, Progress
from millstream.connectors.jdbc.cdc.slot import Slot, SlotAdvanced
from millstream.connectors.jdbc.cdc.tables import Table
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.statements import quote_name
from millstream.errors import ExternalError, MillstreamError

_log = logging.getLogger("millstream.cdc")

_HEARTBEAT = 16 << 20  # bytes of log after which a range without changes is planned, so that a checkpoint advances
_MAX_WAIT = 600.0  # seconds that a transaction may delay the snapshot of its table
_WAIT_PER_PLAN = 0.25  # seconds that one call of `plan` waits for transactions
_HOLDERS = """
SELECT DISTINCT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND relation = %s::regclass AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
"""


class SnapshotBlockedByWriters(ExternalError):
    """A transaction that writes to the table has been open for too long."""

    hint = "end it: SELECT * FROM pg_stat_activity WHERE xact_start < now() - interval '10 min'; or pg_prepared_xacts"

    def __init__(self, table: str, holders: Sequence[str]) -> None:
        super().__init__(
            f"the snapshot of {table} waits for transactions that began before it and are open for more than "
            f"{_MAX_WAIT:g} s: {', '.join(holders)}"
        )


class ChangeEnumerator(SnapshotEnumerator[Table]):
    """Plans ranges of one slot; keeps the position in it."""

    def __init__(
        self,
        session: Session,
        slot: Slot,
        name: str,
        prefix: str,
        tables: Sequence[Table],
        *,
        progress: Progress,
        stop: int | None,
        snapshot_only: bool,
        chunk_rows: int,
        describe: Callable[[], Sequence[Table]] | None = None,
    ) -> None:
        super().__init__(name, tables, progress=progress, stop=stop, snapshot_only=snapshot_only, describe=describe)
        self._session, self._slot, self._prefix = session, slot, prefix
        self._chunk_rows = chunk_rows
        confirmed = slot.confirmed()
        if confirmed > progress.lsn:
            raise SlotAdvanced(name, progress.lsn, confirmed)
        self._acknowledged = confirmed
        self._planned = 0  # known changes between the acknowledged position and the current one
        self._peeked_to = -1
        self._pending_writers: set[str] | None = None
        self._waiting_since = 0.0

    # ------------------------------------------------------------------------------------------------- planning

    def _plan_changes(self, budget: Budget) -> list[SplitRange]:
        position = self._progress.lsn
        flushed = self._slot.flushed()
        end = flushed if self._stop is None else min(flushed, self._stop)
        if end <= position or end == self._peeked_to:
            return []
        peeked = self._slot.peek(position, end, self._planned, max(min(budget.records, 1 << 30), 1))
        self._planned = peeked.before
        self._peeked_to = end
        self._lag = peeked.fresh
        if not peeked.fresh:
            if end == self._stop:
                self._progress = self._progress.at(end)  # no changes are left, so no epoch is needed
            elif end - self._acknowledged > _HEARTBEAT:
                return [self._range(end, 0)]
            return []
        self._planned += peeked.fresh
        self._peeked_to = -1
        return [self._range(peeked.end, peeked.fresh)]

    # ------------------------------------------------------------------------------------------------- snapshot

    def _plan_chunk(self, table: Table, budget: Budget) -> list[SplitRange]:
        flushed = self._slot.flushed()
        if not self._progress.read and flushed - self._progress.lsn > _HEARTBEAT:
            # nothing was read yet, so changes that an old slot has kept are not needed
            return [self._range(flushed, 0)]
        if not self._writers_have_ended(table):
            return []
        chunk, rows = self._session.run("cannot read the table", lambda c: self._write_chunk(c, table, budget))
        # the range may have changes of keys that were read before, so an empty chunk must be read, too
        return [self._range(self._slot.flushed(), max(rows, 1), chunk)]

    def _writers_have_ended(self, table: Table) -> bool:
        """Return whether all transactions that wrote to the table at this position have ended."""
        deadline = time.monotonic() + _WAIT_PER_PLAN
        if self._pending_writers is None:
            self._waiting_since = time.monotonic()
            self._pending_writers = self._writers(table)
        while self._pending_writers:
            self._pending_writers &= self._writers(table)
            if time.monotonic() - self._waiting_since > _MAX_WAIT:
                raise SnapshotBlockedByWriters(table.id, sorted(self._pending_writers))
            if self._pending_writers and time.monotonic() > deadline:
                return False
            if self._pending_writers:
                time.sleep(0.01)
        self._pending_writers = None
        return True

    def _writers(self, table: Table) -> set[str]:
        return {holder for (holder,) in self._session.query("cannot read locks", _HOLDERS, (table.quoted_name,))}

    def _write_chunk(self, connection: Any, table: Table, budget: Budget) -> tuple[Chunk, int]:
        """Write the next rows of a table into the log, as they are visible in one snapshot."""
        lower = self._progress.read.get(table.id)
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute("SET LOCAL synchronous_commit = 'local'")  # flushed when the commit returns
            limit = self._chunk_limit(connection, table, budget)
            chunk_query, parameters = self._chunk_query(table, lower, limit)
            upper: Key | None = None
            rows = 0
            if table.key:
                texts = ", ".join(f"{quote_name(column.name)}::text" for column in table.key)
                # ordered by the columns, not by their text forms
                order = ", ".join(f"chunk.{quote_name(column.name)} DESC" for column in table.key)
                last_row = connection.execute(
                    f"SELECT count(*) OVER (), {texts} FROM ({chunk_query}) AS chunk ORDER BY {order} LIMIT 1",
                    parameters,
                ).fetchone()
                rows = last_row[0] if last_row is not None else 0
                upper = tuple(last_row[1:]) if last_row is not None and rows >= limit else None
            columns = ", ".join(f"{quote_name(name)}::text" for name, _ in table.columns)
            xid, count = connection.execute(
                "SELECT pg_current_xact_id()::text, count(*) FROM (SELECT pg_logical_emit_message(true, %s, "
                "json_build_object('snapshot', pg_current_snapshot()::text, 'rows', "
                f"coalesce(json_agg(json_build_array({columns})), '[]'))::text) FROM ({chunk_query}) AS chunk) AS sent",
                (self._prefix, *parameters),
            ).fetchone()
        assert count == 1
        return Chunk(table.id, int(xid), lower, upper), rows

    def _chunk_limit(self, connection: Any, table: Table, budget: Budget) -> int:
        """Return how many rows a chunk may have, by the budget of the epoch."""
        size, rows = connection.execute(
            "SELECT pg_table_size(oid), reltuples FROM pg_class WHERE oid = %s::regclass", (table.quoted_name,)
        ).fetchone()
        width = max(size // max(int(rows), 1), 1) if rows > 0 else 1
        return int(max(min(max(self._chunk_rows, budget.records), MAX_CHUNK_ROWS, budget.bytes // width), 1))

    def _chunk_query(self, table: Table, lower: Key | None, limit: int) -> tuple[str, list[Any]]:
        """Return the query of the next rows by key; all rows of a table without a key."""
        columns = ", ".join(quote_name(name) for name, _ in table.columns)
        if not table.key:
            return f"SELECT {columns} FROM {table.quoted_name}", []
        query, parameters = f"SELECT {columns} FROM {table.quoted_name}", list[Any]()
        if lower is not None:
            query += f" WHERE ({table.key_list()}) > {table.bound(['%s'] * len(table.key))}"
            parameters = list(lower)
        return f"{query} ORDER BY {table.key_list()} LIMIT {limit}", parameters

    # ------------------------------------------------------------------------------------------------- position

    def _on_moved(self) -> None:
        self._pending_writers = None
        self._peeked_to = -1

    def acknowledge(self) -> None:
        """Advance the slot to the position, so that the server can delete older log; failures are ignored."""
        try:
            self._slot.advance(self._progress.lsn)
        except MillstreamError as problem:
            _log.warning("the slot %s stays behind %s: %s", self._name, format_lsn(self._progress.lsn), problem)
            return
        self._acknowledged = self._progress.lsn
        self._planned = 0

    def close(self) -> None:
        """Return the connection to the pool of this process."""
        self._session.close()

"""The enumerator of the MySQL CDC source: plans ranges of the binary log, and the chunks of a snapshot.

Promises: a planned range has the same records each time. Nothing is lost or duplicated between the snapshot and the
changes, without a lock.
Does not know: values.

A chunk cannot be written into MySQL's binary log, so the rows of a chunk are part of the plan, which is durable before
it is read. A chunk has the state of its rows at the end of its range:

- MariaDB returns the position of the log at which a consistent snapshot was taken. The range ends there.
- MySQL does not. The range ends at a position that is determined after the rows were read, and the reader applies the
  changes of the range to the rows of the chunk. Applying a change that the row already includes has no effect, because
  a change contains the whole row. A table without a primary key is locked against writes while a chunk of it is read,
  because its rows cannot be identified."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from millstream.connector.source import Budget, SplitRange
from millstream.connectors.jdbc.cdc.planning import MAX_CHUNK_ROWS, SnapshotEnumerator
from millstream.connectors.jdbc.cdc.progress import Chunk, Key, Progress
from millstream.connectors.jdbc.mysql.binlog import position_of
from millstream.connectors.jdbc.mysql.driver import MysqlSession, fetch, pymysql
from millstream.connectors.jdbc.mysql.log import BinaryLog
from millstream.connectors.jdbc.mysql.tables import MysqlTable, after, bound_parameters
from millstream.connectors.jdbc.mysql.types import to_text

_MAX_CHUNK_BYTES = 8 << 20  # bytes of the texts of a chunk, which are part of the plan

Rows = list[list[str | None]]


def pack_rows(rows: Rows) -> str:
    """Encode rows as compressed text for a plan."""
    return base64.b85encode(zlib.compress(json.dumps(rows, ensure_ascii=False).encode(), 1)).decode()


def unpack_rows(text: str) -> Rows:
    """Return the inverse of `pack_rows`."""
    rows: Rows = json.loads(zlib.decompress(base64.b85decode(text)))
    return rows


class MysqlEnumerator(SnapshotEnumerator[MysqlTable]):
    """Plans ranges of one server's log. `exact`: the server returns the position at which a snapshot was taken."""

    def __init__(
        self,
        session: MysqlSession,
        log: BinaryLog,
        name: str,
        tables: Sequence[MysqlTable],
        *,
        progress: Progress,
        stop: int | None,
        snapshot_only: bool,
        chunk_rows: int,
        heartbeat_ms: int,
        exact: bool,
        describe: Callable[[], Sequence[MysqlTable]] | None = None,
    ) -> None:
        super().__init__(name, tables, progress=progress, stop=stop, snapshot_only=snapshot_only, describe=describe)
        self._session, self._log = session, log
        self._chunk_rows, self._heartbeat, self._exact = chunk_rows, heartbeat_ms, exact
        self._ids = frozenset(table.id for table in tables)
        self._scanned = 0  # there are no changes of captured tables before this position
        self._moved_at: int | None = None

    def _on_moved(self) -> None:
        self._scanned = 0

    # -------------------------------------------------------------------------------------------------- changes

    def _plan_changes(self, budget: Budget) -> list[SplitRange]:
        current = self._log.current()
        end = current if self._stop is None else min(current, self._stop)
        position = max(self._progress.lsn, self._scanned)
        if self._moved_at is None:
            self._moved_at = budget.now
        if position < end:
            scanned = self._log.scan(position, end, self._ids, max(budget.records, 1), max(budget.bytes, 1))
            self._lag = scanned.rows
            if scanned.rows:
                self._moved_at, self._scanned = budget.now, 0
                return [self._range(scanned.end, scanned.rows)]
            self._scanned = position = scanned.end
        if position == self._stop:
            self._progress = self._progress.at(position)  # no changes are left, so no epoch is needed
        elif self._heartbeat and position > self._progress.lsn and budget.now - self._moved_at >= self._heartbeat:
            self._moved_at = budget.now
            return [self._range(position, 0)]
        return []

    # ------------------------------------------------------------------------------------------------- snapshot

    def _plan_chunk(self, table: MysqlTable, budget: Budget) -> list[SplitRange]:
        if changes := self._catch_up(budget):
            return changes
        chunk, rows, end = self._session.run(
            "cannot read the table", lambda connection: self._read_chunk(connection, table, budget)
        )
        if end < self._progress.lsn:
            return []  # a transaction is in the log, but not visible yet; the next plan reads the rows again
        content = {"rows": pack_rows(rows), "exact": self._exact or not table.unique}
        # a chunk without rows must be read, too: the range may have changes of keys that were read before
        return [self._range(end, max(len(rows), 1), chunk, content)]

    def _catch_up(self, budget: Budget) -> list[SplitRange]:
        """Plan changes without a chunk if there are many: a range with a chunk must not be long."""
        current, position = self._log.current(), self._progress.lsn
        if not self._progress.read or current - position <= budget.bytes:
            return []
        scanned = self._log.scan(position, current, self._ids, max(budget.records, 1), max(budget.bytes, 1))
        return [self._range(scanned.end, scanned.rows)] if scanned.end > position else []

    def _read_chunk(self, connection: Any, table: MysqlTable, budget: Budget) -> tuple[Chunk, Rows, int]:
        """Read the next rows of a table by key, and the position of the log at which the table has these rows."""
        locked = not self._exact and not table.unique
        if locked:
            fetch(connection, f"LOCK TABLES {table.quoted_name} READ")
        else:
            fetch(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            fetch(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        try:
            position = self._snapshot_position(connection) if self._exact else None
            chunk, rows = self._rows(connection, table, budget)
            if locked:
                position = self._log.current()
        finally:
            fetch(connection, "UNLOCK TABLES" if locked else "COMMIT")
        return chunk, rows, self._log.current() if position is None else position

    @staticmethod
    def _snapshot_position(connection: Any) -> int:
        status = dict(fetch(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'"))
        values = {name.lower(): value for name, value in status.items()}
        return position_of(values["binlog_snapshot_file"], int(values["binlog_snapshot_position"]))

    def _rows(self, connection: Any, table: MysqlTable, budget: Budget) -> tuple[Chunk, Rows]:
        lower = self._progress.read.get(table.id)
        limit = max(min(max(self._chunk_rows, budget.records), MAX_CHUNK_ROWS), 1)
        rows, size = Rows(), 0
        complete = True
        for row in self._select(connection, table, lower, limit):
            rows.append(row)
            size += sum(len(text) for text in row if text is not None)
            if size >= min(_MAX_CHUNK_BYTES, budget.bytes):
                complete = False
                break
        complete = complete and len(rows) < limit
        if not complete and not table.unique:
            rows, complete = self._whole_groups(connection, table, rows)
        upper = None if complete else _key_of(table, rows[-1])
        return Chunk(table.id, 0, lower, upper), rows

    def _whole_groups(self, connection: Any, table: MysqlTable, rows: Rows) -> tuple[Rows, bool]:
        """Return the rows, with all other rows that have the key of the last one."""
        last = _key_of(table, rows[-1])
        before = [row for row in rows if _key_of(table, row) != last]
        column = table.key_columns[0]
        query = f"SELECT {_select_list(table)} FROM {table.quoted_name} WHERE {column.expression} = %s"
        same = fetch(connection, query, [column.parameter(last[0])])
        return [*before, *([to_text(value) for value in row] for row in same)], False

    @staticmethod
    def _select(connection: Any, table: MysqlTable, lower: Key | None, limit: int) -> Iterator[list[str | None]]:
        """Yield the next rows by key, without keeping them in memory."""
        expressions = [column.expression for column in table.key_columns]
        query, parameters = f"SELECT {_select_list(table)} FROM {table.quoted_name}", list[Any]()
        if lower is not None:
            query += f" WHERE {after(expressions, ['%s'] * len(expressions))}"
            values = [column.parameter(text) for column, text in zip(table.key_columns, lower, strict=True)]
            parameters = bound_parameters(values)
        query += f" ORDER BY {', '.join(expressions)} LIMIT {limit}"
        with connection.cursor(pymysql().cursors.SSCursor) as cursor:
            cursor.execute(query, parameters)
            for row in cursor:
                yield [to_text(value) for value in row]

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


def _select_list(table: MysqlTable) -> str:
    return ", ".join(column.selected for _, column in table.columns)


def _key_of(table: MysqlTable, row: Sequence[str | None]) -> Key:
    return tuple(row[column.index] for column in table.key_columns)

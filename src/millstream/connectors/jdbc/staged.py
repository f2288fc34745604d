"""Exactly-once output by staging: rows are stored in a staging table next to the target until their checkpoint.

Promises: the output of a checkpoint becomes visible in one transaction, over all its epochs and subtasks; no row of the
target is locked while output is staged. A commit that is repeated changes nothing.
Does not know: prepared transactions, which the server need not support.

    task     1. COPY into the staged table, in one transaction        crash before its end: no rows are staged
    driver   2. merge, commit records, delete the staged rows: one transaction"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.connector.sink import Committer, SinkWriter, WriterContext
from millstream.connector.staged import newest_epochs
from millstream.connectors.jdbc import commit_records
from millstream.connectors.jdbc.at_least_once import retry
from millstream.connectors.jdbc.commit_records import Gid, OutputLost
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.options import JdbcExactlyOnceOptions
from millstream.connectors.jdbc.statements import merge_statements, quote_name, table_name
from millstream.connectors.jdbc.targets import TableTarget

_COLUMNS = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
_ANY = "SELECT 1 FROM {} LIMIT 1"


def staged_table(target: TableTarget) -> str:
    """Return the name of the staging table of a target."""
    schema, name = table_name(target.table)
    staged = quote_name(f"millstream_staged_{name}"[:63])
    return f"{quote_name(schema)}.{staged}" if schema else staged


def ensure_tables(connection: Any, target: TableTarget) -> None:
    """Create the tables that staging needs."""
    commit_records.ensure_table(connection)
    table = staged_table(target)
    create = (f"CREATE TABLE {table} AS {target.staged_columns()}", f"CREATE INDEX ON {table} (ms_gid)")
    commit_records.create_under_lock(connection, table, *create)
    known = connection.execute(_COLUMNS, (table,)).fetchall()
    if {(name,) for name in target.columns} - set(known) and not connection.execute(_ANY.format(table)).fetchall():
        # columns were added to the target since the staging table was created
        connection.execute(f"DROP TABLE {table}")
        commit_records.create_under_lock(connection, table, *create)


class StagedWriter(SinkWriter):
    """Copies the records of one epoch into the staged table."""

    def __init__(self, conninfo: str, target: TableTarget, context: WriterContext) -> None:
        self._session = Session(conninfo)
        self._target = target
        self._gid = Gid.of(context)
        self._rows = 0

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Send the records in the open transaction."""
        if not len(values):
            return
        self._session.run("cannot stage rows", lambda connection: self._copy(connection, list(values)))
        self._rows += len(values)

    def _copy(self, connection: Any, records: list[Any]) -> None:
        table, gid = staged_table(self._target), self._gid
        if not self._rows:
            ensure_tables(connection, self._target)
            connection.execute("BEGIN")
            # rows with this name were staged by a driver that died
            connection.execute(f"DELETE FROM {table} WHERE ms_gid = %s", (str(gid),))
        with connection.cursor() as cursor:
            self._target.copy_staged(cursor, table, records, (gid.epoch, gid.subtask), (str(gid),), self._rows)

    def prepare_commit(self) -> list[Any]:
        """Commit the staged rows to the staging table."""
        if not self._rows:
            return []
        self._session.run("cannot stage rows", lambda connection: connection.execute("COMMIT"))
        rows, self._rows = self._rows, 0
        return [{"gid": str(self._gid), "rows": rows}]

    def abort(self) -> None:
        """Roll back the open transaction."""
        self._session.drop()

    def close(self) -> None:
        """Return the connection to the pool of this process."""
        if self._rows:
            self._session.drop()
        self._session.close()


class StagedCommitter(Committer):
    """Merges staged rows into the target."""

    def __init__(self, conninfo: str, target: TableTarget, options: JdbcExactlyOnceOptions) -> None:
        self._session = Session(conninfo)
        self._target = target
        self._options = options
        self._committed: list[Gid] = []  # by the last commit

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Merge the staged rows into the target, in one transaction."""
        row_counts = {Gid.parse(committable["gid"]): int(committable["rows"]) for committable in committables}
        action = f"cannot commit the output of checkpoint {checkpoint}"
        retry(
            lambda: self._session.run(action, lambda connection: self._commit(connection, row_counts)),
            self._options.max_commit_attempts,
        )
        self._committed = list(row_counts) or self._committed

    def _commit(self, connection: Any, row_counts: dict[Gid, int]) -> None:
        ensure_tables(connection, self._target)
        commit_records.check_still_committed(connection, self._committed)
        table = staged_table(self._target)
        with connection.transaction():
            # if two drivers run, only one of them commits at a time
            connection.execute(f"SET LOCAL lock_timeout = '{self._options.timeout_sec}s'")
            connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (commit_records.LOCK, table))
            uncommitted = self._not_yet_committed(connection, table, row_counts)
            names = [str(gid) for gid in uncommitted]
            if names:
                for sql in merge_statements(
                    self._target.quoted_name, table, self._target.columns, self._target.keys, "ms_gid = ANY(%s)"
                ):
                    connection.execute(sql, (names,))
                for gid in uncommitted:
                    commit_records.add(connection, gid)
            for owner, epoch in newest_epochs(row_counts).items():
                delete_statement = f"DELETE FROM {table} WHERE starts_with(ms_gid, %s) AND ms_epoch <= %s"
                connection.execute(delete_statement, (f"{owner}:", epoch))
        for owner, epoch in newest_epochs(row_counts).items():
            commit_records.prune(connection, owner, epoch)

    def _not_yet_committed(self, connection: Any, table: str, row_counts: dict[Gid, int]) -> list[Gid]:
        count_statement = f"SELECT ms_gid, count(*) FROM {table} WHERE ms_gid = ANY(%s) GROUP BY ms_gid"
        staged_counts = dict(connection.execute(count_statement, ([str(gid) for gid in row_counts],)).fetchall())
        committed = commit_records.find_committed(
            connection, [gid for gid in row_counts if str(gid) not in staged_counts]
        )
        uncommitted: list[Gid] = []
        for gid, rows in row_counts.items():
            staged_rows = staged_counts.get(str(gid), 0)
            if staged_rows == rows:
                uncommitted.append(gid)
            elif gid not in committed:
                raise OutputLost(str(gid), f"{staged_rows} of its {rows} rows are staged")
        commit_records.check_attempts(connection, list(row_counts), committed)
        return uncommitted

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove rows that will never be committed."""
        names = [str(Gid.parse(committable["gid"])) for committable in committables]
        sql = f"DELETE FROM {staged_table(self._target)} WHERE ms_gid = ANY(%s)"
        self._session.query("cannot remove staged rows", sql, (names,))

    def interrupt(self) -> None:
        """Break the connection."""
        self._session.interrupt()

    def close(self) -> None:
        """Return the connection to the pool of this process."""
        self._session.close()

"""Output to MySQL or SQLite: at least once, or exactly once by staging.

Promises: at least once, rows are written as they arrive; an upsert that is repeated has no effect. Exactly once, rows
are stored in a staging table until their checkpoint, and the commit merges them and records itself in one transaction,
so that a commit that is repeated changes nothing.
Does not know: SQL of a database. Prepared transactions (XA) are not used: they lock the rows of a key until the
checkpoint, and the next epoch of the same job would wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.connector.sink import Committer, SinkWriter, WriterContext
from millstream.connector.staged import newest_epochs
from millstream.connectors.jdbc.at_least_once import retry
from millstream.connectors.jdbc.commit_records import TABLE, Gid, OutputLost
from millstream.connectors.jdbc.dialects.dialect import Dialect
from millstream.connectors.jdbc.options import JdbcExactlyOnceOptions, JdbcExecutionOptions
from millstream.connectors.jdbc.targets import StatementTarget, TableTarget, Target
from millstream.connectors.jdbc.values import check_insert_only, deletions, parameters

_STAGED = ("ms_owner", "ms_gid", "ms_epoch", "ms_subtask", "ms_seq", "ms_deleted")


def send(dialect: Dialect, connection: Any, target: Target, records: Sequence[Any]) -> None:
    """Send records, in order, on a connection inside a transaction."""
    if isinstance(target, StatementTarget):
        sql = dialect.statement(target.sql)
        dialect.execute(connection, sql, _values(dialect, records, _width(target)))
        return
    assert isinstance(target, TableTarget)
    rows = _values(dialect, records, len(target.columns))
    if not target.keys:
        check_insert_only(records)
        dialect.execute(connection, dialect.insert(target.table, target.columns), rows)
        return
    key_indexes = [target.columns.index(key) for key in target.keys]
    last = {tuple(row[index] for index in key_indexes): number for number, row in enumerate(rows)}
    is_deletion = deletions(records)
    kept = [rows[number] for number in last.values() if not is_deletion[number]]
    deleted = [key for key, number in last.items() if is_deletion[number]]
    if deleted:
        dialect.execute(connection, dialect.delete(target.table, target.keys), deleted)
    if kept:
        dialect.execute(connection, dialect.upsert(target.table, target.columns, target.keys), kept)


def _width(target: StatementTarget) -> int:
    return target.width if target.width is not None else target.sql.count("?")


def _values(dialect: Dialect, records: Sequence[Any], width: int) -> list[list[Any]]:
    return [[dialect.parameter(value) for value in row] for row in parameters(records, width)]


class DialectWriter(SinkWriter):
    """Writes batches, each in a transaction of its own."""

    def __init__(self, dialect: Dialect, target: Target, options: JdbcExecutionOptions) -> None:
        self._dialect, self._target, self._options = dialect, target, options
        self._session = dialect.session()
        self._waiting: list[Any] = []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Buffer records and write full batches."""
        self._waiting.extend(values)
        size = self._options.batch_size
        while size and len(self._waiting) >= size:
            self._flush(size)

    def prepare_commit(self) -> list[Any]:
        """Write the remaining records; there is nothing to commit."""
        if self._waiting:
            self._flush(len(self._waiting))
        return []

    def _flush(self, count: int) -> None:
        batch = self._waiting[:count]
        retry(
            lambda: self._session.run("cannot write to the database", lambda c: self._send(c, batch)),
            self._options.max_retries + 1,
        )
        del self._waiting[:count]

    def _send(self, connection: Any, batch: list[Any]) -> None:
        with self._dialect.transaction(connection):
            send(self._dialect, connection, self._target, batch)

    def abort(self) -> None:
        """Drop buffered records; records that were written stay."""
        self._waiting = []
        self._session.drop()

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


def staged_table(target: TableTarget) -> str:
    """Return the name of the staging table of a target."""
    schema, _, name = target.table.rpartition(".")
    staged = f"millstream_staged_{name}"[:63]
    return f"{schema}.{staged}" if schema else staged


def ensure_tables(dialect: Dialect, connection: Any, target: TableTarget) -> None:
    """Create the tables that staging needs; not inside a transaction."""
    text = dialect.text_type
    dialect.execute(
        connection,
        f"CREATE TABLE IF NOT EXISTS {TABLE} (owner {text} NOT NULL, gid {text} NOT NULL, epoch BIGINT NOT NULL, "
        "PRIMARY KEY (gid))",
    )
    texts = ", ".join(f"CAST('{'x' * 255}' AS CHAR(255)) AS {name}" for name in _STAGED[:2])
    numbers = ", ".join(f"{1 << 60} AS {name}" for name in _STAGED[2:])
    staged = dialect.quote_table(staged_table(target))
    create = (
        f"CREATE TABLE IF NOT EXISTS {staged} AS SELECT {texts}, {numbers}, "
        f"{dialect.names(target.columns)} FROM {dialect.quote_table(target.table)} WHERE 1 = 0"
    )
    dialect.execute(connection, create)
    known = {column.name for column in dialect.columns(connection, staged_table(target))}
    if set(target.columns) <= known or any(dialect.rows(connection, f"SELECT 1 FROM {staged} LIMIT 1")):
        return
    # columns were added to the target since the staging table was created
    dialect.execute(connection, f"DROP TABLE {staged}")
    dialect.execute(connection, create)


class StagedDialectWriter(SinkWriter):
    """Stores the records of one epoch in the staging table."""

    def __init__(self, dialect: Dialect, target: TableTarget, context: WriterContext) -> None:
        self._dialect, self._target = dialect, target
        self._session = dialect.session()
        self._gid = Gid.of(context)
        self._waiting: list[Any] = []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Buffer the records, because an open transaction would lock the SQLite file."""
        if not self._target.keys:
            check_insert_only(values)
        self._waiting.extend(values)

    def prepare_commit(self) -> list[Any]:
        """Store the records in one transaction."""
        if not self._waiting:
            return []
        self._session.run("cannot stage rows", self._stage)
        count, self._waiting = len(self._waiting), []
        return [{"gid": str(self._gid), "rows": count}]

    def _stage(self, connection: Any) -> None:
        dialect, gid = self._dialect, self._gid
        table = staged_table(self._target)
        ensure_tables(dialect, connection, self._target)
        values = _values(dialect, self._waiting, len(self._target.columns))
        prefix = (gid.owner, str(gid), gid.epoch, gid.subtask)
        rows = [
            [*prefix, number, int(deleted), *row]
            for number, (deleted, row) in enumerate(zip(deletions(self._waiting), values, strict=True))
        ]
        with dialect.transaction(connection):
            # rows with this name were staged by a driver that died
            dialect.execute(connection, dialect.delete(table, ["ms_gid"]), [[str(gid)]])
            dialect.execute(connection, dialect.insert(table, [*_STAGED, *self._target.columns]), rows)

    def abort(self) -> None:
        """Drop buffered records."""
        self._waiting = []
        self._session.drop()

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


class StagedDialectCommitter(Committer):
    """Merges staged rows into the target."""

    def __init__(self, dialect: Dialect, target: TableTarget, options: JdbcExactlyOnceOptions) -> None:
        self._dialect, self._target, self._options = dialect, target, options
        self._session = dialect.session()

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Merge the staged rows into the target, in one transaction."""
        row_counts = {Gid.parse(committable["gid"]): int(committable["rows"]) for committable in committables}
        if not row_counts:
            return
        action = f"cannot commit the output of checkpoint {checkpoint}"
        retry(
            lambda: self._session.run(action, lambda connection: self._commit(connection, row_counts)),
            self._options.max_commit_attempts,
        )

    def _commit(self, connection: Any, row_counts: dict[Gid, int]) -> None:
        dialect, mark = self._dialect, self._dialect.placeholder
        ensure_tables(dialect, connection, self._target)
        staged = dialect.quote_table(staged_table(self._target))
        names = [str(gid) for gid in row_counts]
        marks = ", ".join([mark] * len(names))
        with dialect.transaction(connection):
            # two drivers may commit at the same time; SQLite has already locked the file
            lock = " FOR UPDATE" if dialect.locks_rows else ""
            select = f"SELECT gid FROM {TABLE} WHERE gid IN ({marks}){lock}"
            committed = {gid for (gid,) in dialect.rows(connection, select, names)}
            select = f"SELECT ms_gid, count(*) FROM {staged} WHERE ms_gid IN ({marks}) GROUP BY ms_gid"
            counts = {gid: int(count) for gid, count in dialect.rows(connection, select, names)}
            uncommitted = [gid for gid in row_counts if str(gid) not in committed]
            for gid in uncommitted:
                if counts.get(str(gid), 0) != row_counts[gid]:
                    raise OutputLost(str(gid), f"{counts.get(str(gid), 0)} of its {row_counts[gid]} rows are staged")
            if uncommitted:
                self._merge(connection, staged, [str(gid) for gid in uncommitted])
                record = f"INSERT INTO {TABLE} (owner, gid, epoch) VALUES ({mark}, {mark}, {mark})"
                dialect.execute(connection, record, [[gid.owner, str(gid), gid.epoch] for gid in uncommitted])
            for owner, epoch in newest_epochs(row_counts).items():
                old = f"DELETE FROM {staged} WHERE ms_owner = {mark} AND ms_epoch <= {mark}"
                dialect.execute(connection, old, [[owner, epoch]])

    def _merge(self, connection: Any, staged: str, names: list[str]) -> None:
        dialect, target = self._dialect, self._target
        marks = ", ".join([dialect.placeholder] * len(names))
        table, columns = dialect.quote_table(target.table), dialect.names(target.columns)
        if not target.keys:
            sql = (
                f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {staged} WHERE ms_gid IN ({marks}) "
                "ORDER BY ms_epoch, ms_subtask, ms_seq"
            )
            dialect.execute(connection, sql, [names])
            return
        keys = dialect.names(target.keys)
        last = (
            f"(SELECT * FROM (SELECT s.*, ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY ms_epoch DESC, ms_seq DESC) "
            f"AS ms_rank FROM {staged} s WHERE ms_gid IN ({marks})) ranked WHERE ms_rank = 1) latest"
        )
        equal = " AND ".join(f"latest.{dialect.quote(key)} = {table}.{dialect.quote(key)}" for key in target.keys)
        delete = f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {last} WHERE ms_deleted = 1 AND {equal})"
        dialect.execute(connection, delete, [names])
        upsert = (
            f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {last} WHERE ms_deleted = 0 "
            f"{dialect.on_conflict(target.columns, target.keys)}"
        )
        dialect.execute(connection, upsert, [names])

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove rows that will never be committed."""
        names = [[str(Gid.parse(committable["gid"]))] for committable in committables]
        if names:
            delete = self._dialect.delete(staged_table(self._target), ["ms_gid"])
            self._session.run(
                "cannot remove staged rows", lambda connection: self._dialect.execute(connection, delete, names)
            )

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

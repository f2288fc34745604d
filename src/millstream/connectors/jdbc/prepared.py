"""Exactly-once output by prepared transactions.

Promises: the rows of an attempt are in one transaction that is prepared when its epoch ends, and committed after the
checkpoint that names it; a commit that is repeated, after a crash between any two statements, changes nothing.
Does not know: what rows are.

    task     1. BEGIN; rows; record; PREPARE TRANSACTION gid       crash before: nothing; after: it is prepared
driver   2. COMMIT PREPARED gid                                  crash before: repeated; after: the record is visible
    driver   3. ROLLBACK PREPARED of dead attempts                 crash before: the next commit does it

A transaction that a dead attempt prepared may lock rows that its next attempt needs. The first writer after a recovery
rolls back transactions that were prepared before that recovery; one that was prepared since ends with the next
commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from millstream.connector.sink import Committer, SinkWriter, WriterContext
from millstream.connector.staged import newest_epochs
from millstream.connectors.jdbc import commit_records
from millstream.connectors.jdbc.at_least_once import retry
from millstream.connectors.jdbc.commit_records import Gid, OutputLost
from millstream.connectors.jdbc.driver import DatabaseFailure, Session, psycopg
from millstream.connectors.jdbc.options import JdbcExactlyOnceOptions, JdbcExecutionOptions
from millstream.connectors.jdbc.targets import Target
from millstream.errors import ExternalError, UserError

_NO_SUCH_TRANSACTION = "42704"
_LOCK_TIMEOUT = "55P03"
_TOO_MANY = "53200"  # the error of PREPARE TRANSACTION when max_prepared_transactions is reached


class PreparedTransactionsDisabled(UserError):
    """Prepared transactions are disabled on the server."""

    hint = (
        "set max_prepared_transactions in postgresql.conf and restart it; or use a table with key fields, which stages"
    )

    def __init__(self) -> None:
        super().__init__("the exactly-once sink needs prepared transactions, and max_prepared_transactions is 0")


class RowsLocked(ExternalError):
    """A row is locked by a prepared transaction of an earlier epoch."""

    hint = (
        "two epochs of one checkpoint wrote the same row: use a table with key fields, for which the sink stages rows "
        "instead of locking them"
    )

    def __init__(self, seconds: int) -> None:
        super().__init__(f"a row has been locked by another transaction for more than {seconds} s")


class TooManyPrepared(ExternalError):
    """The limit of prepared transactions is reached."""

    hint = (
        "every epoch of every subtask prepares one: increase max_prepared_transactions, take more checkpoints, or "
        "use a table with key fields, for which the sink stages rows"
    )

    def __init__(self) -> None:
        super().__init__("the server has as many prepared transactions as max_prepared_transactions allows")


class PreparedWriter(SinkWriter):
    """Writes the records of one epoch into a transaction and prepares it."""

    def __init__(
        self,
        conninfo: str,
        target: Target,
        execution: JdbcExecutionOptions,
        options: JdbcExactlyOnceOptions,
        context: WriterContext,
    ) -> None:
        self._session = Session(conninfo)
        self._target = target
        self._batch = execution.batch_size or 5000
        self._options = options
        self._context, self._gid = context, Gid.of(context)
        self._has_begun = False

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Send the records in the open transaction."""
        records = list(values)

        def send(connection: Any) -> None:
            self._begin(connection)
            for first in range(0, len(records), self._batch):
                self._target.send(connection, records[first : first + self._batch])

        self._run(send)

    def _begin(self, connection: Any) -> None:
        if self._has_begun:
            return
        commit_records.ensure_table(connection)
        dead = [gid for gid in find_prepared(connection, self._gid.owner) if self._is_dead(gid)]
        roll_back_all(connection, dead)
        connection.execute("BEGIN")
        connection.execute(f"SET LOCAL lock_timeout = '{self._options.timeout_sec}s'")
        self._has_begun = True

    def _is_dead(self, gid: Gid) -> bool:
        """Return whether a transaction will never be committed: it has this writer's name, so a dead driver prepared
        it, or it was prepared before the last recovery."""
        return gid == self._gid or (self._options.recovered_and_rollback and gid.is_obsolete(self._context))

    def prepare_commit(self) -> list[Any]:
        """Prepare the transaction."""
        if not self._has_begun:
            return []

        def prepare(connection: Any) -> None:
            commit_records.add(connection, self._gid)
            connection.execute(_with_gid("PREPARE TRANSACTION {}", self._gid))

        self._run(prepare)
        self._has_begun = False
        return [{"gid": str(self._gid)}]

    def _run(self, work: Any) -> None:
        try:
            self._session.run("cannot write to the database", work)
        except DatabaseFailure as problem:
            if problem.sqlstate == _LOCK_TIMEOUT:
                raise RowsLocked(self._options.timeout_sec) from problem
            if problem.sqlstate == _TOO_MANY:
                raise TooManyPrepared from problem
            raise

    def abort(self) -> None:
        """Roll back the open transaction; a prepared one is left to the committer."""
        self._session.drop()

    def close(self) -> None:
        """Return the connection to the pool of this process."""
        if self._has_begun:
            self._session.drop()
        self._session.close()


class PreparedCommitter(Committer):
    """Commits the transactions that tasks have prepared."""

    def __init__(self, conninfo: str, options: JdbcExactlyOnceOptions) -> None:
        self._session = Session(conninfo)
        self._options = options
        self._committed: list[Gid] = []  # by the last commit

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Commit the prepared transactions."""
        gids = [Gid.parse(committable["gid"]) for committable in committables]
        action = f"cannot commit the output of checkpoint {checkpoint}"
        retry(
            lambda: self._session.run(action, lambda connection: self._commit(connection, gids)),
            self._options.max_commit_attempts,
        )
        self._committed = gids or self._committed

    def _commit(self, connection: Any, gids: Sequence[Gid]) -> None:
        commit_records.ensure_table(connection)
        commit_records.check_still_committed(connection, self._committed)
        prepared = {gid for owner in newest_epochs(gids) for gid in find_prepared(connection, owner)}
        committed = commit_records.find_committed(connection, [gid for gid in gids if gid not in prepared])
        commit_records.check_attempts(connection, gids, committed)
        for gid in gids:
            if gid in prepared:
                commit_prepared(connection, gid)
            elif gid not in committed:
                raise OutputLost(
                    str(gid), "its transaction is no longer prepared, and there is no record of its commit"
                )
        for owner, epoch in newest_epochs(gids).items():
            roll_back_all(connection, [gid for gid in find_prepared(connection, owner) if gid.epoch <= epoch])
            commit_records.prune(connection, owner, epoch)

    def abort(self, committables: Sequence[Any]) -> None:
        """Roll back transactions that will never be committed."""
        gids = [Gid.parse(committable["gid"]) for committable in committables]
        self._session.run("cannot roll back", lambda connection: roll_back_all(connection, gids))

    def describe(self, committables: Sequence[Any]) -> str:
        """Describe prepared transactions, and the statements that end them."""
        gids = super().describe([f"'{committable['gid']}'" for committable in committables])
        return f"prepared transactions {gids}; COMMIT PREPARED or ROLLBACK PREPARED ends each of them"

    def interrupt(self) -> None:
        """Break the connection."""
        self._session.interrupt()

    def close(self) -> None:
        """Return the connection to the pool of this process."""
        self._session.close()


def find_prepared(connection: Any, owner: str = commit_records.PREFIX) -> list[Gid]:
    """Return the transactions of an owner that are prepared in this database."""
    rows = connection.execute(
        "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, %s) ORDER BY gid",
        (f"{owner}:",),
    ).fetchall()
    return [Gid.parse(gid) for (gid,) in rows]


def commit_prepared(connection: Any, gid: Gid) -> None:
    """Commit a transaction; another driver may have committed it, if there is a commit record."""
    try:
        connection.execute(_with_gid("COMMIT PREPARED {}", gid))
    except psycopg().Error as problem:
        if problem.sqlstate != _NO_SUCH_TRANSACTION:
            raise
        if not commit_records.find_committed(connection, [gid]):
            raise OutputLost(str(gid), "its transaction was rolled back by another connection") from problem


def roll_back_all(connection: Any, gids: Iterable[Gid]) -> None:
    """Roll back transactions, ignoring those that do not exist any more."""
    for gid in gids:
        try:
            connection.execute(_with_gid("ROLLBACK PREPARED {}", gid))
        except psycopg().Error as problem:
            if problem.sqlstate != _NO_SUCH_TRANSACTION:
                raise


def check_enabled(connection: Any) -> None:
    """Raise `PreparedTransactionsDisabled` if the server does not support them."""
    if int(connection.execute("SHOW max_prepared_transactions").fetchone()[0]) == 0:
        raise PreparedTransactionsDisabled


def list_prepared(conninfo: str) -> list[Gid]:
    """Return all prepared transactions of millstream jobs in a database, of running jobs and of others."""
    session = Session(conninfo)
    try:
        gids: list[Gid] = session.run("cannot list prepared transactions", find_prepared)
    finally:
        session.close()
    return gids


def roll_back(conninfo: str, gids: Sequence[Gid]) -> None:
    """Roll back transactions of jobs that will never be restarted: their rows are lost."""
    session = Session(conninfo)
    try:
        session.run("cannot roll back", lambda connection: roll_back_all(connection, gids))
    finally:
        session.close()


def _with_gid(statement: str, gid: Gid) -> Any:
    sql = psycopg().sql
    return sql.SQL(statement).format(sql.Literal(str(gid)))

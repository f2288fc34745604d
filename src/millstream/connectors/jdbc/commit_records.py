"""Commit records: rows of a table in the database that say which output of a job is committed.

Promises: the database alone decides whether the output of an attempt is visible, as long as a checkpoint that names
it may be restored. A commit record is written in the same transaction as the rows.
Does not know: rows, checkpoints."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from typing import Any, Self
from urllib.parse import quote

from millstream.connector.sink import OutputRefused, WriterContext
from millstream.connector.staged import NotStaged, StagedName
from millstream.errors import ExternalError

_log = logging.getLogger("millstream.jdbc")

TABLE = "millstream_commits"
PREFIX = "millstream"
_EPOCHS_KEPT = 1000  # epochs whose records are kept one by one; for older ones only the last epoch is kept
LOCK = 0x6D73  # key of the advisory lock for creating tables: concurrent ones would conflict in the catalog


class OutputLost(ExternalError):
    """Staged output is missing, and there is no record of its commit."""

    hint = "it may have been rolled back or deleted manually; start from an older checkpoint to write it again"

    def __init__(self, gid: str, state: str) -> None:
        self.gid = gid
        super().__init__(f"the output {gid} is not committed, and cannot be committed: {state}")


class CommittedOutputGone(ExternalError):
    """The database no longer has output that was committed."""

    hint = (
        "has a replica that lagged behind become the primary, or was a backup restored? start from a savepoint that is "
        "as old as the database, so that the output is written again"
    )

    def __init__(self, gid: str, count: int) -> None:
        self.gid, self.count = gid, count
        super().__init__(f"the database has lost {count} committed transactions of this job, such as {gid}")


class CommittedByAnother(OutputRefused):
    """The database has output of the same epochs from another attempt than the one to be committed."""

    hint = (
        "the job was restored to a checkpoint before output that it had committed; to write it again, start a new job "
        "from the checkpoint (execution.state-recovery.path)"
    )

    def __init__(self, gid: str, committed: str) -> None:
        self.gid, self.committed = gid, committed
        super().__init__(f"the output {gid} is not committed: {committed} of the same job is, for the same epoch")


class Gid(StagedName):
    """The name of a prepared transaction, or of staged rows. PostgreSQL allows up to 200 bytes."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.owner}:{self.epoch}:{self.subtask}:{self.attempt}"

    @classmethod
    def of(cls, context: WriterContext) -> Self:
        """Return the name for a writer."""
        owner = f"{PREFIX}:{_short(context.job)}:{_short(context.sink)}"
        return cls(owner, context.epoch, context.subtask, _short(context.attempt))

    @classmethod
    def parse(cls, text: Any) -> Self:
        """Parse the text of a name; raise `NotStaged` if it is not one."""
        parts = text.split(":") if isinstance(text, str) else []
        if len(parts) != 6 or parts[0] != PREFIX or not parts[3].isdigit() or not parts[4].isdigit():
            raise NotStaged(text, "output of a JDBC sink")
        return cls(":".join(parts[:3]), int(parts[3]), int(parts[4]), parts[5])


def _short(part: str) -> str:
    text = quote(part, safe="-.")
    return text if len(text) <= 48 else f"{text[:15]}-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


def ensure_table(connection: Any) -> None:
    """Create the table of commit records if it does not exist."""
    columns = "owner text NOT NULL, gid text NOT NULL, epoch bigint NOT NULL, "
    columns += "committed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (owner, gid)"
    create_under_lock(connection, TABLE, f"CREATE TABLE {TABLE} ({columns})")


def create_under_lock(connection: Any, table: str, *statements: str) -> None:
    """Create a table by these statements, under a lock, unless it exists. Not to be called inside a transaction."""
    if _exists(connection, table):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        if not _exists(connection, table):
            for create in statements:
                connection.execute(create)


def _exists(connection: Any, table: str) -> bool:
    return connection.execute("SELECT to_regclass(%s)", (table,)).fetchone()[0] is not None


def add(connection: Any, gid: Gid) -> None:
    """Insert the commit record, in the open transaction."""
    connection.execute(f"INSERT INTO {TABLE} (owner, gid, epoch) VALUES (%s, %s, %s)", (gid.owner, str(gid), gid.epoch))


def find_committed(connection: Any, gids: Sequence[Gid]) -> set[Gid]:
    """Return those of the names that are committed."""
    owners = sorted({gid.owner for gid in gids})
    records = connection.execute(
        f"SELECT owner, gid, epoch FROM {TABLE} WHERE owner = ANY(%s) AND (gid = '' OR gid = ANY(%s))",
        (owners, [str(gid) for gid in gids]),
    ).fetchall()
    recorded = {gid for _, gid, _ in records}
    pruned = {owner: epoch for owner, gid, epoch in records if not gid}
    return {gid for gid in gids if str(gid) in recorded or gid.epoch <= pruned.get(gid.owner, -1)}


def check_still_committed(connection: Any, gids: Sequence[Gid]) -> None:
    """Raise `CommittedOutputGone` unless all of these, which were committed, still are."""
    if gids:
        missing = sorted({str(gid) for gid in gids} - {str(gid) for gid in find_committed(connection, gids)})
        if missing:
            raise CommittedOutputGone(missing[0], len(missing))


def check_attempts(connection: Any, gids: Sequence[Gid], committed: set[Gid]) -> None:
    """Raise `CommittedByAnother` if other attempts have committed epochs of output that is not in `committed`.

    `gids` is all output of a checkpoint, and so of each of its epochs."""
    known_names, epochs = (
        {str(gid) for gid in gids},
        {(gid.owner, gid.epoch): gid for gid in gids if gid not in committed},
    )
    if committed:
        _log.warning(
            "%d of %d transactions were committed before, and are not committed again", len(committed), len(gids)
        )
    if not epochs:
        return
    owners = sorted({owner for owner, _ in epochs})
    records = connection.execute(f"SELECT owner, gid, epoch FROM {TABLE} WHERE owner = ANY(%s)", (owners,)).fetchall()
    for owner, proof, epoch in records:
        if proof and proof not in known_names and (owner, epoch) in epochs:
            raise CommittedByAnother(str(epochs[owner, epoch]), proof)
        pruned = [gid for (of, at), gid in epochs.items() if not proof and of == owner and at <= epoch]
        if pruned:
            raise CommittedByAnother(str(pruned[0]), f"output up to epoch {epoch}")


def prune(connection: Any, owner: str, epoch: int) -> None:
    """Replace the records of old epochs by one with the epoch up to which all output is committed."""
    if epoch <= _EPOCHS_KEPT:
        return
    with connection.transaction():
        connection.execute(
            f"INSERT INTO {TABLE} (owner, gid, epoch) VALUES (%s, '', %s) ON CONFLICT (owner, gid) "
            f"DO UPDATE SET epoch = greatest({TABLE}.epoch, EXCLUDED.epoch), committed_at = now()",
            (owner, epoch - _EPOCHS_KEPT),
        )
        connection.execute(
            f"DELETE FROM {TABLE} WHERE owner = %s AND gid <> '' AND epoch <= %s", (owner, epoch - _EPOCHS_KEPT)
        )

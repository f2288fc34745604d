"""Which output is committed: names of transactions, and their proof in the database.

Promises: whether the output of an attempt is visible can be told from the database alone, for as long as a checkpoint
that names it may be restored. A proof is written in the same transaction as the rows.
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
_KEPT = 1000  # epochs whose proofs are kept one by one; of older ones only the last is remembered
LOCK = 0x6D73  # of the advisory lock around creating tables: two at once would meet in the catalog


class OutputLost(ExternalError):
    """Staged output is gone, and there is no proof that it was committed."""

    hint = "was it rolled back or deleted by hand? start from an older checkpoint to write it again"

    def __init__(self, gid: str, found: str) -> None:
        self.gid = gid
        super().__init__(f"the output {gid} is not committed and cannot be: {found}")


class CommittedOutputGone(ExternalError):
    """The database no longer has output that was committed before."""

    hint = (
        "has a replica that lagged behind become the primary, or was a backup restored? start from a savepoint that is "
        "as old as the database, so that the output is written again"
    )

    def __init__(self, gid: str, count: int) -> None:
        self.gid, self.count = gid, count
        super().__init__(f"the database has lost {count} committed transactions of this job, such as {gid}")


class CommittedByAnother(OutputRefused):
    """The database has output of the same epochs, and it is not the output that was to be committed."""

    hint = (
        "the job went back behind output that it had committed; to write it again, start a new job from the checkpoint "
        "(execution.state-recovery.path)"
    )

    def __init__(self, gid: str, committed: str) -> None:
        self.gid, self.committed = gid, committed
        super().__init__(f"the output {gid} is not committed: {committed} of the same job is, for the same epoch")


class Gid(StagedName):
    """The name of a transaction, or of rows that wait in a table. PostgreSQL takes up to 200 bytes."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.owner}:{self.epoch}:{self.subtask}:{self.attempt}"

    @classmethod
    def of(cls, context: WriterContext) -> Self:
        """The name for a writer."""
        owner = f"{PREFIX}:{_short(context.job)}:{_short(context.sink)}"
        return cls(owner, context.epoch, context.subtask, _short(context.attempt))

    @classmethod
    def parse(cls, text: Any) -> Self:
        """The inverse of `str`; refuses what is no such name."""
        parts = text.split(":") if isinstance(text, str) else []
        if len(parts) != 6 or parts[0] != PREFIX or not parts[3].isdigit() or not parts[4].isdigit():
            raise NotStaged(text, "output of a JDBC sink")
        return cls(":".join(parts[:3]), int(parts[3]), int(parts[4]), parts[5])


def _short(part: str) -> str:
    text = quote(part, safe="-.")
    return text if len(text) <= 48 else f"{text[:15]}-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


def ensure_table(connection: Any) -> None:
    """Make the table of proofs if it is not there."""
    columns = "owner text NOT NULL, gid text NOT NULL, epoch bigint NOT NULL, "
    columns += "committed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (owner, gid)"
    locked_create(connection, TABLE, f"CREATE TABLE {TABLE} ({columns})")


def locked_create(connection: Any, table: str, *statements: str) -> None:
    """Create a table by these statements unless it is there. Must not be called inside a transaction."""
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
    """Write the proof, in the transaction that is open."""
    connection.execute(f"INSERT INTO {TABLE} (owner, gid, epoch) VALUES (%s, %s, %s)", (gid.owner, str(gid), gid.epoch))


def committed(connection: Any, gids: Sequence[Gid]) -> set[Gid]:
    """Those that are committed."""
    owners = sorted({gid.owner for gid in gids})
    found = connection.execute(
        f"SELECT owner, gid, epoch FROM {TABLE} WHERE owner = ANY(%s) AND (gid = '' OR gid = ANY(%s))",
        (owners, [str(gid) for gid in gids]),
    ).fetchall()
    proven = {gid for _, gid, _ in found}
    forgotten = {owner: epoch for owner, gid, epoch in found if not gid}
    return {gid for gid in gids if str(gid) in proven or gid.epoch <= forgotten.get(gid.owner, -1)}


def check_still_committed(connection: Any, gids: Sequence[Gid]) -> None:
    """Raise `CommittedOutputGone` unless all of these, which were committed, still are."""
    if gids:
        gone = sorted({str(gid) for gid in gids} - {str(gid) for gid in committed(connection, gids)})
        if gone:
            raise CommittedOutputGone(gone[0], len(gone))


def check_attempts(connection: Any, gids: Sequence[Gid], done: set[Gid]) -> None:
    """Raise if other attempts have committed the epochs of those that are not `done`; say how many are.

    `gids` is all output of a checkpoint, and so of each of its epochs."""
    named, epochs = {str(gid) for gid in gids}, {(gid.owner, gid.epoch): gid for gid in gids if gid not in done}
    if done:
        _log.warning("%d of %d transactions were committed before, and are not committed again", len(done), len(gids))
    if not epochs:
        return
    owners = sorted({owner for owner, _ in epochs})
    found = connection.execute(f"SELECT owner, gid, epoch FROM {TABLE} WHERE owner = ANY(%s)", (owners,)).fetchall()
    for owner, proof, epoch in found:
        if proof and proof not in named and (owner, epoch) in epochs:
            raise CommittedByAnother(str(epochs[owner, epoch]), proof)
        forgotten = [gid for (of, at), gid in epochs.items() if not proof and of == owner and at <= epoch]
        if forgotten:
            raise CommittedByAnother(str(forgotten[0]), f"output up to epoch {epoch}")


def prune(connection: Any, owner: str, epoch: int) -> None:
    """Everything of an owner up to `epoch` is committed: forget the proofs of epochs long past, but not that fact."""
    if epoch <= _KEPT:
        return
    with connection.transaction():
        connection.execute(
            f"INSERT INTO {TABLE} (owner, gid, epoch) VALUES (%s, '', %s) ON CONFLICT (owner, gid) "
            f"DO UPDATE SET epoch = greatest({TABLE}.epoch, EXCLUDED.epoch), committed_at = now()",
            (owner, epoch - _KEPT),
        )
        connection.execute(
            f"DELETE FROM {TABLE} WHERE owner = %s AND gid <> '' AND epoch <= %s", (owner, epoch - _KEPT)
        )

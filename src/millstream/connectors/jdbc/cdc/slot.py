"""A replication slot and its publication: the log of changes that can be read again until it is acknowledged.

Promises: reading does not consume; the same positions give the same messages until `advance` goes past them.
Does not know: what messages mean, epochs.

A slot is read by SQL functions: a peek decodes from the last acknowledged position on. So an epoch costs as much as all
that changed since the last checkpoint, on the server; take checkpoints often enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from millstream.connectors.jdbc.cdc.pgoutput import format_lsn, parse_lsn
from millstream.connectors.jdbc.cdc.tables import CannotCapture, Table
from millstream.connectors.jdbc.driver import DatabaseFailure, Session, psycopg, translated
from millstream.connectors.jdbc.statements import quoted
from millstream.errors import ExternalError

_IN_USE = "55006"
_PATIENCE = 30.0  # seconds that someone else may hold the slot
_CREATION = 120  # seconds that open transactions may hold up the creation of a slot
_T = TypeVar("_T")

# B(egin), C(ommit), R(elation), Y (type) and O(rigin) are no changes
_PEEK = "pg_logical_slot_peek_binary_changes(%s, %s, %s, VARIADIC %s)"
_COUNT = f"""
WITH peeked AS MATERIALIZED (SELECT row_number() OVER () AS n, lsn, get_byte(data, 0) AS kind FROM {_PEEK})
SELECT count(*) FILTER (WHERE kind NOT IN (66, 67, 82, 89, 79)),
       count(*) FILTER (WHERE kind NOT IN (66, 67, 82, 89, 79)
                        AND n <= (SELECT max(n) FROM peeked WHERE kind = 67 AND lsn <= %s)),
       count(*), max(lsn) FILTER (WHERE kind = 67)
FROM peeked
"""


class SlotInUse(ExternalError):
    """Another connection reads the slot."""

    hint = "does another job or connector use the same slot? give each its own; `SELECT * FROM pg_replication_slots`"

    def __init__(self, slot: str) -> None:
        super().__init__(f"the replication slot {slot} is used by another connection for more than {_PATIENCE:g} s")


class SlotMovedOn(ExternalError):
    """The slot no longer has what a checkpoint needs."""

    hint = "start a new job with a snapshot; only one job may use a slot, and only the job may advance it"

    def __init__(self, slot: str, needed: int, has: int) -> None:
        super().__init__(f"the job continues at {format_lsn(needed)}, but the slot {slot} begins at {format_lsn(has)}")


@dataclass(frozen=True, slots=True)
class Peeked:
    """The result of a peek: the number of new changes, and where they end."""

    fresh: int
    before: int
    end: int


class Slot:
    """One slot, through one session."""

    def __init__(self, session: Session, name: str, publication: str) -> None:
        self._session = session
        self._name = name
        self._options = ["proto_version", "1", "publication_names", quoted(publication), "messages", "true"]
        self._publication = publication

    def exists(self) -> bool:
        """Whether the slot exists; `CannotCapture` if it is of another plugin or database."""
        found = self._session.query(
            "cannot look for the replication slot",
            "SELECT plugin, database = current_database() FROM pg_replication_slots WHERE slot_name = %s",
            (self._name,),
        )
        if found and found[0] != ("pgoutput", True):
            message = f"the replication slot {self._name} is of plugin {found[0][0]} or of another database"
            raise CannotCapture(message, hint="give another slot_name")
        return bool(found)

    def create(self) -> None:
        """Create the slot. The server waits for open transactions to end."""

        def create(connection: Any) -> None:
            with connection.transaction():
                connection.execute(f"SET LOCAL statement_timeout = '{_CREATION}s'")
                connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (self._name,))

        self._session.run("cannot create the replication slot (are transactions open for long?)", create)

    def publish(self, tables: Sequence[Table]) -> None:
        """Create the publication, unless it exists and has all tables."""
        doing = f"cannot publish the tables as {self._publication}"
        known = self._session.query(doing, "SELECT 1 FROM pg_publication WHERE pubname = %s", (self._publication,))
        if not known:
            listed = ", ".join(table.quoted for table in tables)
            self._session.query(doing, f"CREATE PUBLICATION {quoted(self._publication)} FOR TABLE {listed}")
        has = self._session.query(
            doing, "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", (self._publication,)
        )
        missing = [table for table in tables if (table.schema, table.name) not in has]
        if missing:
            message = f"the publication {self._publication} lacks {', '.join(table.id for table in missing)}"
            raise CannotCapture(message, hint=f"ALTER PUBLICATION {self._publication} ADD TABLE ...")

    def confirmed(self) -> int:
        """Return the confirmed position of the slot."""
        found = self._session.query(
            "cannot look at the replication slot",
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s",
            (self._name,),
        )
        if not found or found[0][0] is None:
            message = f"there is no replication slot {self._name}"
            raise CannotCapture(message, hint="it was dropped; start a new job with a snapshot")
        return parse_lsn(found[0][0])

    def flushed(self) -> int:
        """Return the position up to which the log is durable."""
        found = self._session.query("cannot read the log's position", "SELECT pg_current_wal_flush_lsn()::text")
        return parse_lsn(found[0][0])

    def peek(self, at: int, end: int, before: int, wanted: int) -> Peeked:
        """Look ahead from `at` to at most `end`, for about `wanted` changes after the `before` that were planned."""
        limit = before + wanted
        while True:
            asked = (self._name, format_lsn(end), limit, self._options, format_lsn(at))
            changes, old, messages, last = self._counted(asked)
            cut = messages >= limit and last is not None
            if cut and changes == old:  # the limit was spent on what is planned already
                limit *= 2
                continue
            return Peeked(changes - old, old, parse_lsn(last) if cut else end)

    def _counted(self, asked: tuple[Any, ...]) -> Any:
        return self._patiently(lambda: self._session.query("cannot peek", _COUNT, asked))[0]

    def messages(self, end: int) -> Generator[bytes, None, None]:
        """Yield all messages from the beginning of the slot up to `end`."""
        stream = self._patiently(lambda: self._first(end))
        try:
            yield from stream
        finally:
            stream.close()

    def _first(self, end: int) -> Generator[bytes, None, None]:
        """The stream of messages, of which one has come: the slot is ours."""
        stream = self._stream(end)
        first = next(stream, None)
        return _chained(first, stream)

    def _stream(self, end: int) -> Generator[bytes, None, None]:
        connection = self._session.connection()
        asked = (self._name, format_lsn(end), None, self._options)
        with translated("cannot read the changes"), connection.cursor(binary=True) as cursor:
            for (data,) in cursor.stream(f"SELECT data FROM {_PEEK}", asked, size=_rows_at_once()):
                yield data

    def advance(self, to: int) -> None:
        """Advance the slot: the server may delete the log before `to`."""
        sql = "SELECT pg_replication_slot_advance(%s, %s)"
        self._patiently(lambda: self._session.query("cannot advance the slot", sql, (self._name, format_lsn(to))))

    def drop(self) -> None:
        """Remove slot and publication."""
        sql = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
        self._patiently(lambda: self._session.query("cannot drop the slot", sql, (self._name,)))
        self._session.query("cannot drop the publication", f"DROP PUBLICATION IF EXISTS {quoted(self._publication)}")

    def _patiently(self, work: Callable[[], _T]) -> _T:
        """Retry while another connection uses the slot, up to a time limit."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return work()
            except DatabaseFailure as problem:
                if problem.sqlstate != _IN_USE:
                    raise
                if time.monotonic() > deadline:
                    raise SlotInUse(self._name) from problem
            time.sleep(0.02)


def _rows_at_once() -> int:
    return 1000 if psycopg().capabilities.has_stream_chunked() else 1


def _chained(first: bytes | None, rest: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
    try:
        if first is not None:
            yield first
            yield from rest
    finally:
        rest.close()

"""A replication slot and its publication: a log of changes that can be read repeatedly until it is acknowledged.

Promises: reading does not consume; the same positions have the same messages until `advance` moves past them.
Does not know: what messages mean, epochs.

A slot is read by SQL functions, which decode from the last acknowledged position. So an epoch costs the server as much
as all changes since the last checkpoint; checkpoints should be frequent."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from millstream.connectors.jdbc.cdc.captured import CannotCapture
from millstream.connectors.jdbc.cdc.pgoutput import format_lsn, parse_lsn
from millstream.connectors.jdbc.cdc.tables import Table
from millstream.connectors.jdbc.driver import DatabaseFailure, Session, psycopg, translate_errors
from millstream.connectors.jdbc.statements import quote_name
from millstream.errors import ExternalError

_IN_USE = "55006"
_MAX_WAIT = 30.0  # seconds that another connection may use the slot
_CREATION_TIMEOUT = 120  # seconds that open transactions may delay the creation of a slot
_T = TypeVar("_T")

# B(egin), C(ommit), R(elation), Y (type) and O(rigin) are not changes
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

    hint = "find out who uses it: SELECT * FROM pg_replication_slots; each job or connector needs a slot of its own"

    def __init__(self, slot: str) -> None:
        super().__init__(
            f"the replication slot {slot} has been used by another connection for more than {_MAX_WAIT:g} s"
        )


class SlotAdvanced(ExternalError):
    """The slot no longer has the changes that a checkpoint needs."""

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
        self._options = ["proto_version", "1", "publication_names", quote_name(publication), "messages", "true"]
        self._publication = publication

    def exists(self) -> bool:
        """Whether the slot exists; `CannotCapture` if it is of another plugin or database."""
        slots = self._session.query(
            "cannot find the replication slot",
            "SELECT plugin, database = current_database() FROM pg_replication_slots WHERE slot_name = %s",
            (self._name,),
        )
        if slots and slots[0] != ("pgoutput", True):
            message = f"the replication slot {self._name} is of plugin {slots[0][0]} or of another database"
            raise CannotCapture(message, hint="use another slot_name")
        return bool(slots)

    def create(self) -> None:
        """Create the slot. The server waits for open transactions to end."""

        def create(connection: Any) -> None:
            with connection.transaction():
                connection.execute(f"SET LOCAL statement_timeout = '{_CREATION_TIMEOUT}s'")
                connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (self._name,))

        self._session.run("cannot create the replication slot (a transaction may have been open for too long)", create)

    def publish(self, tables: Sequence[Table]) -> None:
        """Create the publication, unless it exists and has all tables."""
        action = f"cannot publish the tables as {self._publication}"
        publications = self._session.query(
            action, "SELECT 1 FROM pg_publication WHERE pubname = %s", (self._publication,)
        )
        if not publications:
            table_names = ", ".join(table.quoted_name for table in tables)
            self._session.query(action, f"CREATE PUBLICATION {quote_name(self._publication)} FOR TABLE {table_names}")
        published = self._session.query(
            action, "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", (self._publication,)
        )
        missing = [table for table in tables if (table.schema, table.name) not in published]
        if missing:
            message = f"the publication {self._publication} lacks {', '.join(table.id for table in missing)}"
            raise CannotCapture(message, hint=f"ALTER PUBLICATION {self._publication} ADD TABLE ...")

    def confirmed(self) -> int:
        """Return the confirmed position of the slot."""
        positions = self._session.query(
            "cannot read the replication slot",
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s",
            (self._name,),
        )
        if not positions or positions[0][0] is None:
            message = f"there is no replication slot {self._name}"
            raise CannotCapture(message, hint="it was dropped; start a new job with a snapshot")
        return parse_lsn(positions[0][0])

    def flushed(self) -> int:
        """Return the position up to which the log is durable."""
        positions = self._session.query("cannot read the log's position", "SELECT pg_current_wal_flush_lsn()::text")
        return parse_lsn(positions[0][0])

    def peek(self, position: int, end: int, before: int, count: int) -> Peeked:
        """Count changes from `position` to at most `end`: about `count` after the `before` that are already planned."""
        limit = before + count
        while True:
            parameters = (self._name, format_lsn(end), limit, self._options, format_lsn(position))
            changes, old, messages, last = self._count(parameters)
            is_limited = messages >= limit and last is not None
            if is_limited and changes == old:  # the limit covers only changes that are already planned
                limit *= 2
                continue
            return Peeked(changes - old, old, parse_lsn(last) if is_limited else end)

    def _count(self, parameters: tuple[Any, ...]) -> Any:
        return self._wait_for_slot(lambda: self._session.query("cannot peek", _COUNT, parameters))[0]

    def messages(self, end: int) -> Generator[bytes, None, None]:
        """Yield all messages from the beginning of the slot up to `end`."""
        stream = self._wait_for_slot(lambda: self._open_stream(end))
        try:
            yield from stream
        finally:
            stream.close()

    def _open_stream(self, end: int) -> Generator[bytes, None, None]:
        """Return the stream of messages after the first has arrived, which shows that this connection has the slot."""
        stream = self._stream(end)
        first = next(stream, None)
        return _prepend(first, stream)

    def _stream(self, end: int) -> Generator[bytes, None, None]:
        connection = self._session.connection()
        parameters = (self._name, format_lsn(end), None, self._options)
        with translate_errors("cannot read the changes"), connection.cursor(binary=True) as cursor:
            for (data,) in cursor.stream(f"SELECT data FROM {_PEEK}", parameters, size=_rows_per_chunk()):
                yield data

    def advance(self, to: int) -> None:
        """Advance the slot: the server may delete the log before `to`."""
        sql = "SELECT pg_replication_slot_advance(%s, %s)"
        self._wait_for_slot(lambda: self._session.query("cannot advance the slot", sql, (self._name, format_lsn(to))))

    def drop(self) -> None:
        """Remove slot and publication."""
        sql = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
        self._wait_for_slot(lambda: self._session.query("cannot drop the slot", sql, (self._name,)))
        self._session.query(
            "cannot drop the publication", f"DROP PUBLICATION IF EXISTS {quote_name(self._publication)}"
        )

    def _wait_for_slot(self, work: Callable[[], _T]) -> _T:
        """Retry while another connection uses the slot, up to a time limit."""
        deadline = time.monotonic() + _MAX_WAIT
        while True:
            try:
                return work()
            except DatabaseFailure as problem:
                if problem.sqlstate != _IN_USE:
                    raise
                if time.monotonic() > deadline:
                    raise SlotInUse(self._name) from problem
            time.sleep(0.02)


def _rows_per_chunk() -> int:
    return 1000 if psycopg().capabilities.has_stream_chunked() else 1


def _prepend(first: bytes | None, rest: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
    try:
        if first is not None:
            yield first
            yield from rest
    finally:
        rest.close()

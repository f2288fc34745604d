"""PostgreSQL's logical replication messages (pgoutput, protocol 1), as values.

Promises: every message of the protocol is understood or refused; values stay text, null is None, and a large value that
an update did not change is `UNCHANGED`.
Does not know: connections, types of values."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from millstream.errors import ExternalError, InternalError

_PG_EPOCH_MS = 946_684_800_000  # 2000-01-01
UNCHANGED: Final = "\0unchanged"  # cannot be a value: texts of PostgreSQL have no zero byte


class UnknownMessage(InternalError):
    """A message that is not part of the protocol."""

    def __init__(self, message_type: str, position: str) -> None:
        super().__init__(f"logical replication sent an unknown message {message_type!r} at {position}")


class DamagedMessage(ExternalError):
    """A message that does not follow the protocol."""

    hint = "check that the server is PostgreSQL with logical replication, protocol version 1"

    def __init__(self, message_type: str, problem: object) -> None:
        self.message_type = message_type
        super().__init__(f"logical replication sent a message {message_type!r} that cannot be read: {problem}")


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the stream describes it."""

    name: str
    type_oid: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as the stream describes it. `identity`: d(efault), f(ull), i(ndex) or n(othing)."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[Column, ...]

    @property
    def table(self) -> str:
        """Schema and name."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction. `commit` is the position of its commit record, `at` the time of the commit, in milliseconds."""

    xid: int
    commit: int
    at: int


Values = list[str | None]


@dataclass(slots=True)
class Event:
    """One change. `op` is I, U, D, T (truncate) or M (message); `full` says that `old` has all columns."""

    op: str
    transaction: Transaction
    relation: Relation | None = None
    new: Values | None = None
    old: Values | None = None
    full: bool = False
    prefix: str = ""
    content: bytes = b""
    truncated: tuple[Relation, ...] = field(default=())


class _MessageReader:
    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 1

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        values = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return values

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        text, self.at = self.data[self.at : end].decode(), end + 1
        return text

    def char(self) -> str:
        self.at += 1
        return chr(self.data[self.at - 1])

    def tuple(self) -> Values:
        data = self.data
        (count,) = self.take(_INT16)
        offset = self.at
        values: Values = []
        for _ in range(count):
            value_type = data[offset]
            offset += 1
            if value_type == _TEXT:
                (length,) = _INT32.unpack_from(data, offset)
                offset += 4 + length
                if length < 0 or offset > len(data):
                    raise IndexError(length)
                values.append(data[offset - length : offset].decode())
            elif value_type == _NULL:
                values.append(None)
            elif value_type == _TOASTED:
                values.append(UNCHANGED)
            else:
                raise UnknownMessage(chr(value_type), "a value")
        self.at = offset
        return values


_INT16, _INT32 = struct.Struct("!h"), struct.Struct("!i")
_OID = struct.Struct("!I")
_BEGIN = struct.Struct("!QqI")
_RELATION_END = struct.Struct("!ch")
_COLUMN_END = struct.Struct("!Ii")
_TRUNCATE = struct.Struct("!iB")
_MESSAGE = struct.Struct("!BQ")
_TEXT, _NULL, _TOASTED = b"tnu"


class Decoder:
    """Decodes messages in order, and keeps the relations by their ids."""

    def __init__(self) -> None:
        self._relations: dict[int, Relation] = {}

    def events(self, messages: Iterable[bytes], start: int, end: int) -> Iterator[Event]:
        """Yield the changes of transactions whose commit record is at or after `start` and before `end`."""
        transaction = Transaction(0, 0, 0)
        is_in_range = False
        for data in messages:
            message_type = chr(data[0]) if data else ""
            event = None
            try:
                if message_type == "B":
                    commit, micros, xid = _BEGIN.unpack_from(data, 1)
                    transaction = Transaction(xid, commit, _PG_EPOCH_MS + micros // 1000)
                    is_in_range = start <= commit < end
                elif message_type == "R":
                    self._relation(_MessageReader(data))
                elif message_type not in ("C", "O", "Y") and is_in_range:
                    event = self._event(message_type, _MessageReader(data), transaction)
            except (struct.error, ValueError, LookupError) as problem:
                raise DamagedMessage(message_type, repr(problem)) from None
            if event is not None:
                yield event

    def _relation(self, data: _MessageReader) -> None:
        (oid,) = data.take(_OID)
        schema, name = data.text() or "pg_catalog", data.text()
        identity, count = data.take(_RELATION_END)
        columns: list[Column] = []
        for _ in range(count):
            flags = data.char()
            column = data.text()
            type_oid, _modifier = data.take(_COLUMN_END)
            columns.append(Column(column, type_oid, flags == "\x01"))
        self._relations[oid] = Relation(oid, schema, name, identity.decode(), tuple(columns))

    def _event(self, message_type: str, data: _MessageReader, transaction: Transaction) -> Event:
        if message_type == "M":
            data.take(_MESSAGE)
            prefix = data.text()
            (length,) = data.take(_INT32)
            if not 0 <= length <= len(data.data) - data.at:
                raise IndexError(length)
            return Event("M", transaction, prefix=prefix, content=data.data[data.at : data.at + length])
        if message_type == "T":
            count, _options = data.take(_TRUNCATE)
            relations = tuple(self._relations[data.take(_OID)[0]] for _ in range(count))
            return Event("T", transaction, truncated=relations)
        if message_type not in ("I", "U", "D"):
            raise UnknownMessage(message_type, format_lsn(transaction.commit))
        (oid,) = data.take(_OID)
        event = Event(message_type, transaction, self._relations[oid])
        tuple_type = data.char()
        if tuple_type in ("K", "O"):
            event.old, event.full = data.tuple(), tuple_type == "O"
            tuple_type = data.char() if message_type == "U" else ""
        if tuple_type == "N":
            event.new = data.tuple()
        return event


def format_lsn(lsn: int) -> str:
    """Return a position in the log in PostgreSQL's text form."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """Return the inverse of `format_lsn`."""
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


@dataclass(frozen=True, slots=True)
class DatabaseSnapshot:
    """A snapshot of the database: which transactions are visible in it. Numbers are those of
    `pg_current_snapshot()`."""

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> DatabaseSnapshot:
        """Parse the text form of a snapshot, `xmin:xmax:running,...`."""
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(int(xid) for xid in running.split(",") if xid))

    def contains(self, xid: int) -> bool:
        """Return whether a transaction is visible; of its number the stream has only the last 32 bits."""
        full_xid = (self.xmax & ~0xFFFFFFFF) | xid
        if full_xid - self.xmax > 1 << 31:
            full_xid -= 1 << 32
        elif self.xmax - full_xid > 1 << 31:
            full_xid += 1 << 32
        return full_xid < self.xmin or (full_xid < self.xmax and full_xid not in self.running)

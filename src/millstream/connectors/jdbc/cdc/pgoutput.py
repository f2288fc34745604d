"""PostgreSQL's logical replication messages (pgoutput, protocol 1), as values.

Promises: every message of the protocol is understood or refused; values stay text, null is None, and a large value that
an update did not touch is `UNCHANGED`.
Does not know: connections, types of values."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from millstream.errors import ExternalError, InternalError

_PG_EPOCH_MS = 946_684_800_000  # 2000-01-01
UNCHANGED: Final = "\0unchanged"  # no text of PostgreSQL has a zero byte


class UnknownMessage(InternalError):
    """A message that the protocol does not have."""

    def __init__(self, kind: str, at: str) -> None:
        super().__init__(f"logical replication sent a message {kind!r} at {at}")


class DamagedMessage(ExternalError):
    """A message that is not what the protocol says."""

    hint = "is the server a PostgreSQL that speaks logical replication, protocol 1?"

    def __init__(self, kind: str, problem: object) -> None:
        self.kind = kind
        super().__init__(f"logical replication sent a message {kind!r} that cannot be read: {problem}")


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the stream describes it."""

    name: str
    kind: int
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
    """Whose changes they are. `commit` is where its commit record is, `at` when it was, in milliseconds."""

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


class _Bytes:
    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 1

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        values = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return values

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        found, self.at = self.data[self.at : end].decode(), end + 1
        return found

    def char(self) -> str:
        self.at += 1
        return chr(self.data[self.at - 1])

    def tuple(self) -> Values:
        data = self.data
        (count,) = self.take(_INT16)
        at = self.at
        values: Values = []
        for _ in range(count):
            kind = data[at]
            at += 1
            if kind == _TEXT:
                (length,) = _INT32.unpack_from(data, at)
                at += 4 + length
                if length < 0 or at > len(data):
                    raise IndexError(length)
                values.append(data[at - length : at].decode())
            elif kind == _NULL:
                values.append(None)
            elif kind == _TOASTED:
                values.append(UNCHANGED)
            else:
                raise UnknownMessage(chr(kind), "a value")
        self.at = at
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
    """Reads messages in order; remembers which relation has which number."""

    def __init__(self) -> None:
        self._relations: dict[int, Relation] = {}

    def events(self, messages: Iterable[bytes], start: int, end: int) -> Iterator[Event]:
        """The changes of transactions whose commit record is at or after `start` and before `end`."""
        transaction = Transaction(0, 0, 0)
        inside = False
        for data in messages:
            kind = chr(data[0]) if data else ""
            event = None
            try:
                if kind == "B":
                    commit, micros, xid = _BEGIN.unpack_from(data, 1)
                    transaction = Transaction(xid, commit, _PG_EPOCH_MS + micros // 1000)
                    inside = start <= commit < end
                elif kind == "R":
                    self._relation(_Bytes(data))
                elif kind not in ("C", "O", "Y") and inside:
                    event = self._event(kind, _Bytes(data), transaction)
            except (struct.error, ValueError, LookupError) as problem:
                raise DamagedMessage(kind, repr(problem)) from None
            if event is not None:
                yield event

    def _relation(self, data: _Bytes) -> None:
        (oid,) = data.take(_OID)
        schema, name = data.text() or "pg_catalog", data.text()
        identity, count = data.take(_RELATION_END)
        columns: list[Column] = []
        for _ in range(count):
            flags = data.char()
            column = data.text()
            kind, _modifier = data.take(_COLUMN_END)
            columns.append(Column(column, kind, flags == "\x01"))
        self._relations[oid] = Relation(oid, schema, name, identity.decode(), tuple(columns))

    def _event(self, kind: str, data: _Bytes, transaction: Transaction) -> Event:
        if kind == "M":
            data.take(_MESSAGE)
            prefix = data.text()
            (length,) = data.take(_INT32)
            if not 0 <= length <= len(data.data) - data.at:
                raise IndexError(length)
            return Event("M", transaction, prefix=prefix, content=data.data[data.at : data.at + length])
        if kind == "T":
            count, _options = data.take(_TRUNCATE)
            relations = tuple(self._relations[data.take(_OID)[0]] for _ in range(count))
            return Event("T", transaction, truncated=relations)
        if kind not in ("I", "U", "D"):
            raise UnknownMessage(kind, format_lsn(transaction.commit))
        (oid,) = data.take(_OID)
        event = Event(kind, transaction, self._relations[oid])
        mark = data.char()
        if mark in ("K", "O"):
            event.old, event.full = data.tuple(), mark == "O"
            mark = data.char() if kind == "U" else ""
        if mark == "N":
            event.new = data.tuple()
        return event


def format_lsn(lsn: int) -> str:
    """A position in the log as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """The inverse of `format_lsn`."""
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


@dataclass(frozen=True, slots=True)
class Visible:
    """A snapshot of the database: which transactions it has seen. Numbers are those of `pg_current_snapshot()`."""

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Visible:
        """A snapshot from its text, `xmin:xmax:running,...`."""
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(int(xid) for xid in running.split(",") if xid))

    def has(self, xid: int) -> bool:
        """Whether it has seen a transaction of the stream, of whose number the stream has the last 32 bits only."""
        whole = (self.xmax & ~0xFFFFFFFF) | xid
        if whole - self.xmax > 1 << 31:
            whole -= 1 << 32
        elif self.xmax - whole > 1 << 31:
            whole += 1 << 32
        return whole < self.xmin or (whole < self.xmax and whole not in self.running)

"""The progress of a snapshot: which keys of each table were read.

Promises: plain values that are part of ranges and checkpoints; keys are compared as the database compares them.
Does not know: connections.

A table is read in chunks of its key. The chunk that is being read is written to the log, as a message in a transaction
that sees exactly the transactions of its snapshot:

    changes of a key before its chunk's transaction are in the chunk if visible in its snapshot, else emitted after it
    changes after it are emitted

So reading can start anywhere, no database snapshot stays open, and a replay reads the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a table: keys after `lower` up to `upper`; None means no bound. `xid`: the transaction that wrote
    it."""

    table: str
    xid: int
    lower: Key | None
    upper: Key | None

    def to_json(self) -> list[Any]:
        """Return the chunk as a JSON value."""
        return [self.table, self.xid, self.lower, self.upper]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Chunk:
        """Return the inverse of `to_json`."""
        lower, upper = (None if bound is None else tuple(bound) for bound in data[2:])
        return cls(data[0], data[1], lower, upper)


@dataclass(frozen=True, slots=True)
class Progress:
    """A position in the log, and the last key that was read of each table, None if all were. Other tables are not
    begun."""

    lsn: int
    read: Mapping[str, Key | None]

    def complete(self, tables: Sequence[str]) -> bool:
        """Whether all tables are read completely."""
        return all(table in self.read and self.read[table] is None for table in tables)

    def after(self, chunk: Chunk) -> Progress:
        """Return the progress after one more chunk."""
        return Progress(self.lsn, {**self.read, chunk.table: chunk.upper})

    def at(self, lsn: int) -> Progress:
        """Return the progress at a later position of the log."""
        return Progress(lsn, self.read)

    def to_json(self) -> dict[str, Any]:
        """Return the progress as a JSON value."""
        return {
            "lsn": self.lsn,
            "read": {table: None if key is None else list(key) for table, key in self.read.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Progress:
        """Return the inverse of `to_json`."""
        return cls(data["lsn"], {table: None if key is None else tuple(key) for table, key in data["read"].items()})

"""Reads ranges of the log: changes, and the chunks of a snapshot among them.

Promises: the same range gives the same records. Each row comes once from the snapshot, then its changes, in order.
Does not know: how ranges are planned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from millstream.connector.source import Records, SourceReader, SplitRange
from millstream.connectors.jdbc.cdc.changes import Change, ChangeDeserializer, Reading, snapshot_changes
from millstream.connectors.jdbc.cdc.pgoutput import Decoder, Event, Visible
from millstream.connectors.jdbc.cdc.progress import Chunk, Key, Progress
from millstream.connectors.jdbc.cdc.slot import Slot, SlotMovedOn
from millstream.connectors.jdbc.cdc.tables import Table
from millstream.connectors.jdbc.driver import Session
from millstream.errors import ExternalError, UserError


class Truncated(UserError):
    """A captured table was truncated, which cannot be emitted as deletions of rows."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"the table {table} was truncated, which does not name the deleted rows",
            hint="use DELETE, or let the source ignore it: on_truncate('ignore')",
        )


class ChunkMissing(ExternalError):
    """The log does not have a planned chunk of the snapshot."""

    hint = "the slot or the server's log was changed by hand; start a new job with a snapshot"

    def __init__(self, table: str) -> None:
        super().__init__(f"the log has no chunk of {table} at the planned position")


@dataclass(frozen=True, slots=True)
class _Part:
    """One side of a change that a key decides about."""

    op: str
    event: Event
    key: Key


class ChangeReader(SourceReader):
    """Reads changes of a slot."""

    def __init__(
        self,
        session: Session,
        slot: Slot,
        prefix: str,
        tables: Iterable[Table],
        deserializer: ChangeDeserializer,
        *,
        ignore_truncate: bool,
        block_records: int,
    ) -> None:
        self._session, self._slot, self._prefix = session, slot, prefix
        self._tables = {table.id: table for table in tables}
        self._deserializer = deserializer
        self._ignore_truncate = ignore_truncate
        self._block = max(block_records, 1)
        self._readings: dict[str, Reading] = {}

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the records of a range of the log."""
        start, end = Progress.from_json(part.start), Progress.from_json(part.end["to"])
        chunk = Chunk.from_json(part.end["chunk"]) if part.end["chunk"] is not None else None
        confirmed = self._slot.confirmed()
        if confirmed > start.lsn:
            raise SlotMovedOn(part.split, start.lsn, confirmed)
        events = Decoder().events(self._slot.messages(end.lsn), start.lsn, end.lsn)
        changes: Iterator[Change]
        if start.complete(list(self._tables)):
            changes = (change for event in events for change in self._plain(event))
        else:
            known = {*start.read, *([chunk.table] if chunk is not None else [])}
            changes = self._with_chunk([event for event in events if _matters(event, known)], start, chunk)
        values: list[Any] = []
        times: list[int] = []
        for change in changes:
            made = list(self._deserializer.deserialize(change))
            values += made
            times += [change.at] * len(made)
            if len(values) >= self._block:
                yield Records(values, times)
                values, times = [], []
        if values:
            yield Records(values, times)

    def _plain(self, event: Event) -> list[Change]:
        """The change of an event when all tables are read."""
        reading = self._reading(event)
        if reading is None:
            return []
        return [reading.change({"I": "c", "U": "u", "D": "d"}[event.op], event)]

    def _reading(self, event: Event) -> Reading | None:
        """How to read the event's row; None for what is no change of a captured table."""
        if event.op == "T":
            for emptied in event.truncated:
                if emptied.table in self._tables and not self._ignore_truncate:
                    raise Truncated(emptied.table)
        relation = event.relation
        if relation is None or relation.table not in self._tables:
            return None
        known = self._readings.get(relation.table)
        if known is None or known.relation != relation:
            known = self._readings[relation.table] = Reading(self._tables[relation.table], relation)
        return known

    # ---------------------------------------------------------------------------------------- while tables are read

    def _with_chunk(self, events: list[Event], start: Progress, chunk: Chunk | None) -> Iterator[Change]:
        """The changes of keys that are read, and the chunk where its transaction is."""
        parts = [self._parts(event) for event in events]
        sides = [side for each in parts for side in each]
        progress, late = start, list[_Part]()
        within = self._decided(sides, start.read)
        after = self._decided(sides, start.after(chunk).read) if chunk is not None else within
        seen: Visible | None = None
        where = self._place(events, chunk)
        if chunk is not None:
            seen = Visible.parse(json.loads(events[where].content)["snapshot"])
        for place, event in enumerate(events):
            if chunk is not None and place == where:
                rows = json.loads(event.content)["rows"]
                at = event.transaction
                yield from snapshot_changes(self._tables[chunk.table], rows, at.at, at.commit)
                yield from (self._change([side]) for side in late)
                progress = start.after(chunk)
                continue
            counted = after if progress is not start else within
            sent = [side for side in parts[place] if (self._table(side), side.key) in counted]
            if sent:
                yield self._change(sent)
            if seen is not None and progress is start and not seen.has(event.transaction.xid):
                late += [s for s in parts[place] if s not in sent and (self._table(s), s.key) in after]

    def _place(self, events: list[Event], chunk: Chunk | None) -> int:
        if chunk is None:
            return -1
        for place, event in enumerate(events):
            if event.op == "M" and event.prefix == self._prefix and event.transaction.xid == chunk.xid & 0xFFFFFFFF:
                return place
        raise ChunkMissing(chunk.table)

    @staticmethod
    def _table(side: _Part) -> str:
        assert side.event.relation is not None
        return side.event.relation.table

    def _parts(self, event: Event) -> list[_Part]:
        """What an event does to which keys: an update that changes the key takes one away and adds another."""
        reading = self._reading(event)
        if reading is None:
            return []
        if event.op == "I":
            return [_Part("c", event, reading.key(event.new or []))]
        if event.op == "D":
            return [_Part("d", event, reading.key(event.old or []))]
        new = reading.key(event.new or [])
        old = new if event.old is None else reading.key(event.old)
        if old == new or not reading.table.key:
            return [_Part("u", event, new)]
        gone = replace(event, op="D", new=None)
        come = replace(event, op="I", old=None, full=False)
        return [_Part("d", gone, old), _Part("c", come, new)]

    def _change(self, sent: list[_Part]) -> Change:
        side = sent[0]
        reading = self._reading(side.event)
        assert reading is not None
        if len(sent) == 2:  # both keys are read: it is one change
            whole = replace(sent[0].event, op="U", new=sent[1].event.new)
            return reading.change("u", whole)
        return reading.change(side.op, side.event)

    def _decided(self, sides: list[_Part], read: Any) -> set[tuple[str, Key]]:
        """Which keys are read already, asked of the database: it alone knows how its texts are ordered."""
        keys: dict[str, set[Key]] = {}
        for side in sides:
            keys.setdefault(self._table(side), set()).add(side.key)
        found: set[tuple[str, Key]] = set()
        for name, wanted in keys.items():
            if name not in read:
                continue
            bound = read[name]
            found |= {(name, key) for key in (wanted if bound is None else self._up_to(name, list(wanted), bound))}
        return found

    def _up_to(self, name: str, keys: list[Key], bound: Key) -> list[Key]:
        table = self._tables[name]
        places = [f"k{number}" for number in range(len(table.key))]
        listed = ", ".join("%s::text[]" for _ in places)
        columns = [[key[number] for key in keys] for number in range(len(places))]
        sql = (
            f"SELECT {', '.join(places)} FROM unnest({listed}) AS asked ({', '.join(places)}) "
            f"WHERE {table.bound(places)} <= {table.bound(['%s'] * len(places))}"
        )
        return [tuple(row) for row in self._session.query("cannot compare keys", sql, [*columns, *bound])]

    def close(self) -> None:
        """Return the connection to the pool of this process."""
        self._session.close()


def _matters(event: Event, tables: set[str]) -> bool:
    """Whether an event can have to do with tables that are read, or being read: others are not kept in memory."""
    return event.relation is None or event.relation.table in tables

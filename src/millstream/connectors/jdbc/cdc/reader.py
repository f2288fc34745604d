"""Reads ranges of the log: changes, and the chunks of a snapshot among them.

Promises: the same range has the same records. Each row is emitted once from the snapshot, then its changes, in order.
Does not know: how ranges are planned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from millstream.connector.source import SplitRange
from millstream.connectors.jdbc.cdc.changes import Change, ChangeDeserializer, RowConverter, snapshot_changes
from millstream.connectors.jdbc.cdc.pgoutput import DatabaseSnapshot, Decoder, Event
from millstream.connectors.jdbc.cdc.progress import Chunk, Key, Progress
from millstream.connectors.jdbc.cdc.reading import LogReader, Truncated
from millstream.connectors.jdbc.cdc.slot import Slot, SlotAdvanced
from millstream.connectors.jdbc.cdc.tables import Table
from millstream.connectors.jdbc.driver import Session
from millstream.errors import ExternalError


class ChunkMissing(ExternalError):
    """The log does not have a planned chunk of the snapshot."""

    hint = "the slot or the server's log was changed manually; start a new job with a snapshot"

    def __init__(self, table: str) -> None:
        super().__init__(f"the log has no chunk of {table} at the planned position")


@dataclass(frozen=True, slots=True)
class _KeyChange:
    """The change of one key: an event, or one half of an update that changes the key."""

    op: str
    event: Event
    key: Key


class ChangeReader(LogReader[Key]):
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
        lenient: bool = False,
    ) -> None:
        super().__init__(deserializer, block_records)
        self._session, self._slot, self._prefix = session, slot, prefix
        self._tables = {table.id: table for table in tables}
        self._ignore_truncate, self._lenient = ignore_truncate, lenient
        self._converters: dict[str, RowConverter] = {}

    def _changes(self, part: SplitRange) -> Iterator[Change]:
        start, end = Progress.from_json(part.start), Progress.from_json(part.end["to"])
        chunk = Chunk.from_json(part.end["chunk"]) if part.end["chunk"] is not None else None
        confirmed = self._slot.confirmed()
        if confirmed > start.lsn:
            raise SlotAdvanced(part.split, start.lsn, confirmed)
        events = Decoder().events(self._slot.messages(end.lsn), start.lsn, end.lsn)
        if start.complete(list(self._tables)):
            return (change for event in events for change in self._plain(event))
        tables_begun = {*start.read, *([chunk.table] if chunk is not None else [])}
        return self._with_chunk([event for event in events if _is_relevant(event, tables_begun)], start, chunk)

    def _plain(self, event: Event) -> list[Change]:
        """Return the change of an event when the snapshot is complete."""
        converter = self._converter(event)
        if converter is None:
            return []
        return [converter.change({"I": "c", "U": "u", "D": "d"}[event.op], event)]

    def _converter(self, event: Event) -> RowConverter | None:
        """Return the converter of the event's row; None if it is not a change of a captured table."""
        if event.op == "T":
            for truncated_relation in event.truncated:
                if truncated_relation.table in self._tables and not self._ignore_truncate:
                    raise Truncated(truncated_relation.table)
        relation = event.relation
        if relation is None or relation.table not in self._tables:
            return None
        converter = self._converters.get(relation.table)
        if converter is None or converter.relation != relation:
            converter = self._converters[relation.table] = RowConverter(
                self._tables[relation.table], relation, lenient=self._lenient
            )
        return converter

    # ------------------------------------------------------------------------------------------ during the snapshot

    def _with_chunk(self, events: list[Event], start: Progress, chunk: Chunk | None) -> Iterator[Change]:
        """Yield the changes of keys that were read, and the chunk at the position of its transaction."""
        parts = [self._key_changes(event) for event in events]
        key_changes = [key_change for event_changes in parts for key_change in event_changes]
        progress, after_chunk = start, list[_KeyChange]()
        keys = [(self._table(key_change), key_change.key) for key_change in key_changes]
        keys_before = self._keys_read(keys, start.read)
        keys_after = self._keys_read(keys, start.after(chunk).read) if chunk is not None else keys_before
        snapshot: DatabaseSnapshot | None = None
        chunk_index = self._find_chunk(events, chunk)
        if chunk is not None:
            snapshot = DatabaseSnapshot.parse(json.loads(events[chunk_index].content)["snapshot"])
        for event_index, event in enumerate(events):
            if chunk is not None and event_index == chunk_index:
                rows = json.loads(event.content)["rows"]
                transaction = event.transaction
                yield from snapshot_changes(self._tables[chunk.table], rows, transaction.at, transaction.commit)
                yield from (self._change([key_change]) for key_change in after_chunk)
                progress = start.after(chunk)
                continue
            keys_read = keys_after if progress is not start else keys_before
            emitted = [
                key_change
                for key_change in parts[event_index]
                if (self._table(key_change), key_change.key) in keys_read
            ]
            if emitted:
                yield self._change(emitted)
            if snapshot is not None and progress is start and not snapshot.contains(event.transaction.xid):
                after_chunk += [
                    change
                    for change in parts[event_index]
                    if change not in emitted and (self._table(change), change.key) in keys_after
                ]

    def _find_chunk(self, events: list[Event], chunk: Chunk | None) -> int:
        if chunk is None:
            return -1
        for event_index, event in enumerate(events):
            if event.op == "M" and event.prefix == self._prefix and event.transaction.xid == chunk.xid & 0xFFFFFFFF:
                return event_index
        raise ChunkMissing(chunk.table)

    @staticmethod
    def _table(side: _KeyChange) -> str:
        assert side.event.relation is not None
        return side.event.relation.table

    def _key_changes(self, event: Event) -> list[_KeyChange]:
        """Return the changes of keys of an event: an update that changes the key is a deletion and an insertion."""
        converter = self._converter(event)
        if converter is None:
            return []
        if event.op == "I":
            return [_KeyChange("c", event, converter.key(event.new or []))]
        if event.op == "D":
            return [_KeyChange("d", event, converter.key(event.old or []))]
        new = converter.key(event.new or [])
        old = new if event.old is None else converter.key(event.old)
        if old == new or not converter.table.key:
            return [_KeyChange("u", event, new)]
        deletion = replace(event, op="D", new=None)
        insertion = replace(event, op="I", old=None, full=False)
        return [_KeyChange("d", deletion, old), _KeyChange("c", insertion, new)]

    def _change(self, key_changes: list[_KeyChange]) -> Change:
        first = key_changes[0]
        converter = self._converter(first.event)
        assert converter is not None
        if len(key_changes) == 2:  # both keys were read: it is one update
            update = replace(key_changes[0].event, op="U", new=key_changes[1].event.new)
            return converter.change("u", update)
        return converter.change(first.op, first.event)

    def _up_to(self, name: str, keys: list[Key], bound: Key) -> list[Key]:
        table = self._tables[name]
        names = [f"k{number}" for number in range(len(table.key))]
        arrays = ", ".join("%s::text[]" for _ in names)
        columns = [[key[number] for key in keys] for number in range(len(names))]
        sql = (
            f"SELECT {', '.join(names)} FROM unnest({arrays}) AS asked ({', '.join(names)}) "
            f"WHERE {table.bound(names)} <= {table.bound(['%s'] * len(names))}"
        )
        return [tuple(row) for row in self._session.query("cannot compare keys", sql, [*columns, *bound])]

    def close(self) -> None:
        """Return the connection to the pool of this process."""
        self._session.close()


def _is_relevant(event: Event, tables: set[str]) -> bool:
    """Return whether an event may concern a table of the snapshot; other events are not kept in memory."""
    return event.relation is None or event.relation.table in tables

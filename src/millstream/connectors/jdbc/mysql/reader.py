"""Reads ranges of MySQL's binary log: changes, and the chunks of a snapshot after them.

Promises: the same range has the same records. Each row is emitted once from the snapshot, then its changes, in order.
Does not know: how ranges are planned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from millstream.connector.source import SplitRange
from millstream.connectors.jdbc.cdc.changes import Change, ChangeDeserializer, SchemaChanged, snapshot_changes
from millstream.connectors.jdbc.cdc.progress import Chunk, Key, Progress
from millstream.connectors.jdbc.cdc.reading import LogReader, Truncated
from millstream.connectors.jdbc.mysql.binlog import Event, offset_of
from millstream.connectors.jdbc.mysql.driver import MysqlSession
from millstream.connectors.jdbc.mysql.enumerator import unpack_rows
from millstream.connectors.jdbc.mysql.log import BinaryLog
from millstream.connectors.jdbc.mysql.row_mapping import RowMapping
from millstream.connectors.jdbc.mysql.tables import (
    MysqlTable,
    ReadOptions,
    after,
    bound_parameters,
    describe_table,
)
from millstream.errors import UserError

Values = tuple[Any, ...]

_OPS = {"I": "c", "U": "u", "D": "d"}
_KEYS_IN_A_QUERY = 500
_TRUNCATE = re.compile(r"(?:/\*.*?\*/\s*)*TRUNCATE\s+(?:TABLE\s+)?(?:`?([^`.\s;]+)`?\s*\.\s*)?`?([^`.\s;]+)`?", re.I)


@dataclass(frozen=True, slots=True)
class _KeyChange:
    """The change of one key: an event, or one half of an update that changes the key."""

    table: str
    key: Values
    old: Sequence[Any] | None
    new: Sequence[Any] | None
    event: Event


class MysqlReader(LogReader[Values]):
    """Reads ranges of one server's log."""

    def __init__(
        self,
        session: MysqlSession,
        log: BinaryLog,
        tables: Iterable[MysqlTable],
        deserializer: ChangeDeserializer,
        *,
        ignore_truncate: bool,
        block_records: int,
        earlier: Sequence[MysqlTable] | None = None,
    ) -> None:
        super().__init__(deserializer, block_records)
        self._session, self._log, self._earlier = session, log, earlier
        self._tables = {table.id: table for table in tables}
        self._ignore_truncate = ignore_truncate
        self._mappings: dict[str, tuple[Any, RowMapping]] = {}

    def _changes(self, part: SplitRange) -> Iterator[Change]:
        start, end = Progress.from_json(part.start), Progress.from_json(part.end["to"])
        chunk = Chunk.from_json(part.end["chunk"]) if part.end["chunk"] is not None else None
        self._log.check_available(start.lsn)
        events = self._log.events(start.lsn, end.lsn) if start.lsn < end.lsn else iter(())
        if start.complete(list(self._tables)):
            for event in events:
                if (mapping := self._mapping(event)) is not None:
                    old, new = mapping.values(event.old), mapping.values(event.new)
                    yield _change(mapping.table, _OPS[event.op], old, new, event)
            return
        yield from self._with_chunk(events, start, chunk, part)

    def _mapping(self, event: Event) -> RowMapping | None:
        """Return the mapping of the event's row; None if it is not a change of a captured table."""
        if event.op == "S":
            truncated = _TRUNCATE.match(event.statement)
            name = f"{truncated[1] or event.schema}.{truncated[2]}" if truncated else ""
            if name in self._tables and not self._ignore_truncate:
                raise Truncated(name)
        if event.table is None:
            return None
        table = self._tables.get(f"{event.table.schema}.{event.table.table}")
        if table is None:
            return None
        logged, mapping = self._mappings.get(table.id, (None, None))
        if mapping is None or logged != event.table:
            earlier = None if self._earlier is None else [known for known in self._earlier if known.id == table.id]
            mapping = RowMapping(table, event.table, lambda: self._describe(table), earlier)
            self._mappings[table.id] = event.table, mapping
        return mapping

    def _describe(self, table: MysqlTable) -> MysqlTable | None:
        try:
            return describe_table(
                self._session, table.schema, table.name, ReadOptions(key_columns=((table.id, table.key[0]),))
            )
        except UserError as problem:
            raise SchemaChanged(table.id, str(problem)) from problem

    # ------------------------------------------------------------------------------------------ during the snapshot

    def _with_chunk(
        self, events: Iterable[Event], start: Progress, chunk: Chunk | None, part: SplitRange
    ) -> Iterator[Change]:
        """Yield the changes of keys that were read, then the rows of the chunk, as of the end of the range."""
        begun = {*start.read, *([chunk.table] if chunk is not None else [])}
        parts = [parts for event in events if (parts := self._key_changes(event, begun))]
        keys = [(change.table, change.key) for changes in parts for change in changes]
        keys_before = self._keys_read(keys, start.read)
        keys_after = self._keys_read(keys, start.after(chunk).read) if chunk is not None else keys_before
        folded: list[_KeyChange] = []
        for changes in parts:
            emitted = [change for change in changes if (change.table, change.key) in keys_before]
            if emitted:
                yield self._combine(emitted)
            folded += [
                change for change in changes if change not in emitted and (change.table, change.key) in keys_after
            ]
        if chunk is not None:
            table = self._tables[chunk.table]
            rows = unpack_rows(part.end["rows"])
            read = snapshot_changes(table, rows, 0, offset_of(start.lsn))
            yield from read if part.end["exact"] else self._fold(table, rows, read, folded)

    def _fold(
        self, table: MysqlTable, rows: list[list[str | None]], changes: list[Change], folded: list[_KeyChange]
    ) -> Iterator[Change]:
        """Apply the changes of a range to the rows of its chunk."""
        by_key = {
            tuple(column.type.value(row[column.index]) for column in table.key_columns): change
            for row, change in zip(rows, changes, strict=True)
        }
        for key_change in folded:
            by_key.pop(key_change.key, None)
            if key_change.new is not None:
                mapping = self._mapping(key_change.event)
                assert mapping is not None
                after_change = mapping.values(key_change.new)
                by_key[key_change.key] = Change(table, "r", None, after_change, False, 0, key_change.event.end)
        yield from by_key.values()

    def _key_changes(self, event: Event, begun: set[str]) -> list[_KeyChange]:
        """Return the changes of keys of an event: an update that changes the key is a deletion and an insertion."""
        mapping = self._mapping(event)
        if mapping is None or mapping.table.id not in begun:
            return []
        table = mapping.table.id
        old_key = None if event.old is None else mapping.key(event.old)
        new_key = None if event.new is None else mapping.key(event.new)
        if old_key is not None and new_key is not None and old_key != new_key:
            deletion = _KeyChange(table, old_key, event.old, None, event)
            return [deletion, _KeyChange(table, new_key, None, event.new, event)]
        return [_KeyChange(table, new_key or old_key or (), event.old, event.new, event)]

    def _combine(self, changes: list[_KeyChange]) -> Change:
        """Return the change of an event, or of the half of it whose key was read."""
        event = changes[0].event
        mapping = self._mapping(event)
        assert mapping is not None
        old, new = changes[0].old, changes[-1].new
        op = "c" if old is None else "d" if new is None else "u"
        return _change(mapping.table, op, mapping.values(old), mapping.values(new), event)

    def _up_to(self, table: str, keys: list[Values], bound: Key) -> list[Values]:
        columns = self._tables[table].key_columns
        if not any(column.is_text for column in columns):
            limit = tuple(column.type.value(text) for column, text in zip(columns, bound, strict=True))
            return [key for key in keys if key <= limit]
        # only the database knows the order of texts
        names = [f"k{number}" for number in range(len(columns))]
        key_columns = [column.comparable(name) for column, name in zip(columns, names, strict=True)]
        parameters = [column.parameter(text) for column, text in zip(columns, bound, strict=True)]
        matching_keys: list[Values] = []
        for first in range(0, len(keys), _KEYS_IN_A_QUERY):
            block = list(islice(enumerate(keys), first, first + _KEYS_IN_A_QUERY))
            selects = " UNION ALL ".join(
                f"SELECT {number} AS n, " + ", ".join(f"%s AS {name}" for name in names) for number, _ in block
            )
            query = f"SELECT n FROM ({selects}) AS searched WHERE NOT {after(key_columns, ['%s'] * len(names))}"
            values = [value for _, key in block for value in key]
            rows = self._session.query("cannot compare keys", query, [*values, *bound_parameters(parameters)])
            matching_keys += [keys[int(number)] for (number,) in rows]
        return matching_keys

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


def _change(table: MysqlTable, op: str, old: Any, new: Any, event: Event) -> Change:
    return Change(table, op, old, new, True, event.at, offset_of(event.end))

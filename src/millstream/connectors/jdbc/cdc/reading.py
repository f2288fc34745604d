"""Base of the readers of CDC sources: converts ranges of a log to records.

Promises: records come in blocks, with the times of their changes. While a table is being read, only changes of keys
that were already read are emitted; the others are part of a later chunk.
Does not know: databases. `_changes` and `_up_to` do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from millstream.connector.source import Records, SourceReader, SplitRange
from millstream.connectors.jdbc.cdc.changes import Change, ChangeDeserializer
from millstream.connectors.jdbc.cdc.progress import Key
from millstream.errors import UserError

KeyT = TypeVar("KeyT")


class Truncated(UserError):
    """A captured table was truncated, which cannot be emitted as deletions of rows."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"the table {table} was truncated, which does not name the deleted rows",
            hint="use DELETE, or let the source ignore it: on_truncate('ignore')",
        )


class LogReader(SourceReader, Generic[KeyT]):
    """Reads ranges of one log."""

    def __init__(self, deserializer: ChangeDeserializer, block_records: int) -> None:
        self._deserializer = deserializer
        self._block = max(block_records, 1)

    @abstractmethod
    def _changes(self, part: SplitRange) -> Iterator[Change]:
        """Yield the changes of a range."""

    @abstractmethod
    def _up_to(self, table: str, keys: list[KeyT], bound: Key) -> list[KeyT]:
        """Return the keys that are at or before a bound."""

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the records of a range of the log."""
        values: list[Any] = []
        times: list[int] = []
        for change in self._changes(part):
            records = list(self._deserializer.deserialize(change))
            values += records
            times += [change.at] * len(records)
            if len(values) >= self._block:
                yield Records(values, times)
                values, times = [], []
        if values:
            yield Records(values, times)

    def _keys_read(self, keys: Iterable[tuple[str, KeyT]], read: Mapping[str, Key | None]) -> set[tuple[str, KeyT]]:
        """Return the keys that were already read, for each table."""
        keys_by_table: dict[str, set[KeyT]] = {}
        for table, key in keys:
            keys_by_table.setdefault(table, set()).add(key)
        keys_of_tables: set[tuple[str, KeyT]] = set()
        for table, table_keys in keys_by_table.items():
            if table not in read:
                continue
            bound = read[table]
            up_to_bound = table_keys if bound is None else self._up_to(table, list(table_keys), bound)
            keys_of_tables |= {(table, key) for key in up_to_bound}
        return keys_of_tables

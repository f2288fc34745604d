"""Base of the enumerators of CDC sources: the position in a log, and the progress of a snapshot.

Promises: ranges follow one another without gaps; while tables are not read completely, ranges have chunks of them, also
chunks without rows, because the range may have changes of keys that were read before.
Does not know: databases. `_plan_changes` and `_plan_chunk` do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.connectors.jdbc.cdc.captured import CapturedTable
from millstream.connectors.jdbc.cdc.progress import Chunk, Progress

TableT = TypeVar("TableT", bound=CapturedTable)

MAX_CHUNK_ROWS = 50_000  # the maximum number of rows of a chunk


class SnapshotEnumerator(SplitEnumerator, Generic[TableT]):
    """Plans ranges of one log. `stop`: the position at which the source ends; None if it does not end."""

    def __init__(
        self,
        name: str,
        tables: Sequence[TableT],
        *,
        progress: Progress,
        stop: int | None,
        snapshot_only: bool,
        describe: Callable[[], Sequence[TableT]] | None = None,
    ) -> None:
        """`describe` reads the current description of the tables. When it differs from `tables`, nothing more is
        planned."""
        self._name, self._tables = name, tables
        self._describe, self._halted = describe, False
        self._progress = progress
        self._stop = stop
        self._snapshot_only = snapshot_only
        self._lag: int | None = None

    @abstractmethod
    def _plan_changes(self, budget: Budget) -> list[SplitRange]:
        """Plan changes, after all tables were read."""

    @abstractmethod
    def _plan_chunk(self, table: TableT, budget: Budget) -> list[SplitRange]:
        """Plan the next chunk of a table."""

    def _on_moved(self) -> None:
        """Called after the position was moved by `skip`."""

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan the next range of the log, with a chunk of a table while the snapshot is incomplete."""
        if self.finished() or self._name in budget.held or self._halted:
            return []
        table = next((table for table in self._tables if not self._progress.complete([table.id])), None)
        if table is not None and self._tables_have_changed():  # the query of a chunk names the columns
            return []
        before = self._progress
        ranges = self._plan_changes(budget) if table is None else self._plan_chunk(table, budget)
        # checked after the end of the range is known: all of its rows have this description or an earlier one
        if ranges and self._tables_have_changed():
            self._progress = before
            return []
        return ranges

    def _tables_have_changed(self) -> bool:
        self._halted = self._describe is not None and list(self._describe()) != list(self._tables)
        return self._halted

    def _range(
        self, end: int, records: int, chunk: Chunk | None = None, content: Mapping[str, Any] | None = None
    ) -> SplitRange:
        start = self._progress
        progress_after = (start if chunk is None else start.after(chunk)).at(end)
        self._progress = progress_after
        range_end = {"to": progress_after.to_json(), "chunk": None if chunk is None else chunk.to_json()}
        return SplitRange(self._name, start.to_json(), {**range_end, **(content or {})}, records)

    def snapshot(self) -> Any:
        """Return the position and the progress of the snapshot."""
        return {**self._progress.to_json(), "stop": self._stop}

    def skip(self, split_range: SplitRange) -> None:
        """Continue after a range."""
        self._progress = Progress.from_json(split_range.end["to"])
        self._on_moved()

    def splits(self) -> list[str]:
        """Return the log, unless the source is finished."""
        return [] if self.finished() else [self._name]

    def finished(self) -> bool:
        """Return whether the stopping position is reached; False if there is none."""
        if not self._progress.complete([table.id for table in self._tables]):
            return False
        return self._snapshot_only or (self._stop is not None and self._progress.lsn >= self._stop)

    def lag(self) -> int | None:
        """Return the number of unread changes, as of the last plan."""
        return self._lag

"""A source that a test fills while the job runs, on the inline engine.

Promises: records are read in the order in which they were added, and again after a restore; the source ends when it is
closed.
Does not know: jobs in other processes: the records stay in this one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.connector.source import (
    Boundedness,
    Budget,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.types.factory import TypeInformation, Types

_numbers = itertools.count()
_records: dict[str, list[tuple[Any, int | None]]] = {}
_closed: set[str] = set()
_SPLIT = "feed"


@dataclass(frozen=True)
class Feed(Source):
    """A source of records that a test adds. An unpickled copy reads the same records.

    Example:
        feed = Feed.of(("a", 1), ("b", 2))
        env.from_source(feed, WatermarkStrategy.no_watermarks(), "feed").print()
        client = env.execute_async()
        feed.give(("a", 3)).close()

    """

    name: str
    data_type: TypeInformation

    @classmethod
    def of(cls, *values: Any, data_type: TypeInformation | None = None) -> Feed:
        """Create a feed that begins with these values."""
        feed = cls(f"feed-{next(_numbers)}", data_type or Types.PICKLED_BYTE_ARRAY())
        _records[feed.name] = []
        feed.give(*values)
        return feed

    def give(self, *values: Any, timestamps: Iterable[int | None] | None = None) -> Feed:
        """Add records, with one timestamp for each if there are any; returns the feed."""
        times = [None] * len(values) if timestamps is None else list(timestamps)
        _records[self.name].extend(zip(values, times, strict=True))
        return self

    def close(self) -> None:
        """End the source after the records that were added."""
        _closed.add(self.name)

    def type_info(self) -> TypeInformation:
        """Return the type of the records."""
        return self.data_type

    def boundedness(self) -> Boundedness:
        """Return unbounded: only the test knows when the source ends."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    def max_parallelism(self) -> int | None:
        """Return 1: there is one split."""
        return 1

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator that starts at the beginning or at the offset in `state`."""
        return _Enumerator(self.name, int(state or 0))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader."""
        return _Reader(self.name)


class _Enumerator(SplitEnumerator):
    def __init__(self, name: str, offset: int) -> None:
        self._name, self._offset = name, offset

    def plan(self, budget: Budget) -> list[SplitRange]:
        end = min(len(_records[self._name]), self._offset + budget.records)
        if end == self._offset:
            return []
        start, self._offset = self._offset, end
        return [SplitRange(_SPLIT, start, end, end - start)]

    def snapshot(self) -> int:
        return self._offset

    def finished(self) -> bool:
        return self._name in _closed and self._offset == len(_records[self._name])

    def splits(self) -> list[str]:
        return [] if self.finished() else [_SPLIT]

    def skip(self, done: SplitRange) -> None:
        self._offset = int(done.end)

    def lag(self) -> int:
        return len(_records[self._name]) - self._offset


class _Reader(SourceReader):
    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, part: SplitRange) -> Iterator[Records]:
        records = _records[self._name][part.start : part.end]
        has_times = any(time is not None for _, time in records)
        yield Records([value for value, _ in records], [time for _, time in records] if has_times else None)

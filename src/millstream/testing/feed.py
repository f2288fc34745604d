"""A source whose records a test hands in while the job runs, on the inline engine.

Promises: records come in the order they were given, and again after a restore; the source ends when it is closed.
Does not know: jobs in other processes: what is handed in stays in this one."""

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
    """Records by hand. A copy that went through pickle reads the same ones."""

    name: str
    kind: TypeInformation

    @classmethod
    def of(cls, *values: Any, kind: TypeInformation | None = None) -> Feed:
        """A new feed that begins with these values."""
        made = cls(f"feed-{next(_numbers)}", kind or Types.PICKLED_BYTE_ARRAY())
        _records[made.name] = []
        made.give(*values)
        return made

    def give(self, *values: Any, timestamps: Iterable[int | None] | None = None) -> Feed:
        """More records."""
        times = [None] * len(values) if timestamps is None else list(timestamps)
        _records[self.name].extend(zip(values, times, strict=True))
        return self

    def close(self) -> None:
        """No more records will come."""
        _closed.add(self.name)

    def type_info(self) -> TypeInformation:
        """The type it was made with."""
        return self.kind

    def boundedness(self) -> Boundedness:
        """It ends when the test says so."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    def max_parallelism(self) -> int | None:
        """One reader: there is one split."""
        return 1

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """From the beginning, or from a position."""
        return _Enumerator(self.name, int(state or 0))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A new reader."""
        return _Reader(self.name)


class _Enumerator(SplitEnumerator):
    def __init__(self, name: str, at: int) -> None:
        self._name, self._at = name, at

    def plan(self, budget: Budget) -> list[SplitRange]:
        end = min(len(_records[self._name]), self._at + budget.records)
        if end == self._at:
            return []
        start, self._at = self._at, end
        return [SplitRange(_SPLIT, start, end, end - start)]

    def snapshot(self) -> int:
        return self._at

    def finished(self) -> bool:
        return self._name in _closed and self._at == len(_records[self._name])

    def splits(self) -> list[str]:
        return [] if self.finished() else [_SPLIT]

    def skip(self, done: SplitRange) -> None:
        self._at = int(done.end)

    def lag(self) -> int:
        return len(_records[self._name]) - self._at


class _Reader(SourceReader):
    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, part: SplitRange) -> Iterator[Records]:
        found = _records[self._name][part.start : part.end]
        timed = any(time is not None for _, time in found)
        yield Records([value for value, _ in found], [time for _, time in found] if timed else None)

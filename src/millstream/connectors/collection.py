"""A collection of the program as a source.

Promises: the elements in their order, once; one split, so one reader.
Does not know: types; the environment decides what the elements are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.source import (
    Budget,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.types.factory import TypeInformation

_SPLIT = "collection"


@dataclass(frozen=True)
class CollectionSource(Source):
    """The elements travel with the program."""

    elements: Sequence[Any]
    kind: TypeInformation

    def __deepcopy__(self, memo: dict[int, Any]) -> CollectionSource:
        """Elements are only read: every subtask may share them."""
        return self

    def type_info(self) -> TypeInformation:
        """The declared type."""
        return self.kind

    def max_parallelism(self) -> int | None:
        """One reader: order counts."""
        return 1

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Positions in the collection."""
        return CollectionEnumerator(len(self.elements), 0 if state is None else state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader over the elements."""
        return CollectionReader(self.elements, context.block_records)


class CollectionEnumerator(SplitEnumerator):
    """Counts up to the number of elements."""

    def __init__(self, count: int, position: int) -> None:
        self._count, self._position = count, position

    def plan(self, budget: Budget) -> list[SplitRange]:
        """The next elements."""
        start, end = self._position, min(self._count, self._position + max(budget.records, 1))
        self._position = end
        return [SplitRange(_SPLIT, start, end, end - start)] if end > start else []

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """The position says it all."""
        return self.plan(budget)

    def snapshot(self) -> int:
        """How many elements were read."""
        return self._position

    def finished(self) -> bool:
        """Whether all were."""
        return self._position >= self._count

    def splits(self) -> list[str]:
        """The one split, until it is read."""
        return [] if self.finished() else [_SPLIT]

    def skip(self, done: SplitRange) -> None:
        """Move on."""
        self._position = done.end

    def lag(self) -> int:
        """What is left."""
        return self._count - self._position


class CollectionReader(SourceReader):
    """Slices of the collection."""

    def __init__(self, elements: Sequence[Any], block: int) -> None:
        self._elements, self._block = elements, block

    def read(self, part: SplitRange) -> Iterator[Records]:
        """The elements of the range."""
        for start in range(part.start, part.end, self._block):
            yield Records(self._elements[start : min(part.end, start + self._block)])

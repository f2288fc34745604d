"""A source of the elements of a Python collection.

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
from millstream.types.copies import copy_value
from millstream.types.factory import TypeInformation

_SPLIT = "collection"


@dataclass(frozen=True)
class CollectionSource(Source):
    """Emits the elements of a collection, which are part of the program."""

    elements: Sequence[Any]
    element_type: TypeInformation

    def __deepcopy__(self, memo: dict[int, Any]) -> CollectionSource:
        """Return the source itself: elements are only read, so all subtasks share them."""
        return self

    def type_info(self) -> TypeInformation:
        """Return the declared type."""
        return self.element_type

    def max_parallelism(self) -> int | None:
        """Return 1: a single reader keeps the order of the records."""
        return 1

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator of offsets in the collection."""
        return CollectionEnumerator(len(self.elements), 0 if state is None else state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of the elements."""
        return CollectionReader(self.elements, context.block_records)


class CollectionEnumerator(SplitEnumerator):
    """Plans ranges of offsets."""

    def __init__(self, count: int, position: int) -> None:
        self._count, self._position = count, position

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan the next elements."""
        start, end = self._position, min(self._count, self._position + max(budget.records, 1))
        self._position = end
        return [SplitRange(_SPLIT, start, end, end - start)] if end > start else []

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan again from the restored position, which is the whole state."""
        return self.plan(budget)

    def snapshot(self) -> int:
        """Return the offset of the next element."""
        return self._position

    def finished(self) -> bool:
        """Whether all elements were planned."""
        return self._position >= self._count

    def splits(self) -> list[str]:
        """Return the only split until it is read."""
        return [] if self.finished() else [_SPLIT]

    def skip(self, split_range: SplitRange) -> None:
        """Continue after the range."""
        self._position = split_range.end

    def lag(self) -> int:
        """Return the number of elements left."""
        return self._count - self._position


class CollectionReader(SourceReader):
    """Reads slices of the collection, as new objects: functions may have changed those of an earlier read."""

    def __init__(self, elements: Sequence[Any], block: int) -> None:
        self._elements, self._block = elements, block

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the elements of the range."""
        for start in range(part.start, part.end, self._block):
            yield Records(list(map(copy_value, self._elements[start : min(part.end, start + self._block)])))

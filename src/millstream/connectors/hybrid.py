"""Hybrid source: bounded sources that are read one after another, then a last one, as in Flink.

Promises: a source begins when the one before it is planned completely; the state names the current source, so that
a restart continues there.
Does not know: what the sources read; where a source begins is decided when it is built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
from millstream.errors import UserError
from millstream.types.factory import TypeInformation


class NotHybrid(UserError):
    """Sources that cannot be combined to a hybrid source."""


class HybridSource(Source):
    """Reads its sources in the order they were added; all but the last must be bounded.

    Example:
        >>> from millstream.datastream.connectors.number_seq import NumberSequenceSource
        >>> builder = HybridSource.builder(NumberSequenceSource(1, 10))
        >>> source = builder.add_source(NumberSequenceSource(11, 20)).build()

    """

    def __init__(self, sources: Sequence[Any]) -> None:
        self._sources: tuple[Any, ...] = tuple(sources)
        for number, source in enumerate(self._sources, 1):
            if not isinstance(source, Source):
                msg = f"{source!r} is not a source"
                raise NotHybrid(msg, hint="build it first: FileSource...build()")
            if number < len(self._sources) and source.boundedness() is not Boundedness.BOUNDED:
                msg = f"source {number} of {len(self._sources)}, {source!r}, is unbounded, so no source can follow it"
                raise NotHybrid(msg, hint="all sources but the last must be bounded")
            if source.type_info() != self._sources[0].type_info():
                msg = f"source {number} has the type {source.type_info()}, the first one {self._sources[0].type_info()}"
                raise NotHybrid(msg, hint="all sources must have records of the same type")

    @staticmethod
    def builder(first_source: Source) -> HybridSourceBuilder:
        """Return a builder whose first source is this one.

        Args:
            first_source: A bounded source.

        """
        return HybridSourceBuilder((first_source,))

    def type_info(self) -> TypeInformation:
        """Return the type of the records, which all sources share."""
        record_type: TypeInformation = self._sources[0].type_info()
        return record_type

    def boundedness(self) -> Boundedness:
        """Return the boundedness of the last source."""
        boundedness: Boundedness = self._sources[-1].boundedness()
        return boundedness

    def max_parallelism(self) -> int | None:
        """Return the lowest maximum of the sources."""
        return min((limit for source in self._sources if (limit := source.max_parallelism()) is not None), default=None)

    def check(self) -> None:
        """Check every source."""
        for source in self._sources:
            source.check()

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create the enumerator of the current source; it creates the next ones."""
        index, inner = (0, None) if state is None else (state["source"], state["state"])
        return HybridEnumerator(self._sources, parallelism, index, inner)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader for ranges of all sources."""
        return HybridReader(self._sources, context)


@dataclass(frozen=True)
class HybridSourceBuilder:
    """Builds a `HybridSource`.

    Example:
        >>> from millstream.datastream.connectors.number_seq import NumberSequenceSource
        >>> builder = HybridSource.builder(NumberSequenceSource(1, 10)).add_source(NumberSequenceSource(11, 20))
        >>> len(builder.sources)
        2

    """

    sources: tuple[Source, ...]

    def add_source(self, source: Source) -> HybridSourceBuilder:
        """Add the source that follows the last one.

        Args:
            source: The source; all but the last one are bounded.

        """
        return HybridSourceBuilder((*self.sources, source))

    def build(self) -> HybridSource:
        """Build the source."""
        return HybridSource(self.sources)


class HybridEnumerator(SplitEnumerator):
    """Plans with the enumerator of the current source. Names of splits begin with the number of their source."""

    def __init__(self, sources: Sequence[Source], parallelism: int, index: int, state: Any) -> None:
        self._sources, self._parallelism = sources, parallelism
        self._index = index
        self._current = sources[index].create_enumerator(parallelism, state)
        self._past: list[SplitEnumerator] = []
        self._retained = 1
        self._move_on()

    def _switch(self) -> None:
        self._past.append(self._current)
        self._index += 1
        self._current = self._sources[self._index].create_enumerator(self._parallelism)
        self._current.retain(self._retained)

    def _move_on(self) -> None:
        """Switch to the next source if the current one is finished, so that watermarks wait for its splits."""
        while self._current.finished() and self._index + 1 < len(self._sources):
            self._switch()

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan the next ranges of the current source."""
        prefix = f"{self._index}:"
        held = frozenset(name.removeprefix(prefix) for name in budget.held if name.startswith(prefix))
        ranges = [replace(part, split=prefix + part.split) for part in self._current.plan(replace(budget, held=held))]
        self._move_on()
        return ranges

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange] | None:
        """Let the current source plan again, if the ranges are of it."""
        prefix = f"{self._index}:"
        if not all(part.split.startswith(prefix) for part in planned):
            return None
        ranges_of_source = [replace(part, split=part.split.removeprefix(prefix)) for part in planned]
        held = frozenset(name.removeprefix(prefix) for name in budget.held if name.startswith(prefix))
        ranges = self._current.plan_again(ranges_of_source, replace(budget, held=held))
        self._move_on()
        return None if ranges is None else [replace(part, split=prefix + part.split) for part in ranges]

    def replayed(self, ranges: Sequence[SplitRange]) -> None:
        """Continue after ranges of the current source, or of a later one."""
        ranges_by_source: dict[int, list[SplitRange]] = {}
        for part in ranges:
            index, split = _source_and_split(part)
            ranges_by_source.setdefault(index, []).append(replace(part, split=split))
        for index in sorted(ranges_by_source):
            while self._index < index:
                self._switch()
            self._current.replayed(ranges_by_source[index])
        self._move_on()

    def skip(self, split_range: SplitRange) -> None:
        """Continue after one range."""
        self.replayed([split_range])

    def snapshot(self) -> dict[str, Any]:
        """Return the number of the current source, and its state."""
        return {"source": self._index, "state": self._current.snapshot()}

    def finished(self) -> bool:
        """Whether the last source is finished."""
        return self._index + 1 == len(self._sources) and self._current.finished()

    def splits(self) -> list[str]:
        """Return the splits of the current source."""
        return [f"{self._index}:{split}" for split in self._current.splits()]

    def retain(self, checkpoints: int) -> None:
        """Pass the number to the enumerators of the current source and of later ones."""
        self._retained = checkpoints
        self._current.retain(checkpoints)

    def acknowledge(self) -> None:
        """Acknowledge all earlier sources once, then the current one."""
        past, self._past = self._past, []
        for enumerator in past:
            enumerator.acknowledge()
            enumerator.close()
        self._current.acknowledge()

    def lag(self) -> int | None:
        """Return the lag of the current source."""
        return self._current.lag()

    def close(self) -> None:
        """Close all enumerators."""
        for enumerator in (*self._past, self._current):
            enumerator.close()


class HybridReader(SourceReader):
    """Reads a range with the reader of its source."""

    def __init__(self, sources: Sequence[Source], context: ReaderContext) -> None:
        self._sources, self._context = sources, context
        self._readers: dict[int, SourceReader] = {}

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the records of a range."""
        index, split = _source_and_split(part)
        if index not in self._readers:
            self._readers[index] = self._sources[index].create_reader(self._context)
        return self._readers[index].read(replace(part, split=split))

    def close(self) -> None:
        """Close the readers."""
        for reader in self._readers.values():
            reader.close()


def _source_and_split(part: SplitRange) -> tuple[int, str]:
    index, _, split = part.split.partition(":")
    return int(index), split

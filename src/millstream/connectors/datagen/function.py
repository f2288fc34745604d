"""Records made by a function of their index, under the names of Flink's data generator.

Promises: the function sees every index from 0 to below the count once per run of its range; results do not depend on
how the indexes are cut, if the function depends on its argument alone.
Does not know: what the function makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.connector.source import ReaderContext, Records, Source, SourceReader, SplitEnumerator, SplitRange
from millstream.connectors.datagen.positions import InvalidGenerator, PositionEnumerator, check_generator
from millstream.types.factory import TypeInformation, Types


@dataclass(frozen=True)
class RateLimiterStrategy:
    """How fast records are made: `records_per_second` over all readers, None for as fast as they are read."""

    records_per_second: float | None = None

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiterStrategy:
        """As many records a second, by the time of the plan; records that could not be read in time wait."""
        check_generator(None, records_per_second, None)
        return RateLimiterStrategy(records_per_second)

    @staticmethod
    def no_op() -> RateLimiterStrategy:
        """No limit."""
        return RateLimiterStrategy()


class DataGeneratorSource(Source):
    """`count` records, the i-th of them `generator_function(i)`. An object with a method `map` is a function too."""

    def __init__(
        self,
        generator_function: Any,
        count: int,
        rate_limiter_strategy: RateLimiterStrategy | None = None,
        type_info: TypeInformation | None = None,
    ) -> None:
        check_generator(count, None, None)
        if not callable(generator_function) and not callable(getattr(generator_function, "map", None)):
            message = f"{generator_function!r} is no function"
            raise InvalidGenerator(message, hint="give a function of the index")
        self._function = generator_function
        self._count = count
        self._rate = None if rate_limiter_strategy is None else rate_limiter_strategy.records_per_second
        self._kind = type_info or Types.PICKLED_BYTE_ARRAY()

    def type_info(self) -> TypeInformation:
        """The declared type."""
        return self._kind

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """One position, read by as many lanes as there are readers."""
        return PositionEnumerator(parallelism, self._count, self._rate, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A caller of the function."""
        function = getattr(self._function, "map", self._function)
        return FunctionReader(function, context.block_records)


class FunctionReader(SourceReader):
    """Calls the function for each index."""

    def __init__(self, function: Callable[[int], Any], block: int) -> None:
        self._function, self._block = function, block

    def read(self, part: SplitRange) -> Iterator[Records]:
        """The results for the indexes of the range."""
        for start in range(part.start, part.end, self._block):
            yield Records(list(map(self._function, range(start, min(part.end, start + self._block)))))

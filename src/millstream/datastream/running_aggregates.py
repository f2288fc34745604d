"""Running aggregates of a keyed stream: sum, min, max, min_by and max_by of a field.

Promises: PyFlink's names; each is a running reduce.
Does not know: how a field is aggregated; keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from millstream.datastream.aggregating import FieldAggregate
from millstream.errors import InvalidArgumentType
from millstream.functions import ReduceFunction

if TYPE_CHECKING:
    from millstream.datastream.data_stream import DataStream


class RunningAggregates(ABC):
    """Running aggregates, by the `reduce` of a keyed stream."""

    @abstractmethod
    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Reduce the records of each key, and emit the current value after every record."""

    class AccumulateType(Enum):
        """The running aggregates."""

        MIN = 1
        MAX = 2
        MIN_BY = 3
        MAX_BY = 4
        SUM = 5

    def _aggregate(self, aggregate: AccumulateType, position: Any) -> DataStream:
        if not isinstance(position, int | str):
            name = aggregate.name.lower()
            msg = f"{name}({position!r}): the field must be an index or a name"
            raise InvalidArgumentType(msg, hint="pass the index of the field as an int, or its name as a str")
        return self.reduce(FieldAggregate(aggregate.name.lower(), position))

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Emit the running sum of a field: the first record of the key, with the sum in this field.

        Args:
            position_to_sum: The index or the name of the field.

        """
        return self._aggregate(self.AccumulateType.SUM, position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """Emit the running minimum of a field: the first record of the key, with the minimum in this field."""
        return self._aggregate(self.AccumulateType.MIN, position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """Emit the running maximum of a field: the first record of the key, with the maximum in this field."""
        return self._aggregate(self.AccumulateType.MAX, position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """Emit the record with the smallest value of a field so far; of equal values, the first record."""
        return self._aggregate(self.AccumulateType.MIN_BY, position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """Emit the record with the largest value of a field so far; of equal values, the first record."""
        return self._aggregate(self.AccumulateType.MAX_BY, position_to_max_by)

"""The running aggregates of a keyed stream: sum, min, max, min_by and max_by of a field.

Promises: PyFlink's names; each is a running reduce.
Does not know: how a field is aggregated; keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from millstream.datastream.aggregating import FieldAggregate
from millstream.errors import UserError
from millstream.functions import ReduceFunction

if TYPE_CHECKING:
    from millstream.datastream.data_stream import DataStream


class RunningAggregates(ABC):
    """Aggregates over what can be reduced by key."""

    @abstractmethod
    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """A running reduce: the new value of the key after every record."""

    class AccumulateType(Enum):
        """The running aggregates."""

        MIN = 1
        MAX = 2
        MIN_BY = 3
        MAX_BY = 4
        SUM = 5

    def _aggregate(self, kind: AccumulateType, position: Any) -> DataStream:
        if not isinstance(position, int | str):
            name = kind.name.lower()
            msg = f"{name}({position!r}) names no field"
            raise UserError(msg, hint="give its position (int) or its name (str)")
        return self.reduce(FieldAggregate(kind.name.lower(), position))

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The running sum of a field."""
        return self._aggregate(self.AccumulateType.SUM, position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The running minimum of a field, in the first record."""
        return self._aggregate(self.AccumulateType.MIN, position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The running maximum of a field, in the first record."""
        return self._aggregate(self.AccumulateType.MAX, position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """The record with the least value of a field so far; the first of equals."""
        return self._aggregate(self.AccumulateType.MIN_BY, position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """The record with the greatest value of a field so far; the first of equals."""
        return self._aggregate(self.AccumulateType.MAX_BY, position_to_max_by)

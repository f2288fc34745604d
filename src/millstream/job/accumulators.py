"""Accumulators: values that a job aggregates while it runs, and returns with its result.

Promises: merging is associative and commutative, so it does not matter which subtask added a value; merging an
accumulator that was just reset changes nothing.
Does not know: epochs; the job merges what each accepted epoch added, so a restart counts nothing twice."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from millstream.errors import UserError

V = TypeVar("V")
R = TypeVar("R")


class AccumulatorsDisagree(UserError):
    """Two accumulators with the same name have different types."""

    def __init__(self, name: str, first: object, second: object) -> None:
        self.name = name
        super().__init__(
            f"accumulator '{name}' is a {type(first).__name__} in one function, and a {type(second).__name__} in "
            "another",
            hint="use different names",
        )


class AccumulatorNameTaken(UserError):
    """A function adds two accumulators with the same name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there already is an accumulator '{name}'", hint="use get_accumulator to continue with it")


class Accumulator(ABC, Generic[V, R]):
    """Aggregates values of type V to a result of type R. Subclasses of users must be picklable.

    Example:
        >>> from millstream.datastream import MapFunction
        >>> class CountRows(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.rows = LongCounter()
        ...         runtime_context.add_accumulator("rows", self.rows)
        ...     def map(self, value):
        ...         self.rows.add(1)
        ...         return value

    """

    @abstractmethod
    def add(self, value: V) -> None:
        """Add a value.

        Args:
            value: The value.

        """

    @abstractmethod
    def get_local_value(self) -> R:
        """Return the result of the values that were added here."""

    @abstractmethod
    def reset_local(self) -> None:
        """Reset to the initial value."""

    @abstractmethod
    def merge(self, other: Accumulator[V, R]) -> None:
        """Merge another accumulator of the same type into this one.

        Args:
            other: The other accumulator, which stays as it is.

        """

    def clone(self) -> Accumulator[V, R]:
        """Return a copy."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_local_value()!r})"


class _Number(Accumulator[Any, Any]):
    start: Any = 0

    def __init__(self, value: Any = None) -> None:
        self._value = self.start if value is None else value

    def get_local_value(self) -> Any:
        """Return the number."""
        return self._value

    def get_local_value_primitive(self) -> Any:
        """Return the number."""
        return self._value

    def reset_local(self) -> None:
        """Reset to the initial value."""
        self._value = self.start

    def merge(self, other: Accumulator[Any, Any]) -> None:
        """Merge the number of another accumulator."""
        self.add(other.get_local_value())


class LongCounter(_Number):
    """A sum of integers.

    Example:
        >>> counter = LongCounter()
        >>> counter.add(3)
        >>> counter.get_local_value()
        3

    """

    def add(self, value: int) -> None:
        """Add to the sum."""
        self._value += value


class IntCounter(LongCounter):
    """A sum of integers.

    Example:
        >>> counter = IntCounter()
        >>> counter.add(3)
        >>> counter.get_local_value()
        3

    """


class DoubleCounter(_Number):
    """A sum of floats.

    Example:
        >>> counter = DoubleCounter()
        >>> counter.add(0.5)
        >>> counter.get_local_value()
        0.5

    """

    start = 0.0

    def add(self, value: float) -> None:
        """Add to the sum."""
        self._value += value


class LongMinimum(_Number):
    """The smallest integer; initially the largest 64-bit integer.

    Example:
        >>> minimum = LongMinimum()
        >>> minimum.add(3)
        >>> minimum.get_local_value()
        3

    """

    start: Any = 2**63 - 1

    def add(self, value: Any) -> None:
        """Keep the smaller one."""
        self._value = min(self._value, value)


class LongMaximum(_Number):
    """The largest integer; initially the smallest 64-bit integer.

    Example:
        >>> maximum = LongMaximum()
        >>> maximum.add(3)
        >>> maximum.get_local_value()
        3

    """

    start: Any = -(2**63)

    def add(self, value: Any) -> None:
        """Keep the larger one."""
        self._value = max(self._value, value)


class IntMinimum(LongMinimum):
    """The smallest integer; initially the largest 32-bit integer.

    Example:
        >>> minimum = IntMinimum()
        >>> minimum.add(3)
        >>> minimum.get_local_value()
        3

    """

    start = 2**31 - 1


class IntMaximum(LongMaximum):
    """The largest integer; initially the smallest 32-bit integer.

    Example:
        >>> maximum = IntMaximum()
        >>> maximum.add(3)
        >>> maximum.get_local_value()
        3

    """

    start = -(2**31)


class DoubleMinimum(LongMinimum):
    """The smallest float; initially infinity.

    Example:
        >>> minimum = DoubleMinimum()
        >>> minimum.add(0.5)
        >>> minimum.get_local_value()
        0.5

    """

    start = float("inf")


class DoubleMaximum(LongMaximum):
    """The largest float; initially minus infinity.

    Example:
        >>> maximum = DoubleMaximum()
        >>> maximum.add(0.5)
        >>> maximum.get_local_value()
        0.5

    """

    start = float("-inf")


class AverageAccumulator(Accumulator[float, float]):
    """The mean; 0.0 without values.

    Example:
        >>> average = AverageAccumulator()
        >>> average.add(3)
        >>> average.add(4)
        >>> average.get_local_value()
        3.5

    """

    def __init__(self) -> None:
        self._count, self._sum = 0, 0.0

    def add(self, value: float) -> None:
        """Add a value."""
        self._count, self._sum = self._count + 1, self._sum + value

    def get_local_value(self) -> float:
        """Return the mean."""
        return self._sum / self._count if self._count else 0.0

    def reset_local(self) -> None:
        """Reset to the initial value."""
        self._count, self._sum = 0, 0.0

    def merge(self, other: Accumulator[float, float]) -> None:
        """Merge counts and sums."""
        assert isinstance(other, AverageAccumulator)
        self._count, self._sum = self._count + other._count, self._sum + other._sum


class Histogram(Accumulator[int, dict[int, int]]):
    """Counts how often each integer was added.

    Example:
        >>> histogram = Histogram()
        >>> for value in (3, 4, 3):
        ...     histogram.add(value)
        >>> histogram.get_local_value()
        {3: 2, 4: 1}

    """

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self._counts = dict(counts or {})

    def add(self, value: int) -> None:
        """Count one value."""
        self._counts[value] = self._counts.get(value, 0) + 1

    def get_local_value(self) -> dict[int, int]:
        """Return the counts, by value."""
        return dict(sorted(self._counts.items()))

    def reset_local(self) -> None:
        """Reset to the initial value."""
        self._counts = {}

    def merge(self, other: Accumulator[int, dict[int, int]]) -> None:
        """Add the counts."""
        for value, count in other.get_local_value().items():
            self._counts[value] = self._counts.get(value, 0) + count


class ListAccumulator(Accumulator[Any, list[Any]]):
    """A list of all values; it is sent to the process of the program, so keep it small.

    Example:
        >>> values = ListAccumulator()
        >>> values.add("a")
        >>> values.get_local_value()
        ['a']

    """

    def __init__(self) -> None:
        self._values: list[Any] = []

    def add(self, value: Any) -> None:
        """Add a value."""
        self._values.append(value)

    def get_local_value(self) -> list[Any]:
        """Return the values."""
        return list(self._values)

    def reset_local(self) -> None:
        """Reset to the initial value."""
        self._values = []

    def merge(self, other: Accumulator[Any, list[Any]]) -> None:
        """Append the values of another accumulator."""
        self._values.extend(other.get_local_value())


def merge_accumulators(
    first: Mapping[str, Accumulator[Any, Any]], second: Mapping[str, Accumulator[Any, Any]]
) -> dict[str, Accumulator[Any, Any]]:
    """Merge accumulators by name; the arguments are not changed."""
    merged = dict(first)
    for name, accumulator in second.items():
        if name not in merged:
            merged[name] = accumulator
            continue
        if type(merged[name]) is not type(accumulator):
            raise AccumulatorsDisagree(name, merged[name], accumulator)
        merged[name] = merged[name].clone()
        merged[name].merge(accumulator)
    return merged

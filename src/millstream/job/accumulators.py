"""Accumulators: what a job adds up while it runs, and hands back with its result.

Promises: merging is associative and commutative, so it does not matter which subtask added what; an accumulator that
was just reset changes nothing when it is merged.
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
    """Two accumulators of one name are of different kinds."""

    def __init__(self, name: str, one: object, other: object) -> None:
        self.name = name
        super().__init__(
            f"accumulator '{name}' is a {type(one).__name__} in one function and a {type(other).__name__} in another",
            hint="give each its own name",
        )


class AccumulatorNameTaken(UserError):
    """One function has added two accumulators under one name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there already is an accumulator '{name}'", hint="use get_accumulator to go on with it")


class Accumulator(ABC, Generic[V, R]):
    """Takes values of type V and amounts to an R. A subclass of one's own must be picklable."""

    @abstractmethod
    def add(self, value: V) -> None:
        """Take one value in."""

    @abstractmethod
    def get_local_value(self) -> R:
        """What the values amount to."""

    @abstractmethod
    def reset_local(self) -> None:
        """Begin anew."""

    @abstractmethod
    def merge(self, other: Accumulator[V, R]) -> None:
        """Take in what another one of this kind has."""

    def clone(self) -> Accumulator[V, R]:
        """One of its own with the same content."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_local_value()!r})"


class _Number(Accumulator[Any, Any]):
    start: Any = 0

    def __init__(self, value: Any = None) -> None:
        self._value = self.start if value is None else value

    def get_local_value(self) -> Any:
        """The number."""
        return self._value

    def get_local_value_primitive(self) -> Any:
        """The number."""
        return self._value

    def reset_local(self) -> None:
        """Begin anew."""
        self._value = self.start

    def merge(self, other: Accumulator[Any, Any]) -> None:
        """Take in another's number."""
        self.add(other.get_local_value())


class LongCounter(_Number):
    """A sum of integers."""

    def add(self, value: int) -> None:
        """Add to the sum."""
        self._value += value


class IntCounter(LongCounter):
    """A sum of integers."""


class DoubleCounter(_Number):
    """A sum of floats."""

    start = 0.0

    def add(self, value: float) -> None:
        """Add to the sum."""
        self._value += value


class LongMinimum(_Number):
    """The least integer; the greatest 64-bit one where there is none."""

    start: Any = 2**63 - 1

    def add(self, value: Any) -> None:
        """Keep the lesser."""
        self._value = min(self._value, value)


class LongMaximum(_Number):
    """The greatest integer; the least 64-bit one where there is none."""

    start: Any = -(2**63)

    def add(self, value: Any) -> None:
        """Keep the greater."""
        self._value = max(self._value, value)


class IntMinimum(LongMinimum):
    """The least integer; the greatest 32-bit one where there is none."""

    start = 2**31 - 1


class IntMaximum(LongMaximum):
    """The greatest integer; the least 32-bit one where there is none."""

    start = -(2**31)


class DoubleMinimum(LongMinimum):
    """The least float; infinity where there is none."""

    start = float("inf")


class DoubleMaximum(LongMaximum):
    """The greatest float; minus infinity where there is none."""

    start = float("-inf")


class AverageAccumulator(Accumulator[float, float]):
    """The mean; 0.0 where there are no values."""

    def __init__(self) -> None:
        self._count, self._sum = 0, 0.0

    def add(self, value: float) -> None:
        """Take one value in."""
        self._count, self._sum = self._count + 1, self._sum + value

    def get_local_value(self) -> float:
        """The mean."""
        return self._sum / self._count if self._count else 0.0

    def reset_local(self) -> None:
        """Begin anew."""
        self._count, self._sum = 0, 0.0

    def merge(self, other: Accumulator[float, float]) -> None:
        """Weigh both means by their number of values."""
        assert isinstance(other, AverageAccumulator)
        self._count, self._sum = self._count + other._count, self._sum + other._sum


class Histogram(Accumulator[int, dict[int, int]]):
    """How often each integer came."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self._counts = dict(counts or {})

    def add(self, value: int) -> None:
        """Count one value."""
        self._counts[value] = self._counts.get(value, 0) + 1

    def get_local_value(self) -> dict[int, int]:
        """The counts, by value."""
        return dict(sorted(self._counts.items()))

    def reset_local(self) -> None:
        """Begin anew."""
        self._counts = {}

    def merge(self, other: Accumulator[int, dict[int, int]]) -> None:
        """Add the counts."""
        for value, count in other.get_local_value().items():
            self._counts[value] = self._counts.get(value, 0) + count


class ListAccumulator(Accumulator[Any, list[Any]]):
    """All values; it is handed to the program's own process, so keep it small."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def add(self, value: Any) -> None:
        """Keep one value."""
        self._values.append(value)

    def get_local_value(self) -> list[Any]:
        """The values."""
        return list(self._values)

    def reset_local(self) -> None:
        """Begin anew."""
        self._values = []

    def merge(self, other: Accumulator[Any, list[Any]]) -> None:
        """Append another's values."""
        self._values.extend(other.get_local_value())


def merged(
    one: Mapping[str, Accumulator[Any, Any]], other: Mapping[str, Accumulator[Any, Any]]
) -> dict[str, Accumulator[Any, Any]]:
    """Both, by name; neither is changed."""
    found = dict(one)
    for name, each in other.items():
        if name not in found:
            found[name] = each
            continue
        if type(found[name]) is not type(each):
            raise AccumulatorsDisagree(name, found[name], each)
        found[name] = found[name].clone()
        found[name].merge(each)
    return found

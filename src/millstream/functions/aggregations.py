"""Built-in aggregates over fields, as a description that operators can vectorise.

Promises: `Aggregations` is a complete `AggregateFunction`, so it works wherever one is taken, with SQL's rule for
nulls (they are ignored; of no value only the count is known); `columns` says all there is to know for doing the
same on whole columns.
Does not know: Arrow, windows or keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from millstream.errors import UserError
from millstream.functions import AggregateFunction
from millstream.types.fields import field_of
from millstream.types.row import Row


class InvalidAggregations(UserError, TypeError):
    """An aggregation that is none."""

    hint = 'write Aggregations(total=Sum("amount"), n=Count())'

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


@dataclass(frozen=True)
class Aggregate(ABC):
    """One aggregate over one field; `kind` names it."""

    field: str | int
    kind: ClassVar[str]

    def value_of(self, record: Any) -> Any:
        """What the aggregate takes from a record; None is ignored."""
        return field_of(record, self.field)

    def empty(self) -> Any:
        """The accumulator of no value."""
        return None

    @abstractmethod
    def add(self, accumulator: Any, value: Any) -> Any:
        """The accumulator after a value, which is not None."""

    @abstractmethod
    def merge(self, accumulator: Any, other: Any) -> Any:
        """The accumulator of both."""

    def result(self, accumulator: Any) -> Any:
        """What the accumulator amounts to."""
        return accumulator


@dataclass(frozen=True)
class Count(Aggregate):
    """How many records, or how many values of a field that are not null."""

    field: str | int | None = None  # type: ignore[assignment]
    kind: ClassVar[str] = "count"

    def value_of(self, record: Any) -> Any:
        """Anything but None counts."""
        return True if self.field is None else field_of(record, self.field)

    def empty(self) -> int:
        """Zero."""
        return 0

    def add(self, accumulator: int, value: Any) -> int:
        """One more."""
        return accumulator + 1

    def merge(self, accumulator: int, other: int) -> int:
        """Both counts."""
        return accumulator + other


@dataclass(frozen=True)
class Sum(Aggregate):
    """The sum; None where there is no value."""

    kind: ClassVar[str] = "sum"

    def add(self, accumulator: Any, value: Any) -> Any:
        """The value more."""
        return value if accumulator is None else accumulator + value

    def merge(self, accumulator: Any, other: Any) -> Any:
        """Both sums."""
        return accumulator if other is None else self.add(accumulator, other)


@dataclass(frozen=True)
class Min(Aggregate):
    """The smallest value; None where there is none."""

    kind: ClassVar[str] = "min"

    def add(self, accumulator: Any, value: Any) -> Any:
        """The smaller."""
        return value if accumulator is None or value < accumulator else accumulator

    def merge(self, accumulator: Any, other: Any) -> Any:
        """The smaller."""
        return accumulator if other is None else self.add(accumulator, other)


@dataclass(frozen=True)
class Max(Aggregate):
    """The largest value; None where there is none."""

    kind: ClassVar[str] = "max"

    def add(self, accumulator: Any, value: Any) -> Any:
        """The larger."""
        return value if accumulator is None or value > accumulator else accumulator

    def merge(self, accumulator: Any, other: Any) -> Any:
        """The larger."""
        return accumulator if other is None else self.add(accumulator, other)


@dataclass(frozen=True)
class Avg(Aggregate):
    """The mean, by true division; None where there is no value. Its accumulator is (count, sum)."""

    kind: ClassVar[str] = "avg"

    def empty(self) -> tuple[int, Any]:
        """No value, sum zero."""
        return 0, 0

    def add(self, accumulator: tuple[int, Any], value: Any) -> tuple[int, Any]:
        """The value more."""
        return accumulator[0] + 1, accumulator[1] + value

    def merge(self, accumulator: tuple[int, Any], other: tuple[int, Any]) -> tuple[int, Any]:
        """Both."""
        return accumulator[0] + other[0], accumulator[1] + other[1]

    def result(self, accumulator: tuple[int, Any]) -> Any:
        """Sum by count."""
        return accumulator[1] / accumulator[0] if accumulator[0] else None


class Aggregations(AggregateFunction):
    """Several aggregates at once: `Aggregations(count=Count(), total=Sum("amount"))`.

    The result is a `Row` with those names, an accumulator a tuple in the same order. `columns` are the pairs
    (name, aggregate)."""

    def __init__(self, **columns: Aggregate) -> None:
        _check(columns)
        self.columns: tuple[tuple[str, Aggregate], ...] = tuple(columns.items())
        self._aggregates = tuple(columns.values())
        self._make_row = Row(*columns)

    def create_accumulator(self) -> tuple[Any, ...]:
        """The accumulator of no record."""
        return tuple(aggregate.empty() for aggregate in self._aggregates)

    def add(self, value: Any, accumulator: tuple[Any, ...]) -> tuple[Any, ...]:
        """The accumulator after a record."""
        return tuple(
            part if (taken := aggregate.value_of(value)) is None else aggregate.add(part, taken)
            for aggregate, part in zip(self._aggregates, accumulator, strict=True)
        )

    def get_result(self, accumulator: tuple[Any, ...]) -> Row:
        """A row of the results."""
        parts = zip(self._aggregates, accumulator, strict=True)
        return self._make_row(*(aggregate.result(part) for aggregate, part in parts))

    def merge(self, acc_a: tuple[Any, ...], acc_b: tuple[Any, ...]) -> tuple[Any, ...]:
        """The accumulator of both."""
        parts = zip(self._aggregates, acc_a, acc_b, strict=True)
        return tuple(aggregate.merge(a, b) for aggregate, a, b in parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregations) and self.columns == other.columns

    def __hash__(self) -> int:
        return hash(self.columns)

    def __repr__(self) -> str:
        return f"Aggregations({', '.join(f'{name}={aggregate}' for name, aggregate in self.columns)})"


def _check(columns: Mapping[str, object]) -> None:
    if not columns:
        raise InvalidAggregations(problem="no aggregate was given")
    for name, column in columns.items():
        if not isinstance(column, Aggregate):
            given = f"the class {column.__name__}" if isinstance(column, type) else repr(column)
            raise InvalidAggregations(problem=f"{name} must be an aggregate such as Sum('amount'), not {given}")

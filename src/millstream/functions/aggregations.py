"""Built-in aggregates over fields, as a description that operators can vectorise.

Promises: `Aggregations` is a complete `AggregateFunction`, so it can be used as one, with SQL's rule for nulls: they
are ignored, and without values only the count is not null. `columns` describes the aggregates for operators that
compute them on columns.
Does not know: Arrow, windows or keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from millstream.errors import UserError
from millstream.functions import AggregateFunction
from millstream.types.fields import read_field
from millstream.types.row import Row


class InvalidAggregations(UserError, TypeError):
    """Invalid arguments of `Aggregations`."""

    hint = 'write Aggregations(total=Sum("amount"), n=Count())'

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


@dataclass(frozen=True)
class Aggregate(ABC):
    """One aggregate over one field; `kind` is its name.

    Example:
        >>> Aggregations(orders=Count(), revenue=Sum("amount"))
        Aggregations(orders=Count(field=None), revenue=Sum(field='amount'))

    """

    field: str | int
    kind: ClassVar[str]

    def value_of(self, record: Any) -> Any:
        """Return the value of a record to aggregate; None is ignored.

        Args:
            record: The record.

        """
        return read_field(record, self.field)

    def empty(self) -> Any:
        """Return an empty accumulator."""
        return None

    @abstractmethod
    def add(self, accumulator: Any, value: Any) -> Any:
        """Return the accumulator with one more value, which is not None.

        Args:
            accumulator: The accumulator so far.
            value: What `value_of` has returned.

        """

    @abstractmethod
    def merge(self, accumulator: Any, other: Any) -> Any:
        """Merge two accumulators.

        Args:
            accumulator: One accumulator.
            other: The other accumulator.

        """

    def result(self, accumulator: Any) -> Any:
        """Return the result of an accumulator.

        Args:
            accumulator: The accumulator.

        """
        return accumulator


@dataclass(frozen=True)
class Count(Aggregate):
    """The number of records, or of values of a field that are not null.

    Example:
        >>> count = Count()
        >>> count.result(count.add(count.empty(), "any record"))
        1

    """

    field: str | int | None = None  # type: ignore[assignment]
    kind: ClassVar[str] = "count"

    def value_of(self, record: Any) -> Any:
        """Return a value that is not None if the record counts."""
        return True if self.field is None else read_field(record, self.field)

    def empty(self) -> int:
        """Return 0."""
        return 0

    def add(self, accumulator: int, value: Any) -> int:
        """Count one more value."""
        return accumulator + 1

    def merge(self, accumulator: int, other: int) -> int:
        """Add two counts."""
        return accumulator + other


@dataclass(frozen=True)
class Sum(Aggregate):
    """The sum; None without values.

    Example:
        >>> total = Sum("amount")
        >>> total.result(total.add(total.add(total.empty(), 3), 4))
        7

    """

    kind: ClassVar[str] = "sum"

    def add(self, accumulator: Any, value: Any) -> Any:
        """Add a value."""
        return value if accumulator is None else accumulator + value

    def merge(self, accumulator: Any, other: Any) -> Any:
        """Add two sums."""
        return accumulator if other is None else self.add(accumulator, other)


@dataclass(frozen=True)
class Min(Aggregate):
    """The smallest value; None without values.

    Example:
        >>> least = Min("amount")
        >>> least.result(least.add(least.add(least.empty(), 3), 4))
        3

    """

    kind: ClassVar[str] = "min"

    def add(self, accumulator: Any, value: Any) -> Any:
        """Return the smaller one."""
        return value if accumulator is None or value < accumulator else accumulator

    def merge(self, accumulator: Any, other: Any) -> Any:
        """Return the smaller one."""
        return accumulator if other is None else self.add(accumulator, other)


@dataclass(frozen=True)
class Max(Aggregate):
    """The largest value; None without values.

    Example:
        >>> most = Max("amount")
        >>> most.result(most.add(most.add(most.empty(), 3), 4))
        4

    """

    kind: ClassVar[str] = "max"

    def add(self, accumulator: Any, value: Any) -> Any:
        """Return the larger one."""
        return value if accumulator is None or value > accumulator else accumulator

    def merge(self, accumulator: Any, other: Any) -> Any:
        """Return the larger one."""
        return accumulator if other is None else self.add(accumulator, other)


@dataclass(frozen=True)
class Avg(Aggregate):
    """The mean, by true division; None without values. Its accumulator is (count, sum).

    Example:
        >>> average = Avg("amount")
        >>> average.result(average.add(average.add(average.empty(), 3), 4))
        3.5

    """

    kind: ClassVar[str] = "avg"

    def empty(self) -> tuple[int, Any]:
        """Return (0, 0)."""
        return 0, 0

    def add(self, accumulator: tuple[int, Any], value: Any) -> tuple[int, Any]:
        """Add a value."""
        return accumulator[0] + 1, accumulator[1] + value

    def merge(self, accumulator: tuple[int, Any], other: tuple[int, Any]) -> tuple[int, Any]:
        """Add counts and sums."""
        return accumulator[0] + other[0], accumulator[1] + other[1]

    def result(self, accumulator: tuple[int, Any]) -> Any:
        """Return the sum divided by the count."""
        return accumulator[1] / accumulator[0] if accumulator[0] else None


class Aggregations(AggregateFunction):
    """An aggregate function that computes several built-in aggregates.

    The result is a `Row` with the names of the arguments, an accumulator is a tuple in the same order. `columns` are
    the pairs (name, aggregate).

    Example:
        >>> from millstream.datastream.aggregations import Aggregations, Count, Sum
        >>> totals = Aggregations(n=Count(), total=Sum("amount"))

    """

    def __init__(self, **columns: Aggregate) -> None:
        _check(columns)
        self.columns: tuple[tuple[str, Aggregate], ...] = tuple(columns.items())
        self._aggregates = tuple(columns.values())
        self._make_row = Row(*columns)

    def create_accumulator(self) -> tuple[Any, ...]:
        """Create an empty accumulator."""
        return tuple(aggregate.empty() for aggregate in self._aggregates)

    def add(self, value: Any, accumulator: tuple[Any, ...]) -> tuple[Any, ...]:
        """Add a record, and return the accumulator."""
        return tuple(
            part if (field_value := aggregate.value_of(value)) is None else aggregate.add(part, field_value)
            for aggregate, part in zip(self._aggregates, accumulator, strict=True)
        )

    def get_result(self, accumulator: tuple[Any, ...]) -> Row:
        """Return a row of the results."""
        parts = zip(self._aggregates, accumulator, strict=True)
        return self._make_row(*(aggregate.result(part) for aggregate, part in parts))

    def merge(self, acc_a: tuple[Any, ...], acc_b: tuple[Any, ...]) -> tuple[Any, ...]:
        """Merge two accumulators."""
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
        raise InvalidAggregations(problem="Aggregations needs at least one aggregate")
    for name, column in columns.items():
        if not isinstance(column, Aggregate):
            argument = f"the class {column.__name__}" if isinstance(column, type) else repr(column)
            raise InvalidAggregations(problem=f"{name} must be an aggregate such as Sum('amount'), not {argument}")

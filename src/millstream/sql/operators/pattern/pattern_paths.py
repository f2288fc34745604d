"""What a condition of a pattern needs to know of the rows taken before, carried along from step to step.

Promises: the values that PatternExpression finds in all rows of a partial match, for one step more than the partial
match had before; a row is looked at once, however many partial matches have taken it.
Does not know: automata, nor how conditions are computed from the values."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.aggregates import aggregation


class Carried(ABC):
    """One value that is carried along: `nothing` before the first row, then `after` each row of a variable."""

    def __init__(self, variable: str | None, of_row: Callable[[Any], Any]) -> None:
        self._variable, self._of_row = variable, of_row

    def takes(self, name: str) -> bool:
        """Whether rows of a variable count."""
        return self._variable is None or self._variable == name

    def of_row(self, row: Any) -> Any:
        """What counts of a row."""
        return self._of_row(row)

    @abstractmethod
    def nothing(self) -> Any:
        """What is carried of no rows."""

    @abstractmethod
    def after(self, carried: Any, value: Any) -> Any:
        """What is carried with one row more; the argument stays as it is."""

    @abstractmethod
    def value(self, carried: Any) -> Any:
        """The value of the rows so far."""


class FirstRow(Carried):
    """The value of the row at `offset`, from the first on."""

    def __init__(self, variable: str | None, of_row: Callable[[Any], Any], offset: int) -> None:
        super().__init__(variable, of_row)
        self._offset = offset

    def nothing(self) -> tuple[Any, ...]:
        """No values."""
        return ()

    def after(self, carried: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        """The first values, as many as are needed."""
        return (*carried, value) if len(carried) <= self._offset else carried

    def value(self, carried: tuple[Any, ...]) -> Any:
        """The value, or None."""
        return carried[self._offset] if len(carried) > self._offset else None


class LastRow(Carried):
    """The value of the row at `offset`, back from the last."""

    def __init__(self, variable: str | None, of_row: Callable[[Any], Any], offset: int) -> None:
        super().__init__(variable, of_row)
        self._offset = offset

    def nothing(self) -> tuple[Any, ...]:
        """No values."""
        return ()

    def after(self, carried: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        """The last values, as many as are needed."""
        return (*carried[-self._offset :], value) if self._offset else (value,)

    def value(self, carried: tuple[Any, ...]) -> Any:
        """The value, or None."""
        return carried[-1 - self._offset] if len(carried) > self._offset else None


class Aggregate(Carried):
    """An aggregate of all rows."""

    def __init__(self, variable: str | None, of_row: Callable[[Any], Any], call: AggregateCall) -> None:
        super().__init__(variable, of_row)
        self._function = aggregation(call, retracts=False)

    def nothing(self) -> Any:
        """The accumulator of nothing."""
        return self._function.create()

    def after(self, carried: Any, value: Any) -> Any:
        """The accumulator with the row."""
        made = copy.deepcopy(carried)
        self._function.add(made, value)
        return made

    def value(self, carried: Any) -> Any:
        """The result."""
        return self._function.value(carried)

"""Accumulators of the values that conditions of a pattern read from earlier rows of a partial match.

Promises: the values that PatternExpression computes from all rows of a partial match, updated row by row; a row is
evaluated once, however many partial matches contain it.
Does not know: automata, or how conditions are computed from the values."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.aggregates import create_aggregation


class Accumulated(ABC):
    """One accumulated value: `nothing` before the first row, then `after` each row of a variable."""

    def __init__(self, variable: str | None, of_row: Callable[[Any], Any]) -> None:
        self._variable, self._of_row = variable, of_row

    def takes(self, name: str) -> bool:
        """Return whether rows of a variable are accumulated."""
        return self._variable is None or self._variable == name

    def of_row(self, row: Any) -> Any:
        """Return the value of a row."""
        return self._of_row(row)

    @abstractmethod
    def nothing(self) -> Any:
        """Return the accumulator of no rows."""

    @abstractmethod
    def after(self, accumulated: Any, value: Any) -> Any:
        """Return the accumulator with one more row; the argument does not change."""

    @abstractmethod
    def value(self, accumulated: Any) -> Any:
        """Return the value of the rows so far."""


class FirstRow(Accumulated):
    """The value of the row at `offset`, counted from the first."""

    def __init__(self, variable: str | None, of_row: Callable[[Any], Any], offset: int) -> None:
        super().__init__(variable, of_row)
        self._offset = offset

    def nothing(self) -> tuple[Any, ...]:
        """Return no values."""
        return ()

    def after(self, accumulated: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        """Return the first values, as many as are needed."""
        return (*accumulated, value) if len(accumulated) <= self._offset else accumulated

    def value(self, accumulated: tuple[Any, ...]) -> Any:
        """Return the value, or None."""
        return accumulated[self._offset] if len(accumulated) > self._offset else None


class LastRow(Accumulated):
    """The value of the row at `offset`, counted back from the last."""

    def __init__(self, variable: str | None, of_row: Callable[[Any], Any], offset: int) -> None:
        super().__init__(variable, of_row)
        self._offset = offset

    def nothing(self) -> tuple[Any, ...]:
        """Return no values."""
        return ()

    def after(self, accumulated: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        """Return the last values, as many as are needed."""
        return (*accumulated[-self._offset :], value) if self._offset else (value,)

    def value(self, accumulated: tuple[Any, ...]) -> Any:
        """Return the value, or None."""
        return accumulated[-1 - self._offset] if len(accumulated) > self._offset else None


class Aggregate(Accumulated):
    """An aggregate over all rows."""

    def __init__(self, variable: str | None, of_row: Callable[[Any], Any], call: AggregateCall) -> None:
        super().__init__(variable, of_row)
        self._function = create_aggregation(call, retracts=False)

    def nothing(self) -> Any:
        """Return a new accumulator."""
        return self._function.create()

    def after(self, accumulated: Any, value: Any) -> Any:
        """Return a copy of the accumulator with the row added."""
        accumulator = copy.deepcopy(accumulated)
        self._function.add(accumulator, value)
        return accumulator

    def value(self, accumulated: Any) -> Any:
        """Return the result."""
        return self._function.value(accumulated)

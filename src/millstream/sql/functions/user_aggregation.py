"""User-defined aggregate functions as aggregations.

Promises: the function gets external values; an error it raises names the function and the record.
Does not know: groups, windows, state."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import InvalidOperation
from typing import Any

from millstream.runtime.rowwise import failure
from millstream.sql.columns import converter, external
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.aggregation import Accumulator, Aggregation
from millstream.sql.functions.user_functions import TABLE_AGGREGATE, WrongResult
from millstream.sql.types import data_types as t
from millstream.types.row import Row


class UserAggregation(Aggregation):
    """A user-defined aggregate function. The rows of a table aggregate function are collected in an array."""

    name = "USER"
    doc = ""

    def __init__(self, call: AggregateCall, *, retracts: bool) -> None:
        super().__init__(call, retracts=retracts)
        self._function = call.user.function
        self._converters = [external(data_type) for data_type in call.arg_types]
        self._plain = not any(self._converters)
        self._several = call.user.kind == TABLE_AGGREGATE
        self._converted = converter(call.type)

    @classmethod
    def result_type(cls, _arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Not used: the function declares its type."""
        return None

    def _to_external(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._plain:
            return values
        return tuple(v if s is None or v is None else s(v) for v, s in zip(values, self._converters, strict=True))

    def create(self) -> Accumulator:
        """Create the accumulator of the function."""
        try:
            return [self._function.create_accumulator()]
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem) from problem

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Call `accumulate`."""
        external_values = self._to_external(values)
        try:
            self._function.accumulate(acc[0], *external_values)
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem, record=external_values) from problem

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Call `retract`."""
        external_values = self._to_external(values)
        try:
            self._function.retract(acc[0], *external_values)
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem, record=external_values) from problem

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Call `merge`."""
        try:
            self._function.merge(acc[0], [other[0]])
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem) from problem

    def value(self, acc: Accumulator) -> Any:
        """Call `get_value` or `emit_value`."""
        try:
            result = self._rows(acc[0]) if self._several else self._function.get_value(acc[0])
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem) from problem
        if result is None:
            return None
        try:
            return self._converted(result)
        except (TypeError, ValueError, AttributeError, OverflowError, InvalidOperation):
            raise WrongResult(self.call.user.name, f"it returned {result!r}, which is not a {self.call.type}") from None

    def _rows(self, accumulator: Any) -> list[Any] | None:
        """Return the rows that a table aggregate function emits, as tuples; a single value is a row of one column."""
        emitted = self._function.emit_value(accumulator)
        if emitted is None:
            return None
        return [row if isinstance(row, Row | tuple | list) else (row,) for row in emitted] or None

"""User-defined aggregate functions as aggregations.

Promises: a general function gets external values row by row, and a pandas or Arrow function whole columns, once for
each result. An error that a function raises names the function, and the record if there is one.
Does not know: groups, windows, state."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import InvalidOperation
from functools import partial
from typing import Any

import pyarrow as pa

from millstream.runtime.rowwise import failure
from millstream.sql.arrow_exchange import export_column
from millstream.sql.columns import arrow_type, create_external_converter, create_internal_converter
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.aggregation import Accumulator, Aggregation
from millstream.sql.functions.user_functions import TABLE_AGGREGATE, WrongResult
from millstream.sql.types import data_types as t
from millstream.types.copies import copy_value
from millstream.types.row import Row


class UserAggregation(Aggregation):
    """A user-defined aggregate function. The rows of a table aggregate function are collected in an array."""

    name = "USER"
    doc = ""

    def __init__(self, call: AggregateCall, *, retracts: bool) -> None:
        super().__init__(call, retracts=retracts)
        self._function = call.user.function
        self._converters = [create_external_converter(data_type) for data_type in call.arg_types]
        self._has_converters = any(self._converters)
        self._is_table_aggregate = call.user.kind == TABLE_AGGREGATE
        self._to_internal = create_internal_converter(call.type)

    @classmethod
    def result_type(cls, _arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return None; it is not called, because the function declares its type."""
        return None

    def _to_external(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self._has_converters:
            return values
        pairs = zip(values, self._converters, strict=True)
        return tuple(value if convert is None or value is None else convert(value) for value, convert in pairs)

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
            result = self._emit_rows(acc[0]) if self._is_table_aggregate else self._function.get_value(acc[0])
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem) from problem
        if result is None:
            return None
        try:
            return self._to_internal(result)
        except (TypeError, ValueError, AttributeError, OverflowError, InvalidOperation):
            raise WrongResult(self.call.user.name, f"it returned {result!r}, which is not a {self.call.type}") from None

    def _emit_rows(self, accumulator: Any) -> list[Any] | None:
        """Return the rows that a table aggregate function emits, as tuples; a single value is a row of one column."""
        emitted = self._function.emit_value(accumulator)
        if emitted is None:
            return None
        rows = map(copy_value, emitted)  # a generator may change a row after it yielded it
        return [row if isinstance(row, Row | tuple | list) else (row,) for row in rows] or None


class ColumnAggregation(Aggregation):
    """A pandas or Arrow aggregate function. The accumulator keeps all rows; the function is called for the result.

    An `AggregateFunction` gets the columns in one call of `accumulate`."""

    name = "USER COLUMNS"
    doc = ""

    def __init__(self, call: AggregateCall, *, retracts: bool) -> None:
        super().__init__(call, retracts=retracts)
        self._function = call.user.function
        self._arrow_types = [arrow_type(data_type) for data_type in call.arg_types]
        self._zone = str(call.options[0]) if call.options else "UTC"

    @classmethod
    def result_type(cls, _arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return None; it is not called, because the function declares its type."""
        return None

    def create(self) -> Accumulator:
        """Return an empty list of rows."""
        return [[]]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Append a row."""
        acc[0].append(values)

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Remove one equal row."""
        acc[0].remove(values)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Append the rows of the other accumulator."""
        acc[0].extend(other[0])

    def value(self, acc: Accumulator) -> Any:
        """Call the function with the columns of all rows."""
        from millstream.sql.pandas_columns import from_single_result, to_argument  # pandas is loaded if it is needed

        rows = acc[0]
        columns = zip(*rows, strict=True) if rows else [()] * len(self._arrow_types)
        arrays = [pa.array(values, arrow) for values, arrow in zip(columns, self._arrow_types, strict=True)]
        convert = export_column if self.call.user.arrow else partial(to_argument, zone=self._zone)
        args = [convert(array, data_type) for array, data_type in zip(arrays, self.call.arg_types, strict=True)]
        try:
            result = self._compute(args)
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem) from problem
        try:
            return from_single_result(result, self.call.type, self._zone)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise WrongResult(self.call.user.name, f"it returned {result!r}, which is not a {self.call.type}") from None

    def _compute(self, args: list[Any]) -> Any:
        if not hasattr(self._function, "accumulate"):
            return getattr(self._function, "eval", self._function)(*args)
        accumulator = self._function.create_accumulator()
        self._function.accumulate(accumulator, *args)
        return self._function.get_value(accumulator)

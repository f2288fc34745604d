"""A user's aggregate function as an aggregation.

Promises: the function sees values as users do; what it raises names it and the record.
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
    """A user's aggregate function. It sees values as users do; a table aggregate's rows are gathered in an array."""

    name = "USER"
    doc = ""

    def __init__(self, call: AggregateCall, *, retracts: bool) -> None:
        super().__init__(call, retracts=retracts)
        self._function = call.user.function
        self._shows = [external(kind) for kind in call.arg_types]
        self._plain = not any(self._shows)
        self._several = call.user.kind == TABLE_AGGREGATE
        self._converted = converter(call.type)

    @classmethod
    def result_type(cls, _kinds: Sequence[t.DataType]) -> t.DataType | None:
        """As declared by the function."""
        return None

    def _shown(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._plain:
            return values
        return tuple(v if s is None or v is None else s(v) for v, s in zip(values, self._shows, strict=True))

    def create(self) -> Accumulator:
        """What the function makes."""
        try:
            return [self._function.create_accumulator()]
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem) from problem

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """As the function adds."""
        shown = self._shown(values)
        try:
            self._function.accumulate(acc[0], *shown)
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem, record=shown) from problem

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """As the function takes back."""
        shown = self._shown(values)
        try:
            self._function.retract(acc[0], *shown)
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem, record=shown) from problem

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """As the function merges."""
        try:
            self._function.merge(acc[0], [other[0]])
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem) from problem

    def value(self, acc: Accumulator) -> Any:
        """What the function says."""
        try:
            found = self._rows(acc[0]) if self._several else self._function.get_value(acc[0])
        except (Exception, SystemExit) as problem:
            raise failure(self.call.user.name, problem) from problem
        if found is None:
            return None
        try:
            return self._converted(found)
        except (TypeError, ValueError, AttributeError, OverflowError, InvalidOperation):
            raise WrongResult(self.call.user.name, f"it gave {found!r}, which is no {self.call.type}") from None

    def _rows(self, accumulator: Any) -> list[Any] | None:
        """The rows that a table aggregate emits, each as a tuple; one value is a row of one column."""
        emitted = self._function.emit_value(accumulator)
        if emitted is None:
            return None
        return [row if isinstance(row, Row | tuple | list) else (row,) for row in emitted] or None

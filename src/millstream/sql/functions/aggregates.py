"""All aggregate functions, and the aggregation of a call.

Promises: with DISTINCT, each value is aggregated once; arguments that do not fit are refused with the syntax.
Does not know: how a function computes; groups, windows, state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions import bitmap_aggregates, numeric_aggregates, value_aggregates
from millstream.sql.functions.aggregation import AGGREGATES, Accumulator, Aggregation
from millstream.sql.functions.user_aggregation import ColumnAggregation, UserAggregation
from millstream.sql.types import data_types as t

__all__ = [
    "AGGREGATES",
    "bitmap_aggregates",
    "create_aggregation",
    "numeric_aggregates",
    "resolve_aggregate",
    "value_aggregates",
]


class Distinct(Aggregation):
    """DISTINCT: another aggregation over distinct values."""

    name = "DISTINCT"
    doc = ""

    def __init__(self, inner: Aggregation) -> None:
        super().__init__(inner.call, retracts=inner.retracts)
        self._inner = inner

    @classmethod
    def result_type(cls, _arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return None; it is not called, because the type is that of the inner aggregation."""
        return None

    def create(self) -> Accumulator:
        """Return the counts of values and the inner accumulator."""
        return [{}, self._inner.create()]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Add a value to the inner accumulator if it is new."""
        count = acc[0].get(values, 0)
        acc[0][values] = count + 1
        if count == 0:
            self._inner.add(acc[1], values)
        elif count == -1:
            del acc[0][values]

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Retract a value from the inner accumulator if no equal value is left."""
        count = acc[0].get(values, 0)
        acc[0][values] = count - 1
        if count == 1:
            del acc[0][values]
            self._inner.retract(acc[1], values)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Merge the counts; values that are new here are added to the inner accumulator."""
        for values, count in other[0].items():
            if values not in acc[0]:
                self._inner.add(acc[1], values)
            acc[0][values] = acc[0].get(values, 0) + count

    def value(self, acc: Accumulator) -> Any:
        """Return the inner result."""
        return self._inner.value(acc[1])


def create_aggregation(call: AggregateCall, *, retracts: bool) -> Aggregation:
    """Create the aggregation of a call."""
    if call.user is not None:
        user_aggregation = ColumnAggregation if call.user.vectorized else UserAggregation
        result: Aggregation = user_aggregation(call, retracts=retracts)
    else:
        result = AGGREGATES[call.function](call, retracts=retracts)
    return Distinct(result) if call.distinct and call.function not in ("MIN", "MAX") else result


def resolve_aggregate(name: str, arg_types: Sequence[t.DataType], at: int | None) -> t.DataType:
    """Return the type of the result of an aggregate function; raises if the arguments do not fit."""
    function = AGGREGATES[name]
    result_type = function.result_type([t.strip_time_attribute(data_type) for data_type in arg_types])
    if result_type is None:
        type_names = ", ".join(data_type.text() for data_type in arg_types)
        message = f"{name} cannot be applied to ({type_names})"
        raise SqlValidationError(message, at=at, hint=f"it is used as {function.syntax or f'{name}(value)'}")
    return result_type

"""All aggregate functions, loaded, and the aggregation of a call.

Promises: a call with DISTINCT sees each value once; what a function cannot take is refused with its syntax.
Does not know: how a function computes; groups, windows, state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions import bitmap_aggregates, numeric_aggregates, value_aggregates
from millstream.sql.functions.aggregation import AGGREGATES, Accumulator, Aggregation
from millstream.sql.functions.user_aggregation import UserAggregation
from millstream.sql.types import data_types as t

__all__ = [
    "AGGREGATES",
    "aggregation",
    "bitmap_aggregates",
    "numeric_aggregates",
    "resolve_aggregate",
    "value_aggregates",
]


class Distinct(Aggregation):
    """Another aggregation over each value once."""

    name = "DISTINCT"
    doc = ""

    def __init__(self, inner: Aggregation) -> None:
        super().__init__(inner.call, retracts=inner.retracts)
        self._inner = inner

    @classmethod
    def result_type(cls, _kinds: Sequence[t.DataType]) -> t.DataType | None:
        """Never asked for."""
        return None

    def create(self) -> Accumulator:
        """The values seen, and the inner accumulator."""
        return [{}, self._inner.create()]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Pass a value on when it is new."""
        seen = acc[0].get(values, 0)
        acc[0][values] = seen + 1
        if seen == 0:
            self._inner.add(acc[1], values)
        elif seen == -1:
            del acc[0][values]

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Take a value back when it is gone."""
        seen = acc[0].get(values, 0)
        acc[0][values] = seen - 1
        if seen == 1:
            del acc[0][values]
            self._inner.retract(acc[1], values)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Both together."""
        for values, count in other[0].items():
            if values not in acc[0]:
                self._inner.add(acc[1], values)
            acc[0][values] = acc[0].get(values, 0) + count

    def value(self, acc: Accumulator) -> Any:
        """The inner result."""
        return self._inner.value(acc[1])


def aggregation(call: AggregateCall, *, retracts: bool) -> Aggregation:
    """The aggregation of a call."""
    if call.user is not None:
        found: Aggregation = UserAggregation(call, retracts=retracts)
    else:
        found = AGGREGATES[call.function](call, retracts=retracts)
    return Distinct(found) if call.distinct and call.function not in ("MIN", "MAX") else found


def resolve_aggregate(name: str, kinds: Sequence[t.DataType], at: int | None) -> t.DataType:
    """The type of an aggregate's result."""
    cls = AGGREGATES[name]
    found = cls.result_type([t.plain(kind) for kind in kinds])
    if found is None:
        given = ", ".join(kind.text() for kind in kinds)
        message = f"{name} cannot be applied to ({given})"
        raise SqlValidationError(message, at=at, hint=f"it is used as {cls.syntax or f'{name}(value)'}")
    return found

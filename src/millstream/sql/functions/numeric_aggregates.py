"""Aggregates of numbers: counts, sums, means, variances and percentiles.

Promises: integers and decimals add exactly and wrap or round as Java's do; floats add as they come.
Does not know: groups, windows, state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, ClassVar

import numpy as np

from millstream.sql.columns import rounded
from millstream.sql.functions.aggregation import Accumulator, Aggregation, aggregate
from millstream.sql.functions.spark import SparkAggregate
from millstream.sql.types import data_types as t

_WIDE = Context(prec=80)


@aggregate
class Count(Aggregation):
    """COUNT."""

    name = "COUNT"
    doc = "Returns the number of rows, or of rows in which no argument is NULL. With DISTINCT, equal rows count once."
    syntax = "COUNT(*) or COUNT([DISTINCT] value, ...)"

    @classmethod
    def result_type(cls, _kinds: Sequence[t.DataType]) -> t.DataType | None:
        """BIGINT NOT NULL."""
        return t.BIGINT.not_null()

    @classmethod
    def spark(cls, call: SparkAggregate) -> str | None:
        """As `Aggregation.spark` promises."""
        return f"COUNT({call.inside or '*'}){call.tail}"

    def create(self) -> Accumulator:
        """Zero."""
        return [0]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """One more, unless a value is NULL."""
        if None not in values:
            acc[0] += 1

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """One less, unless a value is NULL."""
        if None not in values:
            acc[0] -= 1

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Returns a plus b."""
        acc[0] += other[0]

    def value(self, acc: Accumulator) -> Any:
        """The number."""
        return acc[0]


def wrapped(value: int, kind: t.DataType) -> int:
    """A whole number in the range of its type, as Java's arithmetic leaves it."""
    if not isinstance(kind, t.IntegerType):
        return value
    span = 1 << kind.bits
    value %= span
    return value - span if value >= span >> 1 else value


class _Numeric(Aggregation):
    """Sums and counts of numbers; integers and decimals add exactly, floats as they come."""

    def create(self) -> Accumulator:
        """Nothing."""
        zero: Any = Decimal(0) if isinstance(self.call.arg_types[0], t.DecimalType) else 0
        if t.is_approximate(self.call.arg_types[0]):
            zero = 0.0
        return [zero, 0]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Add a number."""
        value = values[0]
        if value is not None:
            acc[0] = _WIDE.add(acc[0], value) if isinstance(value, Decimal) else acc[0] + value
            acc[1] += 1

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Take a number off."""
        value = values[0]
        if value is not None:
            acc[0] = _WIDE.subtract(acc[0], value) if isinstance(value, Decimal) else acc[0] - value
            acc[1] -= 1

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Both together."""
        acc[0] = _WIDE.add(acc[0], other[0]) if isinstance(acc[0], Decimal) else acc[0] + other[0]
        acc[1] += other[1]


@aggregate
class Sum(_Numeric):
    """SUM."""

    name = "SUM"
    doc = "Returns the sum of the numbers. Returns NULL if there are none."

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """As the argument; decimals get 38 digits."""
        kind = kinds[0] if len(kinds) == 1 else None
        if isinstance(kind, t.DecimalType):
            return t.DecimalType(38, kind.scale)
        return kind.nullable() if isinstance(kind, t.NumericType) else None

    @classmethod
    def spark(cls, call: SparkAggregate) -> str | None:
        """As `Aggregation.spark` promises."""
        if not isinstance(call.call.arg_types[0], t.NumericType):
            return None
        return f"CAST(SUM({call.inside}){call.tail} AS {call.type_name})"

    def value(self, acc: Accumulator) -> Any:
        """Returns a plus b."""
        if acc[1] == 0:
            return None
        kind = self.call.type
        if isinstance(kind, t.DecimalType):
            return rounded(acc[0], kind)
        if isinstance(kind, t.FloatType):
            return float(np.float32(acc[0]))
        return wrapped(acc[0], kind)


@aggregate
class Sum0(Sum):
    """$SUM0: a sum that is 0 of nothing."""

    name = "$SUM0"
    doc = "Returns the sum of the numbers. Returns 0 if there are none."

    @classmethod
    def spark(cls, call: SparkAggregate) -> str | None:
        """As `Aggregation.spark` promises."""
        total = super().spark(call)
        return None if total is None else f"COALESCE({total}, CAST(0 AS {call.type_name}))"

    def value(self, acc: Accumulator) -> Any:
        """Returns a plus b."""
        found = super().value(acc)
        return self.create()[0] if found is None else found


@aggregate
class Avg(_Numeric):
    """AVG."""

    name = "AVG"
    doc = "Returns the average of the numbers, of the same type. Returns NULL if there are none."

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """As the argument; decimals get 38 digits and a scale of at least 6."""
        kind = kinds[0] if len(kinds) == 1 else None
        if isinstance(kind, t.DecimalType):
            return t.DecimalType(38, max(6, kind.scale))
        return kind.nullable() if isinstance(kind, t.NumericType) else None

    @classmethod
    def spark(cls, call: SparkAggregate) -> str | None:
        """As `Aggregation.spark` promises."""
        total, count = f"SUM({call.inside}){call.tail}", f"COUNT({call.inside}){call.tail}"
        match call.call.arg_types[0]:
            case t.FloatType() | t.DoubleType():
                return f"CAST(AVG({call.inside}){call.tail} AS {call.type_name})"
            case t.IntegerType():
                return f"CAST(({total} div {count}) AS {call.type_name})"
            case t.DecimalType(scale=scale):
                return f"CAST((CAST({total} AS DECIMAL(38,{scale})) / {count}) AS {call.type_name})"
        return None

    def value(self, acc: Accumulator) -> Any:
        """The mean."""
        total, count = acc
        if count == 0:
            return None
        kind = self.call.type
        if isinstance(kind, t.DecimalType):
            return rounded(_WIDE.divide(total, Decimal(count)), kind)
        if isinstance(kind, t.IntegerType):
            return wrapped(total // count if total >= 0 else -(-total // count), kind)
        return float(np.float32(total / count)) if isinstance(kind, t.FloatType) else total / count


class _Variance(Aggregation):
    sample: ClassVar[bool] = False
    root: ClassVar[bool] = False

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """As AVG's."""
        return Avg.result_type(kinds)

    def create(self) -> Accumulator:
        """Count, mean and the sum of squared distances from it."""
        return [0, 0.0, 0.0]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Add a number."""
        if values[0] is not None:
            value = float(values[0])
            acc[0] += 1
            delta = value - acc[1]
            acc[1] += delta / acc[0]
            acc[2] += delta * (value - acc[1])

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Take a number off."""
        if values[0] is None:
            return
        value = float(values[0])
        acc[0] -= 1
        if acc[0] == 0:
            acc[1] = acc[2] = 0.0
            return
        delta = value - acc[1]
        acc[1] -= delta / acc[0]
        acc[2] -= delta * (value - acc[1])

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Both together."""
        count = acc[0] + other[0]
        if not other[0] or not count:
            return
        delta = other[1] - acc[1]
        acc[2] += other[2] + delta * delta * acc[0] * other[0] / count
        acc[1] += delta * other[0] / count
        acc[0] = count

    def value(self, acc: Accumulator) -> Any:
        """The variance or its root."""
        count = acc[0]
        if count == 0 or (self.sample and count == 1):
            return None
        found = acc[2] / (count - 1 if self.sample else count)
        if self.root:
            found = math.sqrt(found) if found > 0 else 0.0
        kind = self.call.type
        if isinstance(kind, t.IntegerType):
            return int(found)
        return rounded(Decimal(found), kind) if isinstance(kind, t.DecimalType) else found


for _name, _sample, _root, _doc in (
    ("VAR_POP", False, False, "Returns the population variance of the numbers."),
    ("VAR_SAMP", True, False, "Returns the sample variance of the numbers."),
    ("VARIANCE", True, False, "Returns the sample variance of the numbers."),
    ("STDDEV_POP", False, True, "Returns the population standard deviation of the numbers."),
    ("STDDEV_SAMP", True, True, "Returns the sample standard deviation of the numbers."),
    ("STDDEV", True, True, "Returns the sample standard deviation of the numbers."),
):
    aggregate(type(_name.title(), (_Variance,), {"name": _name, "doc": _doc, "sample": _sample, "root": _root}))


@aggregate
class Percentile(Aggregation):
    """PERCENTILE."""

    name = "PERCENTILE"
    doc = (
        "Returns the percentile of the numbers, interpolated between the nearest two. An array of percentages "
        "returns an array."
    )
    syntax = "PERCENTILE(number, percentage [, frequency])"

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """DOUBLE, or an array of it."""
        if len(kinds) not in (2, 3) or not isinstance(kinds[0], t.NumericType):
            return None
        return t.ArrayType(t.DOUBLE) if isinstance(kinds[1], t.ArrayType) else t.DOUBLE

    def create(self) -> Accumulator:
        """No values."""
        return [{}, None]

    def _change(self, acc: Accumulator, values: tuple[Any, ...], sign: int) -> None:
        weight = 1 if len(values) < 3 else values[2]
        acc[1] = values[1]
        if values[0] is None or not weight:
            return
        key = float(values[0])
        count = acc[0].get(key, 0) + sign * weight
        if count:
            acc[0][key] = count
        else:
            acc[0].pop(key, None)

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Add a number."""
        self._change(acc, values, 1)

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Take a number off."""
        self._change(acc, values, -1)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Both together."""
        for value, count in other[0].items():
            self._change(acc, (value, other[1], count), 1)

    def value(self, acc: Accumulator) -> Any:
        """The percentile."""
        if not acc[0] or acc[1] is None:
            return None
        ordered = sorted(acc[0].items())
        if isinstance(acc[1], tuple):
            return tuple(_percentile(ordered, float(p)) for p in acc[1])
        return _percentile(ordered, float(acc[1]))


def _percentile(ordered: list[tuple[float, int]], fraction: float) -> float:
    total = sum(count for _, count in ordered)
    place = fraction * (total - 1)
    low, high = math.floor(place), math.ceil(place)

    def at(index: int) -> float:
        seen = 0
        for value, count in ordered:
            seen += count
            if index < seen:
                return value
        return ordered[-1][0]

    one, other = at(low), at(high)
    return one if low == high else (high - place) * one + (place - low) * other

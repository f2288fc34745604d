"""Numeric aggregates: counts, sums, averages, variances and percentiles.

Promises: integers and decimals are added exactly, and overflow or round as in Java; floating-point numbers are added in
the order of arrival.
Does not know: groups, windows, state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, ClassVar

import numpy as np

from millstream.sql.columns import round_decimal
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
    def result_type(cls, _arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return BIGINT NOT NULL."""
        return t.BIGINT.not_null()

    @classmethod
    def spark(cls, call: SparkAggregate) -> str | None:
        """Spell COUNT; without arguments it is COUNT(*)."""
        return f"COUNT({call.inside or '*'}){call.tail}"

    def create(self) -> Accumulator:
        """Return a count of 0."""
        return [0]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Count the values unless one is NULL."""
        if None not in values:
            acc[0] += 1

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Subtract 1 from the count unless a value is NULL."""
        if None not in values:
            acc[0] -= 1

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Add the counts."""
        acc[0] += other[0]

    def value(self, acc: Accumulator) -> Any:
        """Return the count."""
        return acc[0]


def wrap_integer(value: int, data_type: t.DataType) -> int:
    """Wrap an integer to the range of its type, as Java does on overflow."""
    if not isinstance(data_type, t.IntegerType):
        return value
    span = 1 << data_type.bits
    value %= span
    return value - span if value >= span >> 1 else value


class _Numeric(Aggregation):
    """Sum and count of numbers."""

    def create(self) -> Accumulator:
        """Return a sum and a count of 0."""
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
        """Retract a number."""
        value = values[0]
        if value is not None:
            acc[0] = _WIDE.subtract(acc[0], value) if isinstance(value, Decimal) else acc[0] - value
            acc[1] -= 1

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Add the sums and counts."""
        acc[0] = _WIDE.add(acc[0], other[0]) if isinstance(acc[0], Decimal) else acc[0] + other[0]
        acc[1] += other[1]


@aggregate
class Sum(_Numeric):
    """SUM."""

    name = "SUM"
    doc = "Returns the sum of the numbers. Returns NULL if there are none."

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return the type of the argument; decimals have 38 digits."""
        data_type = arg_types[0] if len(arg_types) == 1 else None
        if isinstance(data_type, t.DecimalType):
            return t.DecimalType(38, data_type.scale)
        return data_type.nullable() if isinstance(data_type, t.NumericType) else None

    @classmethod
    def spark(cls, call: SparkAggregate) -> str | None:
        """Spell SUM with a cast to Flink's result type."""
        if not isinstance(call.call.arg_types[0], t.NumericType):
            return None
        return f"CAST(SUM({call.inside}){call.tail} AS {call.type_name})"

    def value(self, acc: Accumulator) -> Any:
        """Return the sum."""
        if acc[1] == 0:
            return None
        data_type = self.call.type
        if isinstance(data_type, t.DecimalType):
            return round_decimal(acc[0], data_type)
        if isinstance(data_type, t.FloatType):
            return float(np.float32(acc[0]))
        return wrap_integer(acc[0], data_type)


@aggregate
class Sum0(Sum):
    """$SUM0: a sum that is 0 if there are no numbers."""

    name = "$SUM0"
    doc = "Returns the sum of the numbers. Returns 0 if there are none."

    @classmethod
    def spark(cls, call: SparkAggregate) -> str | None:
        """Spell SUM with 0 instead of NULL."""
        total = super().spark(call)
        return None if total is None else f"COALESCE({total}, CAST(0 AS {call.type_name}))"

    def value(self, acc: Accumulator) -> Any:
        """Return the sum."""
        result = super().value(acc)
        return self.create()[0] if result is None else result


@aggregate
class Avg(_Numeric):
    """AVG."""

    name = "AVG"
    doc = "Returns the average of the numbers, of the same type. Returns NULL if there are none."

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return the type of the argument; decimals have 38 digits and a scale of at least 6."""
        data_type = arg_types[0] if len(arg_types) == 1 else None
        if isinstance(data_type, t.DecimalType):
            return t.DecimalType(38, max(6, data_type.scale))
        return data_type.nullable() if isinstance(data_type, t.NumericType) else None

    @classmethod
    def spark(cls, call: SparkAggregate) -> str | None:
        """Spell AVG; the average of exact numbers is a quotient, because Spark's AVG has another result type."""
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
        """Return the average."""
        total, count = acc
        if count == 0:
            return None
        data_type = self.call.type
        if isinstance(data_type, t.DecimalType):
            return round_decimal(_WIDE.divide(total, Decimal(count)), data_type)
        if isinstance(data_type, t.IntegerType):
            return wrap_integer(total // count if total >= 0 else -(-total // count), data_type)
        return float(np.float32(total / count)) if isinstance(data_type, t.FloatType) else total / count


class _Variance(Aggregation):
    """Variances by Welford's algorithm; `of_sample` divides by n - 1, `takes_root` returns the standard deviation."""

    of_sample: ClassVar[bool] = False
    takes_root: ClassVar[bool] = False

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return the type of AVG."""
        return Avg.result_type(arg_types)

    def create(self) -> Accumulator:
        """Return count, mean and sum of squared differences from the mean."""
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
        """Retract a number."""
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
        """Combine count, mean and sum of squared differences by Chan's formula."""
        count = acc[0] + other[0]
        if not other[0] or not count:
            return
        delta = other[1] - acc[1]
        acc[2] += other[2] + delta * delta * acc[0] * other[0] / count
        acc[1] += delta * other[0] / count
        acc[0] = count

    def value(self, acc: Accumulator) -> Any:
        """Return the variance or the standard deviation."""
        count = acc[0]
        if count == 0 or (self.of_sample and count == 1):
            return None
        result = acc[2] / (count - 1 if self.of_sample else count)
        if self.takes_root:
            result = math.sqrt(result) if result > 0 else 0.0
        data_type = self.call.type
        if isinstance(data_type, t.IntegerType):
            return int(result)
        return round_decimal(Decimal(result), data_type) if isinstance(data_type, t.DecimalType) else result


for _name, _of_sample, _takes_root, _doc in (
    ("VAR_POP", False, False, "Returns the population variance of the numbers."),
    ("VAR_SAMP", True, False, "Returns the sample variance of the numbers."),
    ("VARIANCE", True, False, "Returns the sample variance of the numbers."),
    ("STDDEV_POP", False, True, "Returns the population standard deviation of the numbers."),
    ("STDDEV_SAMP", True, True, "Returns the sample standard deviation of the numbers."),
    ("STDDEV", True, True, "Returns the sample standard deviation of the numbers."),
):
    _attributes = {"name": _name, "doc": _doc, "of_sample": _of_sample, "takes_root": _takes_root}
    aggregate(type(_name.title(), (_Variance,), _attributes))


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
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return DOUBLE or ARRAY<DOUBLE>."""
        if len(arg_types) not in (2, 3) or not isinstance(arg_types[0], t.NumericType):
            return None
        return t.ArrayType(t.DOUBLE) if isinstance(arg_types[1], t.ArrayType) else t.DOUBLE

    def create(self) -> Accumulator:
        """Return an accumulator without values."""
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
        """Retract a number."""
        self._change(acc, values, -1)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Add the values with their counts."""
        for value, count in other[0].items():
            self._change(acc, (value, other[1], count), 1)

    def value(self, acc: Accumulator) -> Any:
        """Return the percentile."""
        if not acc[0] or acc[1] is None:
            return None
        ordered = sorted(acc[0].items())
        if isinstance(acc[1], tuple):
            return tuple(_percentile(ordered, float(p)) for p in acc[1])
        return _percentile(ordered, float(acc[1]))


def _percentile(ordered: list[tuple[float, int]], fraction: float) -> float:
    """Interpolate linearly between the two nearest values; `ordered` are values with their counts."""
    total = sum(count for _, count in ordered)
    position = fraction * (total - 1)
    low, high = math.floor(position), math.ceil(position)

    def value_at(index: int) -> float:
        cumulative_count = 0
        for value, count in ordered:
            cumulative_count += count
            if index < cumulative_count:
                return value
        return ordered[-1][0]

    lower, upper = value_at(low), value_at(high)
    return lower if low == high else (high - position) * lower + (position - low) * upper

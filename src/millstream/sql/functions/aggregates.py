"""Aggregate functions, each declared once.

Promises: an accumulator is a list of plain values, so it can be state; adding and taking back the same values in
any order leaves what never was. NULLs do not count unless the function says so.
Does not know: groups, windows, state.

Who makes one says whether values will ever be taken back: MIN, MAX and their kin remember all values only then."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Any, ClassVar

import numpy as np

from millstream.model.row import Row
from millstream.runtime.rowwise import failure
from millstream.sql import types as t
from millstream.sql.columns import converter, external, rounded
from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions import AggregateCall
from millstream.sql.functions.collections import json_text, plain_json
from millstream.sql.user_functions import TABLE_AGGREGATE, WrongResult

_WIDE = Context(prec=80)
Accumulator = list[Any]


class Aggregation(ABC):
    """One aggregate call, ready to compute."""

    name: ClassVar[str]
    doc: ClassVar[str]
    syntax: ClassVar[str] = ""
    retractable: ClassVar[bool] = True

    def __init__(self, call: AggregateCall, *, retracts: bool) -> None:
        self.call = call
        self.retracts = retracts

    @classmethod
    @abstractmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """The type of the result, None when the arguments do not fit."""

    @abstractmethod
    def create(self) -> Accumulator:
        """The accumulator of nothing."""

    @abstractmethod
    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Take values in."""

    @abstractmethod
    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Take values back."""

    @abstractmethod
    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Take another accumulator in."""

    @abstractmethod
    def value(self, acc: Accumulator) -> Any:
        """The result."""


AGGREGATES: dict[str, type[Aggregation]] = {}


def aggregate(cls: type[Aggregation]) -> type[Aggregation]:
    """Declare an aggregate function."""
    AGGREGATES[cls.name] = cls
    return cls


@aggregate
class Count(Aggregation):
    """COUNT."""

    name = "COUNT"
    doc = "How many rows there are, or how many in which the values are not NULL."
    syntax = "COUNT(*) or COUNT([DISTINCT] value, ...)"

    @classmethod
    def result_type(cls, _kinds: Sequence[t.DataType]) -> t.DataType | None:
        """BIGINT NOT NULL."""
        return t.BIGINT.not_null()

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
        """The sum."""
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
    doc = "The sum of the numbers; NULL when there are none."

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """As the argument; decimals get 38 digits."""
        kind = kinds[0] if len(kinds) == 1 else None
        if isinstance(kind, t.DecimalType):
            return t.DecimalType(38, kind.scale)
        return kind.nullable() if isinstance(kind, t.NumericType) else None

    def value(self, acc: Accumulator) -> Any:
        """The sum."""
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
    doc = "The sum of the numbers; 0 when there are none."

    def value(self, acc: Accumulator) -> Any:
        """The sum."""
        found = super().value(acc)
        return self.create()[0] if found is None else found


@aggregate
class Avg(_Numeric):
    """AVG."""

    name = "AVG"
    doc = "The mean of the numbers, in their own type; NULL when there are none."

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """As the argument; decimals get 38 digits and a scale of at least 6."""
        kind = kinds[0] if len(kinds) == 1 else None
        if isinstance(kind, t.DecimalType):
            return t.DecimalType(38, max(6, kind.scale))
        return kind.nullable() if isinstance(kind, t.NumericType) else None

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


class _Extreme(Aggregation):
    pick: ClassVar[Callable[..., Any]]

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """As the argument."""
        refused = t.MapType | t.MultisetType | t.ArrayType | t.RowType | t.RawType
        return None if len(kinds) != 1 or isinstance(kinds[0], refused) else t.plain(kinds[0]).nullable()

    def create(self) -> Accumulator:
        """Nothing; all values with their counts when they may be taken back."""
        return [{}] if self.retracts else [None]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Remember a value."""
        value = values[0]
        if value is None:
            return
        if self.retracts:
            acc[0][value] = acc[0].get(value, 0) + 1
            self._cleaned(acc, value)
        else:
            acc[0] = value if acc[0] is None else type(self).pick(acc[0], value)

    @staticmethod
    def _cleaned(acc: Accumulator, value: Any) -> None:
        if not acc[0][value]:
            del acc[0][value]

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Forget a value."""
        value = values[0]
        if value is not None:
            acc[0][value] = acc[0].get(value, 0) - 1
            self._cleaned(acc, value)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """The values of both."""
        if not self.retracts:
            self.add(acc, (other[0],))
            return
        for value, count in other[0].items():
            acc[0][value] = acc[0].get(value, 0) + count
            self._cleaned(acc, value)

    def value(self, acc: Accumulator) -> Any:
        """The extreme value."""
        if not self.retracts:
            return acc[0]
        known = [value for value, count in acc[0].items() if count > 0]
        return type(self).pick(known) if known else None


@aggregate
class Min(_Extreme):
    """MIN."""

    name = "MIN"
    doc = "The least value."
    pick = min


@aggregate
class Max(_Extreme):
    """MAX."""

    name = "MAX"
    doc = "The greatest value."
    pick = max


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
    ("VAR_POP", False, False, "The variance of the numbers."),
    ("VAR_SAMP", True, False, "The variance of numbers that are a sample."),
    ("VARIANCE", True, False, "The variance of numbers that are a sample."),
    ("STDDEV_POP", False, True, "The standard deviation of the numbers."),
    ("STDDEV_SAMP", True, True, "The standard deviation of numbers that are a sample."),
    ("STDDEV", True, True, "The standard deviation of numbers that are a sample."),
):
    aggregate(type(_name.title(), (_Variance,), {"name": _name, "doc": _doc, "sample": _sample, "root": _root}))


class _Ordered(Aggregation):
    """Values in the order they came, or in the order asked for."""

    keep_null: ClassVar[bool] = False

    def create(self) -> Accumulator:
        """An empty list."""
        return [[]]

    def _entry(self, values: tuple[Any, ...]) -> Any:
        return values[0]

    def _skipped(self, values: tuple[Any, ...]) -> bool:
        return values[0] is None and not self.keep_null

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Append."""
        if not self._skipped(values):
            acc[0].append(self._entry(values))

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Remove the first that is equal."""
        if not self._skipped(values):
            entry = self._entry(values)
            if entry in acc[0]:
                acc[0].remove(entry)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """One after the other."""
        acc[0].extend(other[0])


@aggregate
class ListAgg(_Ordered):
    """LISTAGG."""

    name = "LISTAGG"
    doc = "The strings, with a separator between them."
    syntax = "LISTAGG(string [, separator])"

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """STRING."""
        return t.STRING if len(kinds) in (1, 2) and all(map(t.is_text, kinds)) else None

    def value(self, acc: Accumulator) -> Any:
        """The strings as one."""
        separator = self.call.options[0] if self.call.options else ","
        return separator.join(acc[0]) if acc[0] else None


@aggregate
class ArrayAgg(_Ordered):
    """ARRAY_AGG."""

    name = "ARRAY_AGG"
    doc = "All values in an array, NULLs too unless they are ignored."
    syntax = "ARRAY_AGG([DISTINCT] value [{RESPECT | IGNORE} NULLS])"

    def _skipped(self, values: tuple[Any, ...]) -> bool:
        return values[0] is None and "IGNORE" in self.call.options

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """An array of the argument's type."""
        return t.ArrayType(t.plain(kinds[0])) if len(kinds) == 1 else None

    def value(self, acc: Accumulator) -> Any:
        """The array."""
        return tuple(acc[0]) if acc[0] else None


class _Edge(_Ordered):
    last: ClassVar[bool] = False

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """As the argument."""
        return t.plain(kinds[0]).nullable() if len(kinds) == 1 else None

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Remember a value; only the one that counts when none is ever taken back."""
        if self._skipped(values):
            return
        if self.retracts:
            acc[0].append(values[0])
        elif self.last or not acc[0]:
            acc[0] = [values[0]]

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """In this order."""
        for value in other[0]:
            self.add(acc, (value,))

    def value(self, acc: Accumulator) -> Any:
        """The first or last value."""
        return (acc[0][-1] if self.last else acc[0][0]) if acc[0] else None


@aggregate
class FirstValue(_Edge):
    """FIRST_VALUE."""

    name = "FIRST_VALUE"
    doc = "The first value that is not NULL."


@aggregate
class LastValue(_Edge):
    """LAST_VALUE."""

    name = "LAST_VALUE"
    doc = "The last value that is not NULL."
    last = True


@aggregate
class SingleValue(_Ordered):
    """SINGLE_VALUE: the value of a scalar subquery."""

    name = "SINGLE_VALUE"
    doc = "The only value of a query that may have one row at most."
    keep_null = True

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """As the argument."""
        return t.plain(kinds[0]).nullable()

    def value(self, acc: Accumulator) -> Any:
        """The value."""
        if len(acc[0]) > 1:
            msg = "a subquery that stands for one value gave more than one row"
            raise ValueError(msg)
        return acc[0][0] if acc[0] else None


@aggregate
class Collect(Aggregation):
    """COLLECT."""

    name = "COLLECT"
    doc = "The values as a multiset."

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """A multiset of the argument's type."""
        return t.MultisetType(t.plain(kinds[0]), null=False) if len(kinds) == 1 else None

    def create(self) -> Accumulator:
        """No values."""
        return [{}]

    def _change(self, acc: Accumulator, value: Any, by: int) -> None:
        if value is None:
            return
        count = acc[0].get(value, 0) + by
        if count:
            acc[0][value] = count
        else:
            del acc[0][value]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """One more."""
        self._change(acc, values[0], 1)

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """One less."""
        self._change(acc, values[0], -1)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Both together."""
        for value, count in other[0].items():
            self._change(acc, value, count)

    def value(self, acc: Accumulator) -> Any:
        """The multiset."""
        return tuple(acc[0].items())


@aggregate
class JsonObjectAgg(_Ordered):
    """JSON_OBJECTAGG."""

    name = "JSON_OBJECTAGG"
    doc = "A JSON object of all keys and values."
    syntax = "JSON_OBJECTAGG([KEY] key VALUE value [{NULL | ABSENT} ON NULL])"

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """STRING NOT NULL."""
        return t.VarCharType(2000, null=False) if len(kinds) == 2 else None

    def _skipped(self, values: tuple[Any, ...]) -> bool:
        return values[1] is None and "ABSENT" in self.call.options

    def _entry(self, values: tuple[Any, ...]) -> Any:
        return values

    def value(self, acc: Accumulator) -> Any:
        """The object."""
        make = plain_json(self.call.arg_types[1], "UTC")
        pairs = {key: None if value is None else make(value) for key, value in acc[0]}
        return json.dumps(dict(sorted(pairs.items())), separators=(",", ":"), ensure_ascii=False)


@aggregate
class JsonArrayAgg(_Ordered):
    """JSON_ARRAYAGG."""

    name = "JSON_ARRAYAGG"
    doc = "A JSON array of all values."
    syntax = "JSON_ARRAYAGG(value [{NULL | ABSENT} ON NULL])"

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """STRING NOT NULL."""
        return t.VarCharType(2000, null=False) if len(kinds) == 1 else None

    def _skipped(self, values: tuple[Any, ...]) -> bool:
        return values[0] is None and "ABSENT" in self.call.options

    def value(self, acc: Accumulator) -> Any:
        """The array."""
        make = plain_json(self.call.arg_types[0], "UTC")
        return json_text([None if value is None else make(value) for value in acc[0]])


@aggregate
class Percentile(Aggregation):
    """PERCENTILE."""

    name = "PERCENTILE"
    doc = "The percentile of the numbers, interpolated; an array of percentages gives an array."
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

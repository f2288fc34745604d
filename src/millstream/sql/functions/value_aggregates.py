"""Aggregates of values of any type: the least or greatest, the first or last, or all of them.

Promises: values are kept in the order of arrival; a retracted value is removed.
Does not know: groups, windows, state."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from millstream.sql.functions.aggregation import Accumulator, Aggregation, aggregate
from millstream.sql.functions.json_writing import create_json_converter, format_json
from millstream.sql.functions.spark import SparkAggregate, is_scalar, spell_error
from millstream.sql.types import data_types as t


class _Extreme(Aggregation):
    """MIN or MAX; `select` is the Python function min or max."""

    select: ClassVar[Callable[..., Any]]

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return the type of the argument."""
        if (
            len(arg_types) != 1
            or not arg_types[0].ordered
            or isinstance(arg_types[0], t.ArrayType | t.RowType | t.RawType)
        ):
            return None
        return t.strip_time_attribute(arg_types[0]).nullable()

    @classmethod
    def spark(cls, call: SparkAggregate) -> str | None:
        """Spell MIN or MAX of types that Spark orders as Flink does."""
        if not is_scalar(call.call.arg_types[0]):
            return None
        return f"{cls.name}({call.inside}){call.tail}"

    def create(self) -> Accumulator:
        """Return an accumulator of one value, or of all values with their counts if values can be retracted."""
        return [{}] if self.retracts else [None]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Add a value."""
        value = values[0]
        if value is None:
            return
        if self.retracts:
            acc[0][value] = acc[0].get(value, 0) + 1
            self._drop_if_zero(acc, value)
        else:
            acc[0] = value if acc[0] is None else type(self).select(acc[0], value)

    @staticmethod
    def _drop_if_zero(acc: Accumulator, value: Any) -> None:
        if not acc[0][value]:
            del acc[0][value]

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Retract a value."""
        value = values[0]
        if value is not None:
            acc[0][value] = acc[0].get(value, 0) - 1
            self._drop_if_zero(acc, value)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Merge the values."""
        if not self.retracts:
            self.add(acc, (other[0],))
            return
        for value, count in other[0].items():
            acc[0][value] = acc[0].get(value, 0) + count
            self._drop_if_zero(acc, value)

    def value(self, acc: Accumulator) -> Any:
        """Return the least or greatest value."""
        if not self.retracts:
            return acc[0]
        values = [value for value, count in acc[0].items() if count > 0]
        return type(self).select(values) if values else None


@aggregate
class Min(_Extreme):
    """MIN."""

    name = "MIN"
    doc = "Returns the least value."
    select = min


@aggregate
class Max(_Extreme):
    """MAX."""

    name = "MAX"
    doc = "Returns the greatest value."
    select = max


class _Ordered(Aggregation):
    """All values, in the order of arrival."""

    keep_null: ClassVar[bool] = False

    def create(self) -> Accumulator:
        """Return an empty list."""
        return [[]]

    def _entry(self, values: tuple[Any, ...]) -> Any:
        return values[0]

    def _is_skipped(self, values: tuple[Any, ...]) -> bool:
        return values[0] is None and not self.keep_null

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Append a value."""
        if not self._is_skipped(values):
            acc[0].append(self._entry(values))

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Remove the first equal value."""
        if not self._is_skipped(values):
            entry = self._entry(values)
            if entry in acc[0]:
                acc[0].remove(entry)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Append the values of the other accumulator."""
        acc[0].extend(other[0])


@aggregate
class ListAgg(_Ordered):
    """LISTAGG."""

    name = "LISTAGG"
    doc = "Concatenates the strings with a separator (a comma if not given). NULLs are left out."
    syntax = "LISTAGG(string [, separator])"

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return STRING."""
        return t.STRING if len(arg_types) in (1, 2) and all(map(t.is_text, arg_types)) else None

    def value(self, acc: Accumulator) -> Any:
        """Return the concatenated strings."""
        separator = self.call.options[0] if self.call.options else ","
        return separator.join(acc[0]) if acc[0] else None


@aggregate
class ArrayAgg(_Ordered):
    """ARRAY_AGG."""

    name = "ARRAY_AGG"
    doc = "Returns all values as an array, with NULLs unless IGNORE NULLS is given."
    syntax = "ARRAY_AGG([DISTINCT] value [{RESPECT | IGNORE} NULLS])"

    def _is_skipped(self, values: tuple[Any, ...]) -> bool:
        return values[0] is None and "IGNORE" in self.call.options

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return an array of the type of the argument."""
        return t.ArrayType(t.strip_time_attribute(arg_types[0])) if len(arg_types) == 1 else None

    def value(self, acc: Accumulator) -> Any:
        """Return the array."""
        return tuple(acc[0]) if acc[0] else None


class _FirstOrLast(_Ordered):
    """FIRST_VALUE, or LAST_VALUE if `is_last`."""

    is_last: ClassVar[bool] = False

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return the type of the argument."""
        return t.strip_time_attribute(arg_types[0]).nullable() if len(arg_types) == 1 else None

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Add a value; if values are not retracted, only the result is kept."""
        if self._is_skipped(values):
            return
        if self.retracts:
            acc[0].append(values[0])
        elif self.is_last or not acc[0]:
            acc[0] = [values[0]]

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Add the values of the other accumulator."""
        for value in other[0]:
            self.add(acc, (value,))

    def value(self, acc: Accumulator) -> Any:
        """Return the first or last value."""
        return (acc[0][-1] if self.is_last else acc[0][0]) if acc[0] else None


@aggregate
class FirstValue(_FirstOrLast):
    """FIRST_VALUE."""

    name = "FIRST_VALUE"
    doc = "Returns the first value that is not NULL."


@aggregate
class LastValue(_FirstOrLast):
    """LAST_VALUE."""

    name = "LAST_VALUE"
    doc = "Returns the last value that is not NULL."
    is_last = True


@aggregate
class SingleValue(_Ordered):
    """SINGLE_VALUE: the value of a scalar subquery."""

    name = "SINGLE_VALUE"
    doc = "Returns the only value. Fails if there is more than one."
    keep_null = True

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return the type of the argument."""
        return t.strip_time_attribute(arg_types[0]).nullable()

    @classmethod
    def spark(cls, call: SparkAggregate) -> str | None:
        """Spell the only value; more than one row raises an error."""
        if call.call.distinct or call.tail:
            return None
        failure = spell_error("a scalar subquery returned more than one row", call.type_name)
        return f"CASE WHEN COUNT(*) > 1 THEN {failure} ELSE FIRST({call.args}) END"

    def value(self, acc: Accumulator) -> Any:
        """Return the value."""
        if len(acc[0]) > 1:
            msg = "a scalar subquery returned more than one row"
            raise ValueError(msg)
        return acc[0][0] if acc[0] else None


@aggregate
class Collect(Aggregation):
    """COLLECT."""

    name = "COLLECT"
    doc = "Returns the values that are not NULL as a multiset."

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return a multiset of the type of the argument."""
        return t.MultisetType(t.strip_time_attribute(arg_types[0]), null=False) if len(arg_types) == 1 else None

    def create(self) -> Accumulator:
        """Return an accumulator without values."""
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
        """Add a value."""
        self._change(acc, values[0], 1)

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Retract a value."""
        self._change(acc, values[0], -1)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Add the counts of the other accumulator."""
        for value, count in other[0].items():
            self._change(acc, value, count)

    def value(self, acc: Accumulator) -> Any:
        """Return the multiset."""
        return tuple(acc[0].items())


@aggregate
class JsonObjectAgg(_Ordered):
    """JSON_OBJECTAGG."""

    name = "JSON_OBJECTAGG"
    doc = "Returns a JSON object of the keys and values."
    syntax = "JSON_OBJECTAGG([KEY] key VALUE value [{NULL | ABSENT} ON NULL])"

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return STRING NOT NULL."""
        return t.VarCharType(2000, null=False) if len(arg_types) == 2 else None

    def _is_skipped(self, values: tuple[Any, ...]) -> bool:
        return values[1] is None and "ABSENT" in self.call.options

    def _entry(self, values: tuple[Any, ...]) -> Any:
        return values

    def value(self, acc: Accumulator) -> Any:
        """Return the JSON object."""
        convert = create_json_converter(self.call.arg_types[1], "UTC")
        members = {key: None if value is None else convert(value) for key, value in acc[0]}
        return json.dumps(dict(sorted(members.items())), separators=(",", ":"), ensure_ascii=False)


@aggregate
class JsonArrayAgg(_Ordered):
    """JSON_ARRAYAGG."""

    name = "JSON_ARRAYAGG"
    doc = "Returns a JSON array of the values."
    syntax = "JSON_ARRAYAGG(value [{NULL | ABSENT} ON NULL])"

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return STRING NOT NULL."""
        return t.VarCharType(2000, null=False) if len(arg_types) == 1 else None

    def _is_skipped(self, values: tuple[Any, ...]) -> bool:
        return values[0] is None and "ABSENT" in self.call.options

    def value(self, acc: Accumulator) -> Any:
        """Return the array."""
        convert = create_json_converter(self.call.arg_types[0], "UTC")
        return format_json([None if value is None else convert(value) for value in acc[0]])

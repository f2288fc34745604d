"""Generators of random columns of SQL types, for the connector datagen.

Promises: a column depends on a key and on the indexes of its rows alone, except for dates and times inside of other
values, which are those of the creation of the reader. Values are generated as whole columns.
Does not know: options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.connectors.datagen import Field, RandomBoolean, RandomFloat, RandomInt, random_columns
from millstream.connectors.datagen.random_columns import Hashes
from millstream.sql.columns import SqlTypeInfo, arrow_type, is_nested
from millstream.sql.types import data_types as t
from millstream.types.factory import TypeInformation

_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_NO_COLUMNS: Mapping[str, pa.Array] = {}


@dataclass(frozen=True)
class GeneratedColumn(Field, ABC):
    """A column of values of a type, of which a proportion, the `null_rate`, is NULL."""

    data_type: t.DataType
    null_rate: float = 0.0

    @property
    def value_type(self) -> TypeInformation:
        """The SQL type."""
        return SqlTypeInfo(self.data_type)

    def column(self, key: int, indexes: Hashes, before: Mapping[str, pa.Array]) -> pa.Array:
        """Return the values at `indexes`."""
        values = self.draw(key, indexes)
        if not self.null_rate:
            return values
        words = random_columns.hash_indexes(random_columns.derive_key(key, "null"), indexes)
        is_null = random_columns.to_fractions(words) < self.null_rate
        return values.take(pa.array(np.arange(len(indexes)), mask=is_null))

    def at_time(self, now: int) -> GeneratedColumn:
        """Return the column for a processing time."""
        return self

    @abstractmethod
    def draw(self, key: int, indexes: Hashes) -> pa.Array:
        """Return a value for each index."""

    def draw_part(self, name: str, key: int, indexes: Hashes) -> pa.Array:
        """Return the values of this column as a part of another one, which has the key."""
        return self.column(random_columns.derive_key(key, name), indexes, _NO_COLUMNS)


@dataclass(frozen=True)
class IntegerColumn(GeneratedColumn):
    """Integers, and intervals as their internal numbers, from `low` to `high`."""

    low: int = 0
    high: int = 0

    def draw(self, key: int, indexes: Hashes) -> pa.Array:
        """Return a value for each index."""
        return RandomInt(self.low, self.high).column(key, indexes, _NO_COLUMNS).cast(arrow_type(self.data_type))


@dataclass(frozen=True)
class FloatColumn(GeneratedColumn):
    """FLOAT, DOUBLE and DECIMAL from `low` to below `high`."""

    low: float = 0.0
    high: float = 0.0

    def draw(self, key: int, indexes: Hashes) -> pa.Array:
        """Return a value for each index."""
        return RandomFloat(self.low, self.high).column(key, indexes, _NO_COLUMNS).cast(arrow_type(self.data_type))


@dataclass(frozen=True)
class BooleanColumn(GeneratedColumn):
    """TRUE or FALSE."""

    def draw(self, key: int, indexes: Hashes) -> pa.Array:
        """Return a value for each index."""
        return RandomBoolean().column(key, indexes, _NO_COLUMNS)


@dataclass(frozen=True)
class BytesColumn(GeneratedColumn):
    """Hexadecimal digits, or bytes for a binary type: `length` of them, or a random number from 1 to less than it."""

    length: int = 0
    has_variable_length: bool = False

    def draw(self, key: int, indexes: Hashes) -> pa.Array:
        """Return a value for each index."""
        words = [
            random_columns.hash_indexes(random_columns.derive_key(key, str(block)), indexes)
            for block in range(-(-self.length // 8))
        ]
        count = len(indexes)
        matrix = np.stack(words, axis=1).view(np.uint8).reshape(count, -1)[:, : self.length] if words else None
        if matrix is None:
            matrix = np.empty((count, 0), np.uint8)
        if not t.is_bytes(self.data_type):
            matrix = _HEX[matrix & 15]
        lengths = np.full(count, self.length)
        if self.has_variable_length and self.length > 1:
            drawn = random_columns.hash_indexes(random_columns.derive_key(key, "length"), indexes)
            lengths = random_columns.draw_below(self.length - 1, drawn).astype(np.int64) + 1
            matrix = matrix[np.arange(self.length)[None, :] < lengths[:, None]]
        buffers = [None, _compute_offsets(lengths).buffers()[1], pa.py_buffer(np.ascontiguousarray(matrix))]
        return pa.Array.from_buffers(arrow_type(self.data_type), count, buffers)


@dataclass(frozen=True)
class TimeColumn(GeneratedColumn):
    """The current date, time or timestamp; timestamps are earlier by at most `max_past` milliseconds."""

    max_past: int = 0
    now: int = 0

    def at_time(self, now: int) -> GeneratedColumn:
        """Return the column for a processing time."""
        return replace(self, now=now)

    def draw(self, key: int, indexes: Hashes) -> pa.Array:
        """Return a value for each index."""
        millis = RandomInt(self.now - self.max_past, self.now).column(key, indexes, _NO_COLUMNS)
        timestamps = millis.cast(pa.timestamp("ms", "UTC"))
        if isinstance(self.data_type, t.LocalZonedTimestampType):
            return timestamps.cast(arrow_type(self.data_type))
        return timestamps.cast(pa.timestamp("ms")).cast(arrow_type(self.data_type))


@dataclass(frozen=True)
class PastColumn(IntegerColumn):
    """Milliseconds before the processing time, from which the planner computes dates, times and timestamps."""

    data_type: t.DataType = t.BIGINT


@dataclass(frozen=True)
class ArrayColumn(GeneratedColumn):
    """Arrays of `length` elements."""

    element: GeneratedColumn | None = None
    length: int = 0

    def at_time(self, now: int) -> GeneratedColumn:
        """Return the column for a processing time."""
        return replace(self, element=_set_time(self.element, now))

    def draw(self, key: int, indexes: Hashes) -> pa.Array:
        """Return a value for each index."""
        assert self.element is not None
        elements = self.element.draw_part("element", key, _compute_inner_indexes(indexes, self.length))
        offsets = _compute_offsets(np.full(len(indexes), self.length))
        return pa.ListArray.from_arrays(offsets, elements, type=arrow_type(self.data_type))


@dataclass(frozen=True)
class MapColumn(GeneratedColumn):
    """Maps and multisets of at most `length` entries: equal keys are one entry."""

    key_column: GeneratedColumn | None = None
    value_column: GeneratedColumn | None = None
    length: int = 0

    def at_time(self, now: int) -> GeneratedColumn:
        """Return the column for a processing time."""
        return replace(self, key_column=_set_time(self.key_column, now), value_column=_set_time(self.value_column, now))

    def draw(self, key: int, indexes: Hashes) -> pa.Array:
        """Return a value for each index."""
        assert self.key_column is not None
        assert self.value_column is not None
        inner = _compute_inner_indexes(indexes, self.length)
        keys = self.key_column.draw_part("key", key, inner)
        values = self.value_column.draw_part("value", key, inner)
        rows = np.repeat(np.arange(len(indexes)), self.length)
        kept = np.flatnonzero(~keys.is_null().to_numpy(zero_copy_only=False))
        if not is_nested(self.key_column.data_type):
            codes = pc.dictionary_encode(keys.take(pa.array(kept))).indices.to_numpy()
            _, first = np.unique(rows[kept] * max(len(keys), 1) + codes, return_index=True)
            kept = kept[np.sort(first)]
        offsets = _compute_offsets(np.bincount(rows[kept], minlength=len(indexes)))
        selected_rows = pa.array(kept)
        return pa.MapArray.from_arrays(
            offsets, keys.take(selected_rows), values.take(selected_rows), type=arrow_type(self.data_type)
        )


@dataclass(frozen=True)
class RowColumn(GeneratedColumn):
    """Rows of generated fields."""

    fields: tuple[GeneratedColumn, ...] = ()

    def at_time(self, now: int) -> GeneratedColumn:
        """Return the column for a processing time."""
        return replace(self, fields=tuple(field.at_time(now) for field in self.fields))

    def draw(self, key: int, indexes: Hashes) -> pa.Array:
        """Return a value for each index."""
        assert isinstance(self.data_type, t.RowType)
        columns = [f.draw_part(name, key, indexes) for name, f in zip(self.data_type.names, self.fields, strict=True)]
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type(self.data_type)))


@dataclass(frozen=True)
class SequenceColumn(GeneratedColumn):
    """start, start + 1, start + 2, ... as numbers, texts, or bytes in big-endian order."""

    start: int = 0
    _BIG_ENDIAN: ClassVar[str] = ">i8"

    def draw(self, key: int, indexes: Hashes) -> pa.Array:
        """Return a value for each index."""
        numbers = indexes.view(np.int64) + np.int64(self.start)
        if t.is_bytes(self.data_type):
            lengths = np.full(len(indexes), 8)
            buffers = [None, _compute_offsets(lengths).buffers()[1], pa.py_buffer(numbers.astype(self._BIG_ENDIAN))]
            return pa.Array.from_buffers(pa.binary(), len(indexes), buffers)
        values: Any = pa.array(numbers)
        if isinstance(self.data_type, t.DecimalType):
            values = values.cast(pa.decimal128(19, 0))
        return values.cast(arrow_type(self.data_type))


def _set_time(column: GeneratedColumn | None, now: int) -> GeneratedColumn | None:
    return None if column is None else column.at_time(now)


def _compute_inner_indexes(indexes: Hashes, length: int) -> Hashes:
    """Return the indexes of the elements of collections."""
    elements = np.arange(length, dtype=np.uint64)
    return (indexes[:, None] * np.uint64(length) + elements[None, :]).reshape(-1)


def _compute_offsets(lengths: Any) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets)

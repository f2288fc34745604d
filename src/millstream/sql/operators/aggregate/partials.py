"""Partial aggregates of whole columns: how chunks of rows become one row for each key, are merged and finished.

Promises: aggregating chunks and merging them equals aggregating everything at once; results are those of the
accumulators, whole numbers wrapped and means cut as theirs are.
Does not know: state, windows, changelogs.

A chunk is a record batch: the key columns k0, k1, ..., then the partial columns p0, p1, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import arrow_type, internal_values, is_nested
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.aggregation import Aggregation
from millstream.sql.types import data_types as t

_KNOWN = ("COUNT", "SUM", "AVG", "MIN", "MAX")
ROWS = AggregateCall("COUNT", (), t.BIGINT, ())
_ROWS_PART = (None, None, "count_all")
_MERGED = {"count": "sum", "count_all": "sum", "sum": "sum", "min": "min", "max": "max"}


def can_aggregate(calls: Sequence[AggregateCall], keys: Sequence[t.DataType]) -> bool:
    """Whether columns can be aggregated as such."""
    if any(is_nested(kind) or t.is_approximate(kind) for kind in keys):
        return False  # Arrow groups neither lists nor, by SQL's rules, NaN
    for call in calls:
        fits = call.function in _KNOWN and not call.distinct and call.user is None and len(call.args) <= 1
        if not fits or any(is_nested(kind) or isinstance(kind, t.BooleanType) for kind in call.arg_types):
            return False
        if call.function in ("SUM", "AVG") and t.is_approximate(call.arg_types[0]):
            continue
        if call.function in ("MIN", "MAX") and isinstance(call.arg_types[0], t.DayTimeIntervalType | t.TimeType):
            return False
    return True


class Partials:
    """The partial aggregates of some calls by some key columns."""

    def __init__(self, calls: Sequence[AggregateCall], keys: Sequence[int], schema: t.RowType) -> None:
        self._calls, self._keys, self._schema = calls, keys, schema
        self._key_names = [f"k{i}" for i in range(len(keys))]
        self.parts: list[tuple[int | None, int | None, str]] = []  # column, filter, how
        self._needed: list[list[int]] = []
        for call in calls:
            column = call.args[0] if call.args else None
            hows = {"COUNT": ["count" if call.args else "count_all"], "SUM": ["sum", "count"], "AVG": ["sum", "count"]}
            wanted = [(column, call.filter, how) for how in hows.get(call.function, [call.function.lower()])]
            self.parts += [part for part in wanted if part not in self.parts]
            self._needed.append([self.parts.index(part) for part in wanted])

    def chunk(self, array: pa.Array) -> pa.RecordBatch:
        """One row for each key of some rows."""
        columns: dict[str, Any] = {name: array.field(i) for name, i in zip(self._key_names, self._keys, strict=True)}
        wanted: list[tuple[Any, str]] = []
        for place, (column, condition, how) in enumerate(self.parts):
            name = f"v{place}"
            if how == "count_all" and condition is None:
                wanted.append(([], "count_all"))
                continue
            values = pa.repeat(pa.scalar(1, pa.int8()), len(array)) if column is None else array.field(column)
            if condition is not None:
                values = pc.if_else(pc.fill_null(array.field(condition), False), values, pa.scalar(None, values.type))
            columns[name] = _summable(values) if how == "sum" else values
            wanted.append((name, "count" if how == "count_all" else how))
        made = pa.table(columns) if columns else pa.table({"$": pa.nulls(len(array))})
        grouped = made.group_by(self._key_names, use_threads=False).aggregate(wanted)
        names = ["count_all" if c == [] else f"{c}_{how}" for c, how in wanted]
        arrays = [grouped.column(n) for n in (*self._key_names, *names)]
        return _one(pa.table(arrays, names=[*self._key_names, *(f"p{i}" for i in range(len(names)))]))

    def singly(self, array: pa.Array) -> list[pa.Array]:
        """The columns of a chunk in which each row stands for itself."""
        columns = [array.field(i) for i in self._keys]
        one, none = pa.scalar(1, pa.int64()), pa.scalar(0, pa.int64())
        for column, condition, how in self.parts:
            counts = how.startswith("count")
            values = pa.repeat(one, len(array)) if column is None else array.field(column)
            if condition is not None:
                values = pc.if_else(pc.fill_null(array.field(condition), False), values, pa.scalar(None, values.type))
            if counts:
                values = pc.if_else(pc.is_valid(values), one, none)
            columns.append(_summable(values) if how == "sum" else values)
        return columns

    def merged(self, chunks: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """One chunk with one row for each key, of chunks in which it may come more than once."""
        wanted = [(f"p{i}", _MERGED[how]) for i, (_, _, how) in enumerate(self.parts)]
        table = pa.Table.from_batches(chunks)
        made = table.group_by(self._key_names, use_threads=False).aggregate(wanted)
        arrays = [made.column(n) for n in (*self._key_names, *(f"{p}_{how}" for p, how in wanted))]
        cast = [a.cast(f.type) if a.type != f.type else a for a, f in zip(arrays, chunks[0].schema, strict=True)]
        return _one(pa.table(cast, schema=chunks[0].schema))

    def given(self, array: pa.Array) -> pa.RecordBatch:
        """Rows that are partial aggregates already as a chunk, in which a key may come more than once."""
        return self.named([array.field(i) for i in range(len(self._key_names) + len(self.parts))])

    def named(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        """The columns of a chunk as one."""
        names = [*self._key_names, *(f"p{i}" for i in range(len(self.parts)))]
        return pa.RecordBatch.from_arrays(list(columns), names=names)

    def regrouped(self, array: pa.Array) -> pa.RecordBatch:
        """One chunk with one row for each key, of rows that are partial aggregates already."""
        return self.merged([self.given(array)])

    def rows(self, chunk: pa.RecordBatch) -> np.ndarray:
        """How many rows each row of a chunk is made of; ROWS is among the calls."""
        return chunk.column(len(self._key_names) + self.parts.index(_ROWS_PART)).to_numpy()  # type: ignore[no-any-return]

    def part_types(self) -> list[t.DataType]:
        """The logical types of the partial columns."""
        made: list[t.DataType] = []
        for column, _, how in self.parts:
            kind = t.BIGINT if how.startswith("count") or column is None else t.plain(self._schema.types[column])
            if how == "sum":
                wide = t.DecimalType(38, kind.scale) if isinstance(kind, t.DecimalType) else t.BIGINT
                kind = t.DOUBLE if t.is_approximate(kind) else wide
            made.append(kind.nullable())
        return made

    def added(self, before: Sequence[pa.Array], more: Sequence[pa.Array]) -> list[pa.Array]:
        """Partial columns of the same keys, added up."""
        made = []
        for (_, _, how), one, other in zip(self.parts, before, more, strict=True):
            if how in ("min", "max"):
                made.append((pc.min_element_wise if how == "min" else pc.max_element_wise)(one, other))
            elif pa.types.is_decimal(one.type):
                wide = pa.decimal256(60, one.type.scale)
                total = pc.add(_or_zero(one).cast(wide), _or_zero(other).cast(wide)).cast(one.type)
                unknown = pc.and_(pc.is_null(one), pc.is_null(other))
                made.append(pc.if_else(unknown, pa.scalar(None, total.type), total))
            else:
                both = pc.add(_or_zero(one), _or_zero(other))
                unknown = pc.and_(pc.is_null(one), pc.is_null(other))
                made.append(pc.if_else(unknown, pa.scalar(None, both.type), both))
        return made

    def finished(self, parts: Sequence[pa.Array], functions: Sequence[Aggregation]) -> list[pa.Array]:
        """The results, one column for each call, of partial columns."""
        made: list[pa.Array] = []
        for call, function, needed in zip(self._calls, functions, self._needed, strict=True):
            wanted = arrow_type(call.type)
            part = parts[needed[0]]
            if call.function in ("COUNT", "MIN", "MAX"):
                made.append(part if part.type == wanted else part.cast(wanted))
                continue
            count = parts[needed[1]]
            if isinstance(call.type, t.DecimalType) or (call.function == "AVG" and isinstance(call.type, t.FloatType)):
                pairs = zip(internal_values(part, call.type), internal_values(count, t.BIGINT), strict=True)
                made.append(pa.array([function.value([total or 0, n]) for total, n in pairs], wanted))
                continue
            if call.function == "AVG":
                divisor = pc.if_else(pc.equal(count, 0), None, count)
                part = pc.divide(part, divisor.cast(part.type))
            made.append(pc.cast(part, wanted, safe=False))
        return made


def _or_zero(values: pa.Array) -> pa.Array:
    return pc.fill_null(values, pa.scalar(0, pa.int8()).cast(values.type))


def _summable(values: pa.Array) -> pa.Array:
    return values.cast(pa.decimal128(38, values.type.scale)) if pa.types.is_decimal(values.type) else values


def _one(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)

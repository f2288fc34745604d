"""Vectorized partial aggregates: rows are aggregated to chunks with one row for each key, which are merged and
finished.

Promises: aggregating rows in chunks and merging these equals aggregating all rows at once. Results equal those of the
row-wise accumulators: integers overflow, and averages are truncated in the same way.
Does not know: state, windows, changelogs.

A chunk is a record batch: the key columns k0, k1, ..., then the partial columns p0, p1, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import arrow_type, is_nested, to_internal_values
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.aggregation import Aggregation
from millstream.sql.types import data_types as t

_SUPPORTED = ("COUNT", "SUM", "AVG", "MIN", "MAX")
ROWS = AggregateCall("COUNT", (), t.BIGINT, ())
_ROWS_PART = (None, None, "count_all")
_MERGE_FUNCTIONS = {"count": "sum", "count_all": "sum", "sum": "sum", "min": "min", "max": "max"}


def can_aggregate(calls: Sequence[AggregateCall], keys: Sequence[t.DataType]) -> bool:
    """Return whether the calls can be computed on columns."""
    if any(is_nested(data_type) or t.is_approximate(data_type) for data_type in keys):
        return False  # Arrow cannot group lists, and does not group NaN by the rules of SQL
    for call in calls:
        is_supported = call.function in _SUPPORTED and not call.distinct and call.user is None and len(call.args) <= 1
        if not is_supported or any(
            is_nested(data_type) or isinstance(data_type, t.BooleanType) for data_type in call.arg_types
        ):
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
        self.parts: list[tuple[int | None, int | None, str]] = []  # column, filter, aggregate function of Arrow
        self._needed: list[list[int]] = []
        for call in calls:
            column = call.args[0] if call.args else None
            functions = {
                "COUNT": ["count" if call.args else "count_all"],
                "SUM": ["sum", "count"],
                "AVG": ["sum", "count"],
            }
            call_parts = [
                (column, call.filter, function) for function in functions.get(call.function, [call.function.lower()])
            ]
            self.parts += [part for part in call_parts if part not in self.parts]
            self._needed.append([self.parts.index(part) for part in call_parts])

    def chunk(self, array: pa.Array) -> pa.RecordBatch:
        """Aggregate rows to one row for each key."""
        columns: dict[str, Any] = {name: array.field(i) for name, i in zip(self._key_names, self._keys, strict=True)}
        aggregations: list[tuple[Any, str]] = []
        for index, (column, condition, function) in enumerate(self.parts):
            name = f"v{index}"
            if function == "count_all" and condition is None:
                aggregations.append(([], "count_all"))
                continue
            values = pa.repeat(pa.scalar(1, pa.int8()), len(array)) if column is None else array.field(column)
            if condition is not None:
                values = pc.if_else(pc.fill_null(array.field(condition), False), values, pa.scalar(None, values.type))
            columns[name] = _widen_decimals(values) if function == "sum" else values
            aggregations.append((name, "count" if function == "count_all" else function))
        table = pa.table(columns) if columns else pa.table({"$": pa.nulls(len(array))})
        grouped = table.group_by(self._key_names, use_threads=False).aggregate(aggregations)
        names = ["count_all" if c == [] else f"{c}_{function}" for c, function in aggregations]
        arrays = [grouped.column(n) for n in (*self._key_names, *names)]
        return _to_batch(pa.table(arrays, names=[*self._key_names, *(f"p{i}" for i in range(len(names)))]))

    def pass_rows(self, array: pa.Array) -> list[pa.Array]:
        """Return the columns of a chunk with one row for each input row."""
        columns = [array.field(i) for i in self._keys]
        one, zero = pa.scalar(1, pa.int64()), pa.scalar(0, pa.int64())
        for column, condition, function in self.parts:
            is_count = function.startswith("count")
            values = pa.repeat(one, len(array)) if column is None else array.field(column)
            if condition is not None:
                values = pc.if_else(pc.fill_null(array.field(condition), False), values, pa.scalar(None, values.type))
            if is_count:
                values = pc.if_else(pc.is_valid(values), one, zero)
            columns.append(_widen_decimals(values) if function == "sum" else values)
        return columns

    def merge(self, chunks: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Merge chunks to one with one row for each key."""
        aggregations = [(f"p{i}", _MERGE_FUNCTIONS[function]) for i, (_, _, function) in enumerate(self.parts)]
        table = pa.Table.from_batches(chunks)
        grouped = table.group_by(self._key_names, use_threads=False).aggregate(aggregations)
        arrays = [grouped.column(n) for n in (*self._key_names, *(f"{p}_{function}" for p, function in aggregations))]
        cast = [a.cast(f.type) if a.type != f.type else a for a, f in zip(arrays, chunks[0].schema, strict=True)]
        return _to_batch(pa.table(cast, schema=chunks[0].schema))

    def from_rows(self, array: pa.Array) -> pa.RecordBatch:
        """Return rows of partial aggregates as a chunk, in which a key may occur several times."""
        return self.to_chunk([array.field(i) for i in range(len(self._key_names) + len(self.parts))])

    def to_chunk(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        """Return a chunk of columns."""
        names = [*self._key_names, *(f"p{i}" for i in range(len(self.parts)))]
        return pa.RecordBatch.from_arrays(list(columns), names=names)

    def merge_rows(self, array: pa.Array) -> pa.RecordBatch:
        """Merge rows of partial aggregates to a chunk with one row for each key."""
        return self.merge([self.from_rows(array)])

    def rows(self, chunk: pa.RecordBatch) -> np.ndarray:
        """Return the number of input rows of each row of a chunk; ROWS must be one of the calls."""
        return chunk.column(len(self._key_names) + self.parts.index(_ROWS_PART)).to_numpy()  # type: ignore[no-any-return]

    def part_types(self) -> list[t.DataType]:
        """Return the logical types of the partial columns."""
        part_types: list[t.DataType] = []
        for column, _, function in self.parts:
            data_type = (
                t.BIGINT
                if function.startswith("count") or column is None
                else t.strip_time_attribute(self._schema.types[column])
            )
            if function == "sum":
                wide = t.DecimalType(38, data_type.scale) if isinstance(data_type, t.DecimalType) else t.BIGINT
                data_type = t.DOUBLE if t.is_approximate(data_type) else wide
            part_types.append(data_type.nullable())
        return part_types

    def add(self, before: Sequence[pa.Array], more: Sequence[pa.Array]) -> list[pa.Array]:
        """Add partial columns of the same keys."""
        sums = []
        for (_, _, function), left, right in zip(self.parts, before, more, strict=True):
            if function in ("min", "max"):
                sums.append((pc.min_element_wise if function == "min" else pc.max_element_wise)(left, right))
            elif pa.types.is_decimal(left.type):
                wide = pa.decimal256(60, left.type.scale)
                total = pc.add(_replace_null_by_zero(left).cast(wide), _replace_null_by_zero(right).cast(wide)).cast(
                    left.type
                )
                both_null = pc.and_(pc.is_null(left), pc.is_null(right))
                sums.append(pc.if_else(both_null, pa.scalar(None, total.type), total))
            else:
                total = pc.add(_replace_null_by_zero(left), _replace_null_by_zero(right))
                both_null = pc.and_(pc.is_null(left), pc.is_null(right))
                sums.append(pc.if_else(both_null, pa.scalar(None, total.type), total))
        return sums

    def finish(self, parts: Sequence[pa.Array], functions: Sequence[Aggregation]) -> list[pa.Array]:
        """Compute the results from partial columns, one column for each call."""
        results: list[pa.Array] = []
        for call, function, needed in zip(self._calls, functions, self._needed, strict=True):
            result_type = arrow_type(call.type)
            part = parts[needed[0]]
            if call.function in ("COUNT", "MIN", "MAX"):
                results.append(part if part.type == result_type else part.cast(result_type))
                continue
            count = parts[needed[1]]
            if isinstance(call.type, t.DecimalType) or (call.function == "AVG" and isinstance(call.type, t.FloatType)):
                pairs = zip(to_internal_values(part, call.type), to_internal_values(count, t.BIGINT), strict=True)
                results.append(pa.array([function.value([total or 0, n]) for total, n in pairs], result_type))
                continue
            if call.function == "AVG":
                divisor = pc.if_else(pc.equal(count, 0), None, count)
                part = pc.divide(part, divisor.cast(part.type))
            results.append(pc.cast(part, result_type, safe=False))
        return results


def _replace_null_by_zero(values: pa.Array) -> pa.Array:
    return pc.fill_null(values, pa.scalar(0, pa.int8()).cast(values.type))


def _widen_decimals(values: pa.Array) -> pa.Array:
    return values.cast(pa.decimal128(38, values.type.scale)) if pa.types.is_decimal(values.type) else values


def _to_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)

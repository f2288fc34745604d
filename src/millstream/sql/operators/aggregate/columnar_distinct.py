"""GROUP BY with COUNT(DISTINCT ...) on columns, with mini-batches.

Promises: the changelog of GroupAggregateOperator with mini-batches, for insert-only input.
Does not know: retractions, state TTL, distinct aggregates other than counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import is_nested
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.aggregation import Aggregation
from millstream.sql.operators.aggregate.columnar_groups import ColumnarGroupAggregateOperator
from millstream.sql.operators.aggregate.distinct_counts import MAX_FILTERS, Counted, DistinctCounts
from millstream.sql.operators.aggregate.distinct_pairs import (
    CodedRows,
    Groups,
    aggregate_codes,
    group_rows,
    sort_by_code,
)
from millstream.sql.operators.aggregate.partials import can_aggregate
from millstream.sql.types import data_types as t


def can_count(calls: Sequence[AggregateCall], keys: Sequence[t.DataType]) -> bool:
    """Return whether the distinct calls are counts of single values, and the others can be computed on columns."""
    distinct = [call for call in calls if call.distinct]
    for call in distinct:
        if call.function != "COUNT" or len(call.args) != 1 or call.user is not None:
            return False
        if is_nested(call.arg_types[0]) or t.is_approximate(call.arg_types[0]):
            return False
    if not 0 < len({call.filter for call in distinct}) <= MAX_FILTERS:
        return False
    return can_aggregate([call for call in calls if not call.distinct], keys)


class DistinctPartials:
    """Partial aggregates; the last columns are the numbers of new values of the distinct counts."""

    def __init__(
        self, context: OperatorContext, calls: Sequence[AggregateCall], keys: Sequence[int], schema: t.RowType
    ) -> None:
        self._keys, self._width = keys, len(schema)
        self._plain = aggregate_codes(calls, schema)
        self._is_distinct = [call.distinct for call in calls]
        distinct_columns = [(call.args[0], call.filter) for call in calls if call.distinct]
        self._distinct_columns = list(dict.fromkeys(distinct_columns))
        self._count_indexes = [self._distinct_columns.index(column_filter) for column_filter in distinct_columns]
        self.counts = DistinctCounts(context, calls, keys, schema)
        self.parts = [
            *self._plain.parts,
            *((*column_filter, "count_distinct") for column_filter in self._distinct_columns),
        ]

    def chunk(self, array: pa.Array) -> pa.RecordBatch:
        """Aggregate rows to one row for each key."""
        groups = group_rows([array.field(i) for i in self._keys], len(array))
        plain_chunk = self._plain.chunk(CodedRows(array, self._width, groups.codes))
        return self._to_chunk(groups, plain_chunk, self.counts.count_new(array, groups))

    def merge_rows(self, array: pa.Array) -> pa.RecordBatch:
        """Merge rows of `PairPartials` to a chunk with one row for each key."""
        first = len(self._keys)
        last = first + len(self._plain.parts)
        groups = group_rows([array.field(i) for i in range(first)], len(array))
        parts = [pa.array(groups.codes), *(array.field(i) for i in range(first, last))]
        plain_chunk = self._plain.merge([self._plain.to_chunk(parts)])
        return self._to_chunk(groups, plain_chunk, self.counts.count_new_in_pairs(array, last, groups))

    def _to_chunk(
        self, groups: Groups, plain_chunk: pa.RecordBatch, new_counts: dict[Counted, np.ndarray]
    ) -> pa.RecordBatch:
        columns = [
            *groups.keys,
            *sort_by_code(plain_chunk),
            *(pa.array(new_counts[column_filter]) for column_filter in self._distinct_columns),
        ]
        names = [f"k{i}" for i in range(len(groups.keys))] + [f"p{i}" for i in range(len(self.parts))]
        return pa.RecordBatch.from_arrays(columns, names)

    def part_types(self) -> list[t.DataType]:
        """Return the logical types of the partial columns."""
        return [*self._plain.part_types(), *[t.BIGINT] * len(self._distinct_columns)]

    def add(self, before: Sequence[pa.Array], more: Sequence[pa.Array]) -> list[pa.Array]:
        """Add partial columns of the same keys."""
        first = len(self._plain.parts)
        counts = [pc.add(left, right) for left, right in zip(before[first:], more[first:], strict=True)]
        return [*self._plain.add(before[:first], more[:first]), *counts]

    def finish(self, parts: Sequence[pa.Array], functions: Sequence[Aggregation]) -> list[pa.Array]:
        """Compute the results from partial columns, one column for each call."""
        first = len(self._plain.parts)
        plain = [function for function, distinct in zip(functions, self._is_distinct, strict=True) if not distinct]
        results = iter(self._plain.finish(parts[:first], plain))
        counts = iter([parts[first + index] for index in self._count_indexes])
        return [next(counts) if distinct else next(results) for distinct in self._is_distinct]


class ColumnarDistinctAggregateOperator(ColumnarGroupAggregateOperator):
    """State: that of the base class; and by key, the values seen."""

    def partials(self, context: OperatorContext, spec: Any) -> Any:
        """Return partial aggregates that count new values."""
        return DistinctPartials(context, spec.calls, spec.keys, spec.input)

    def begin_epoch(self) -> None:
        """Discard rows of a failed attempt, and convert state that is stored in the other form."""
        super().begin_epoch()
        self._partials.counts.convert_stored_form()

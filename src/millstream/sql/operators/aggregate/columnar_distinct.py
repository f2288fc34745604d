"""GROUP BY with COUNT(DISTINCT ...) on whole columns, with mini-batches.

Promises: what GroupAggregateOperator tells with mini-batches, of rows that are never taken back.
Does not know: retraction, state that expires, distinct aggregates other than counts."""

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
from millstream.sql.operators.aggregate.distinct_counts import MOST_FILTERS, Counted, DistinctCounts
from millstream.sql.operators.aggregate.distinct_pairs import Coded, Groups, by_code, coded_partials, groups_of
from millstream.sql.operators.aggregate.partials import can_aggregate
from millstream.sql.types import data_types as t


def can_count(calls: Sequence[AggregateCall], keys: Sequence[t.DataType]) -> bool:
    """Whether the distinct calls are counts of single values, and columns can be aggregated for all others."""
    distinct = [call for call in calls if call.distinct]
    for call in distinct:
        if call.function != "COUNT" or len(call.args) != 1 or call.user is not None:
            return False
        if is_nested(call.arg_types[0]) or t.is_approximate(call.arg_types[0]):
            return False
    if not 0 < len({call.filter for call in distinct}) <= MOST_FILTERS:
        return False
    return can_aggregate([call for call in calls if not call.distinct], keys)


class DistinctPartials:
    """Partial aggregates, those of distinct counts last: how many values are new."""

    def __init__(
        self, context: OperatorContext, calls: Sequence[AggregateCall], keys: Sequence[int], schema: t.RowType
    ) -> None:
        self._keys, self._width = keys, len(schema)
        self._plain = coded_partials(calls, schema)
        self._which = [call.distinct for call in calls]
        counted = [(call.args[0], call.filter) for call in calls if call.distinct]
        self._counted = list(dict.fromkeys(counted))
        self._places = [self._counted.index(each) for each in counted]
        self.counts = DistinctCounts(context, calls, keys, schema)
        self.parts = [*self._plain.parts, *((*each, "count_distinct") for each in self._counted)]

    def chunk(self, array: pa.Array) -> pa.RecordBatch:
        """As Partials promises."""
        groups = groups_of([array.field(i) for i in self._keys], len(array))
        made = self._plain.chunk(Coded(array, self._width, groups.codes))
        return self._together(groups, made, self.counts.fresh(array, groups))

    def regrouped(self, array: pa.Array) -> pa.RecordBatch:
        """As Partials promises, of rows that PairPartials made."""
        first = len(self._keys)
        last = first + len(self._plain.parts)
        groups = groups_of([array.field(i) for i in range(first)], len(array))
        parts = [pa.array(groups.codes), *(array.field(i) for i in range(first, last))]
        made = self._plain.merged([self._plain.named(parts)])
        return self._together(groups, made, self.counts.fresh_of_pairs(array, last, groups))

    def _together(self, groups: Groups, made: pa.RecordBatch, fresh: dict[Counted, np.ndarray]) -> pa.RecordBatch:
        columns = [*groups.keys, *by_code(made), *(pa.array(fresh[each]) for each in self._counted)]
        names = [f"k{i}" for i in range(len(groups.keys))] + [f"p{i}" for i in range(len(self.parts))]
        return pa.RecordBatch.from_arrays(columns, names)

    def part_types(self) -> list[t.DataType]:
        """As Partials promises."""
        return [*self._plain.part_types(), *[t.BIGINT] * len(self._counted)]

    def added(self, before: Sequence[pa.Array], more: Sequence[pa.Array]) -> list[pa.Array]:
        """As Partials promises."""
        first = len(self._plain.parts)
        counts = [pc.add(one, other) for one, other in zip(before[first:], more[first:], strict=True)]
        return [*self._plain.added(before[:first], more[:first]), *counts]

    def finished(self, parts: Sequence[pa.Array], functions: Sequence[Aggregation]) -> list[pa.Array]:
        """As Partials promises."""
        first = len(self._plain.parts)
        plain = [function for function, distinct in zip(functions, self._which, strict=True) if not distinct]
        results = iter(self._plain.finished(parts[:first], plain))
        counts = iter([parts[first + place] for place in self._places])
        return [next(counts) if distinct else next(results) for distinct in self._which]


class ColumnarDistinctAggregateOperator(ColumnarGroupAggregateOperator):
    """State: that of its base; and by key, the values seen."""

    def partials(self, context: OperatorContext, spec: Any) -> Any:
        """Partials that know which values are new."""
        return DistinctPartials(context, spec.calls, spec.keys, spec.input)

    def begin_epoch(self) -> None:
        """Nothing is waiting; all state has the form that is used."""
        super().begin_epoch()
        self._partials.counts.settle()

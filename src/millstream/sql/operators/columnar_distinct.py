"""GROUP BY with COUNT(DISTINCT ...) on whole columns, with mini-batches.

Promises: what GroupAggregateOperator tells with mini-batches, of rows that are never taken back.
Does not know: retraction, state that expires, distinct aggregates other than counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.operator import OperatorContext
from millstream.sql import types as t
from millstream.sql.columns import internal_values, is_nested
from millstream.sql.expressions import AggregateCall
from millstream.sql.functions.aggregation import Aggregation
from millstream.sql.operators.columnar_groups import ColumnarGroupAggregateOperator
from millstream.sql.operators.distinct_counts import MOST_FILTERS, DistinctCounts
from millstream.sql.operators.partials import Partials, can_aggregate


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
        self._keys, self._schema = keys, schema
        self._plain = Partials([call for call in calls if not call.distinct], keys, schema)
        self._which = [call.distinct for call in calls]
        counted = [(call.args[0], call.filter) for call in calls if call.distinct]
        self._counted = list(dict.fromkeys(counted))
        self._places = [self._counted.index(each) for each in counted]
        self._counts = DistinctCounts(context, self._counted, keys, schema)
        self.parts = [*self._plain.parts, *((*each, "count_distinct") for each in self._counted)]

    def chunk(self, array: pa.Array) -> pa.RecordBatch:
        """As Partials promises."""
        made = self._plain.chunk(array)
        kinds = [self._schema.types[i] for i in self._keys]
        values = [internal_values(made.column(i), kind) for i, kind in enumerate(kinds)]
        fresh = self._counts.fresh(array, values[0] if len(values) == 1 else list(zip(*values, strict=True)))
        first = len(self._plain.parts)
        names = [*made.schema.names, *(f"p{first + i}" for i in range(len(self._counted)))]
        return pa.RecordBatch.from_arrays([*made.columns, *(pa.array(fresh[each]) for each in self._counted)], names)

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

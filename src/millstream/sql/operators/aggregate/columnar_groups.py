"""GROUP BY on whole columns, with mini-batches.

Promises: what GroupAggregateOperator tells with mini-batches, for aggregates that columns can be added up for, of rows
that are never taken back.
Does not know: retraction, state that expires.

The rows of an epoch are grouped once; their keys are then looked up and replaced together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import INSERT, UPDATE_AFTER, UPDATE_BEFORE, arrow_type, struct_of
from millstream.sql.functions.aggregates import aggregation
from millstream.sql.operators.aggregate.group_state import GroupState
from millstream.sql.operators.aggregate.partials import Partials
from millstream.sql.operators.epochs import EpochOperator


class ColumnarGroupAggregateOperator(EpochOperator):
    """State: the partial aggregates of each key."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.output)
        self._spec = spec
        self._partials = self.partials(context, spec)
        self._functions = [aggregation(call, retracts=False) for call in spec.calls]
        self._part_kinds = self._partials.part_types()
        nothing = tuple(0 if how.startswith("count") else None for _, _, how in self._partials.parts)
        self._state = GroupState(context, [spec.input.types[i] for i in spec.keys], self._part_kinds, nothing)

    def partials(self, context: OperatorContext, spec: Any) -> Any:
        """How rows become one row for each key."""
        return Partials(spec.calls, spec.keys, spec.input)

    def begin_epoch(self) -> None:
        """Nothing is waiting; all state has the form that is used."""
        super().begin_epoch()
        self._state.settle()

    def _take(self, array: pa.Array) -> None:
        chunk = self._partials.regrouped(array) if self._spec.partial else self._partials.chunk(array)
        known = self._state.known(chunk)
        width, chunk = len(self._spec.keys), known.chunk
        keys = chunk.columns[:width]
        more = [chunk.column(width + i).cast(arrow_type(kind), safe=False) for i, kind in enumerate(self._part_kinds)]
        after = self._partials.added(known.before, more)
        self._state.keep(keys, after, known.hashes)
        self._emit(keys, known.before, after, known.fresh)

    def _emit(self, keys: list[pa.Array], before: list[pa.Array], after: list[pa.Array], fresh: np.ndarray) -> None:
        old = self._partials.finished(before, self._functions)
        new = self._partials.finished(after, self._functions)
        changed = fresh.copy()
        for one, other in zip(old, new, strict=True):
            same = pc.fill_null(pc.equal(one, other), False)
            both = pc.and_(pc.is_null(one), pc.is_null(other))
            changed |= ~pc.or_(same, both).to_numpy(zero_copy_only=False)
        count = len(fresh)
        rows = np.flatnonzero(changed)
        told_before = ~fresh[rows] & self._spec.before
        places = np.repeat(rows, np.where(told_before, 2, 1))
        second = np.ones(len(places), dtype=bool)
        firsts = np.cumsum(np.where(told_before, 2, 1)) - np.where(told_before, 2, 1)
        second[firsts[told_before]] = False
        kinds = np.where(second, np.where(fresh[places], INSERT, UPDATE_AFTER), UPDATE_BEFORE).astype(np.int8)
        chosen = pa.array(np.where(second, places + count, places))
        taken = [column.take(pa.array(places)) for column in keys]
        results = [pa.concat_arrays([one, other]).take(chosen) for one, other in zip(old, new, strict=True)]
        self.emit_array(struct_of([*taken, *results], pa.array(kinds), self.output, len(places)))

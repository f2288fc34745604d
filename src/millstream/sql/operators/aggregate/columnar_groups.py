"""GROUP BY on columns, with mini-batches.

Promises: the changelog of GroupAggregateOperator with mini-batches, for aggregates that can be computed on columns and
insert-only input.
Does not know: retractions, state TTL.

The rows of a mini-batch are grouped once; then their keys are looked up and replaced together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import INSERT, UPDATE_AFTER, UPDATE_BEFORE, arrow_type, combine_columns
from millstream.sql.functions.aggregates import create_aggregation
from millstream.sql.operators.aggregate.group_state import GroupState
from millstream.sql.operators.aggregate.partials import Partials
from millstream.sql.operators.epochs import EpochOperator


class ColumnarGroupAggregateOperator(EpochOperator):
    """State: the partial aggregates of each key."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.output, limit=spec.mini_batch_size)
        self._spec = spec
        self._partials = self.partials(context, spec)
        self._functions = [create_aggregation(call, retracts=False) for call in spec.calls]
        self._part_types = self._partials.part_types()
        nothing = tuple(0 if function.startswith("count") else None for _, _, function in self._partials.parts)
        self._state = GroupState(context, [spec.input.types[i] for i in spec.keys], self._part_types, nothing)

    def partials(self, context: OperatorContext, spec: Any) -> Any:
        """Return the partial aggregates of the calls."""
        return Partials(spec.calls, spec.keys, spec.input)

    def begin_epoch(self) -> None:
        """Discard rows of a failed attempt, and convert state that is stored in the other form."""
        super().begin_epoch()
        self._state.convert_stored_form()

    def _process(self, array: pa.Array) -> None:
        chunk = self._partials.merge_rows(array) if self._spec.partial else self._partials.chunk(array)
        looked_up = self._state.look_up(chunk)
        width, chunk = len(self._spec.keys), looked_up.chunk
        keys = chunk.columns[:width]
        added = [
            chunk.column(width + i).cast(arrow_type(data_type), safe=False)
            for i, data_type in enumerate(self._part_types)
        ]
        after = self._partials.add(looked_up.before, added)
        self._state.put(keys, after, looked_up.hashes)
        self._emit(keys, looked_up.before, after, looked_up.is_new)

    def _emit(self, keys: list[pa.Array], before: list[pa.Array], after: list[pa.Array], is_new: np.ndarray) -> None:
        old = self._partials.finish(before, self._functions)
        new = self._partials.finish(after, self._functions)
        changed = is_new.copy()
        for old_result, new_result in zip(old, new, strict=True):
            is_equal = pc.fill_null(pc.equal(old_result, new_result), False)
            both_null = pc.and_(pc.is_null(old_result), pc.is_null(new_result))
            changed |= ~pc.or_(is_equal, both_null).to_numpy(zero_copy_only=False)
        count = len(is_new)
        rows = np.flatnonzero(changed)
        has_update_before = ~is_new[rows] & self._spec.before
        key_indexes = np.repeat(rows, np.where(has_update_before, 2, 1))
        is_after = np.ones(len(key_indexes), dtype=bool)
        firsts = np.cumsum(np.where(has_update_before, 2, 1)) - np.where(has_update_before, 2, 1)
        is_after[firsts[has_update_before]] = False
        row_kinds = np.where(is_after, np.where(is_new[key_indexes], INSERT, UPDATE_AFTER), UPDATE_BEFORE).astype(
            np.int8
        )
        result_indexes = pa.array(np.where(is_after, key_indexes + count, key_indexes))
        key_columns = [column.take(pa.array(key_indexes)) for column in keys]
        results = [
            pa.concat_arrays([old_result, new_result]).take(result_indexes)
            for old_result, new_result in zip(old, new, strict=True)
        ]
        self.emit_array(combine_columns([*key_columns, *results], pa.array(row_kinds), self.output, len(key_indexes)))

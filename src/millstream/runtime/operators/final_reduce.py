"""reduce, sum, min, max, min_by and max_by of keyed streams in a batch job.

Promises: one result for each key, at the end of its input; records are reduced in the order of their times.
Does not know: windows, exchanges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.functions import Function, ReduceFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.map import FunctionOperator
from millstream.runtime.sorted_input import SortedUnit
from millstream.runtime.sorted_runs import key_starts
from millstream.state.store import ABSENT


@dataclass(frozen=True)
class FinalReduceSpec(OperatorSpec):
    """A reduce by key over records that come sorted by key."""

    function: ReduceFunction
    key: KeySelection

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return FinalReduceOperator(context, self.function, self.key)


class FinalReduceOperator(FunctionOperator):
    """Reduces ranges of records; a key that comes in several units, or shares its hash, is reduced in state."""

    def __init__(self, context: OperatorContext, function: ReduceFunction, key: KeySelection) -> None:
        super().__init__(context, function, keyed=True)
        self._key = key
        self._live, self._dirty = context.state.table("reduced", context.output_type).by_key()
        self._within_key = False
        self._may_use_state = type(function).open is not Function.open

    def on_batch(self, batch: Batch, side: int) -> None:
        """Reduce records of any keys in state."""
        reduce = self._reduce
        keys = self._key.keys(batch, self.context.name)
        rowwise.fold_keyed_rows(
            self.context,
            lambda old, new: new if old is ABSENT else reduce(old, new),
            batch,
            keys,
            self._live.__getitem__,
            self._live.__setitem__,
        )

    def on_sorted(self, unit: SortedUnit) -> None:
        """Reduce all records of complete keys at once, unless the function may use keyed state."""
        has_complete_keys = unit.complete and not self._within_key and not self._may_use_state
        self._within_key = not unit.complete
        keys = None if _has_unique_hashes(unit.batch, self._key) else self._key.keys(unit.batch, self.context.name)
        starts = key_starts(unit.hashes, keys) if has_complete_keys else None
        if starts is None:
            self.on_batch(unit.batch, unit.side)
        else:
            self._emit(rowwise.fold_runs(self.context.name, self._reduce, unit.batch.rows(), starts, keys))

    @property
    def _reduce(self) -> Callable[[Any, Any], Any]:
        reduce: Callable[[Any, Any], Any] = self.function.reduce
        return reduce

    def finish_keys(self) -> None:
        """Emit the values in state."""
        self._emit([value for value in self._live.values() if value is not ABSENT])
        self._live.clear()

    def _emit(self, rows: list[Any]) -> None:
        if rows:
            output_type = self.context.output_type
            times = np.full(len(rows), MAX_WATERMARK, dtype=np.int64)
            self.out.emit(
                Batch(output_type, rows=rowwise.conform(self.context.name, output_type, rows), timestamps=times)
            )


def _has_unique_hashes(batch: Batch, key: KeySelection) -> bool:
    """Whether the keys are integers in a column, of which no two have the same hash."""
    column = batch.column(key.field) if key.field is not None and batch.columnar else None
    return column is not None and pa.types.is_integer(column[0].type) and not column[0].null_count

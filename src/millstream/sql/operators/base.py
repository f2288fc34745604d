"""What operators of tables share: rows in and out of batches, keys, frames for expressions.

Promises: a batch is one struct array, columns first and the kind of change last; keys are the same values whether a
batch is cut by them or state is found by them.
Does not know: what any operator computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.memory import MemoryPart
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.sql.columns import array_of, internal_values, key_type_info, kinds_of, tuples_of
from millstream.sql.evaluation.evaluate import EvaluationFailed, Frame
from millstream.sql.functions.function_context import ASYNC_DEFAULTS, AsyncOptions
from millstream.sql.functions.user_functions import functions_in
from millstream.sql.operators.key_tuples import once_each, tuple_hashes
from millstream.sql.operators.late_rows import LateBatch, LateRows, column_of, columns_of
from millstream.sql.types import data_types as t
from millstream.state.key_groups import KeyGrouper
from millstream.state.key_hashes import KeyHasher
from millstream.state.table import StateTable

Rows = list[tuple[Any, ...]]

_MANY = 64  # keys that are worth hashing as columns


@dataclass(frozen=True)
class ColumnKeys(KeySelection):
    """Keys made of columns: the value of one, or a tuple of several."""

    columns: tuple[int, ...] = ()
    types: tuple[t.DataType, ...] = ()

    def keys(self, batch: Batch, operator: str) -> list[Any]:
        """As KeySelection promises."""
        array = batch.array()
        found = [internal_values(array.field(i), kind) for i, kind in zip(self.columns, self.types, strict=True)]
        return found[0] if len(found) == 1 else list(zip(*found, strict=True))

    def keyed(self, batch: Batch, grouper: KeyGrouper | KeyHasher, operator: str) -> tuple[Batch, np.ndarray]:
        """As KeySelection promises."""
        batch = batch if batch.columnar else Batch(batch.kind, array=batch.array(), timestamps=batch.timestamps)
        found = [column_of(batch, i) for i in self.columns]
        if len(found) == 1 and not pa.types.is_nested(found[0].type):
            return batch, _numbers(found[0], grouper)
        if len(found) > 1 and len(batch) >= _MANY:
            hashes = tuple_hashes(found)
            if hashes is not None:
                if isinstance(grouper, KeyGrouper):
                    return batch, (hashes % np.uint64(grouper.max_parallelism)).astype(np.int32)
                return batch, hashes
        return batch, grouper.of_many(self.keys(batch, operator))


def _numbers(column: pa.Array, grouper: KeyGrouper | KeyHasher) -> np.ndarray:
    found = None
    if pa.types.is_string(column.type) and len(column) >= _MANY:
        found = once_each([column], lambda keys: grouper.of_column(keys[0]))
    return grouper.of_column(column) if found is None else found


def keys_by(columns: Sequence[int], schema: t.RowType) -> ColumnKeys:
    """The keys of some columns of a table."""
    kinds = tuple(t.plain(schema.types[i]) for i in columns)
    return ColumnKeys(key_type_info(kinds), None, None, tuple(columns), kinds)


class TableOperator(Operator):
    """An operator on rows of tables. The users' functions in its `spec` are opened and closed with it."""

    def __init__(
        self,
        context: OperatorContext,
        output: t.RowType,
        zone: str = "UTC",
        spec: OperatorSpec | None = None,
        asynchronous: AsyncOptions = ASYNC_DEFAULTS,
    ) -> None:
        super().__init__(context)
        self.output = output
        self.zone = zone
        self._users = functions_in(spec)
        self._asynchronous = asynchronous
        self._rows: Rows = []
        self._kinds: list[int] = []

    def open(self) -> None:
        """Open the users' functions."""
        for function in self._users:
            function.open(self.context, self._asynchronous)

    def close(self) -> None:
        """Close the users' functions."""
        for function in self._users:
            function.close()

    def dispose(self) -> None:
        """Let go of what the users' functions have under way."""
        for function in self._users:
            function.dispose()

    def frame(self, array: pa.Array, width: int) -> Frame:
        """The columns of a batch, to compute over."""
        return self.frame_over([array.field(i) for i in range(width)], len(array))

    def frame_of(self, batch: Batch, width: int) -> Frame:
        """The same, without making columns that nobody reads."""
        return self.frame_over(columns_of(batch, width), len(batch))

    def frame_over(self, columns: Sequence[pa.Array], count: int) -> Frame:
        """Columns to compute over, with the operator's time and random numbers."""
        context = self.context
        return Frame(columns, count, context.now, self.zone, self.watermark, context.draws)

    def emit_array(self, array: pa.Array) -> None:
        """Emit rows as they are."""
        if len(array):
            self.out.emit(Batch(self.context.output_type, array=array))

    def emit_late(self, rows: LateRows, kinds: pa.Array | None = None) -> None:
        """Emit rows whose columns are gathered by who reads them."""
        if rows.size:
            self.out.emit(LateBatch(self.context.output_type, rows, kinds, self.output))

    def put(self, kind: int, row: tuple[Any, ...]) -> None:
        """Emit one row with the next batch."""
        self._rows.append(row)
        self._kinds.append(kind)

    def flush(self) -> None:
        """Emit what was put."""
        if self._rows:
            rows, kinds = self._rows, self._kinds
            self._rows, self._kinds = [], []
            self.emit_array(array_of(rows, kinds, self.output))

    def begin_epoch(self) -> None:
        """Nothing has been put; an attempt that failed may have left rows."""
        self._rows, self._kinds = [], []

    def fail(self, problem: Exception, row: Any = None) -> Exception:
        """A problem of the user's data, with the row."""
        if isinstance(problem, EvaluationFailed):
            return rowwise.UserFunctionFailed(self.context.name, problem.message, "")
        return problem


@dataclass
class WindowEnds(MemoryPart):
    """The ends of windows that have rows, as a heap; None if they must be looked for in state."""

    part_name: ClassVar[str] = "window_ends"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"ends": "ends"}

    ends: list[int] | None = None


def open_ends(context: OperatorContext, windows: StateTable) -> list[int]:
    """The moments at which windows that have rows are over, as a heap.

    They are memory, so that no epoch has to look for them; subtasks of another parallelism find them in state, where
    each window is a namespace."""
    memory = context.memory.part(WindowEnds)
    if memory.ends is None:
        memory.ends = sorted(windows.namespaces())
    return memory.ends


def rows_with_kinds(batch: Batch, schema: t.RowType) -> tuple[Rows, list[int]]:
    """The rows of a batch as internal tuples, and their kinds of change."""
    array = batch.array()
    return tuples_of(array, schema), kinds_of(array, len(schema))


def key_values(columns: Sequence[pa.Array], kinds: Sequence[t.DataType]) -> list[Any]:
    """The keys that stand in one column or in several, as `key_of` has them."""
    values = [internal_values(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


def key_of(row: tuple[Any, ...], columns: tuple[int, ...]) -> Any:
    """The key of one row: a value, a tuple, or None for no columns."""
    if len(columns) == 1:
        return row[columns[0]]
    return tuple(row[i] for i in columns) if columns else None

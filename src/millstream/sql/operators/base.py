"""The base class of operators on tables: rows of batches, keys, frames for expressions.

Promises: a batch is one struct array: the columns, then the row kind. A key has the same value whether rows are
partitioned by it or state is looked up by it.
Does not know: what an operator computes."""

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
from millstream.sql.columns import create_key_type_info, create_row_array, read_row_kinds, to_internal_values, to_tuples
from millstream.sql.evaluation.evaluate import EvaluationFailed, Frame
from millstream.sql.functions.function_context import ASYNC_DEFAULTS, AsyncOptions
from millstream.sql.functions.user_functions import find_user_functions
from millstream.sql.operators.key_tuples import compute_per_key, hash_tuples
from millstream.sql.operators.lazy_rows import LazyBatch, LazyRows, get_batch_column, get_batch_columns
from millstream.sql.types import data_types as t
from millstream.state.key_groups import KeyGrouper
from millstream.state.key_hashes import KeyHasher
from millstream.state.table import StateTable

Rows = list[tuple[Any, ...]]

_MIN_ROWS = 64  # below this number, hashing row by row is faster


@dataclass(frozen=True)
class ColumnKeys(KeySelection):
    """A key of columns: the value of one column, or a tuple of the values of several."""

    columns: tuple[int, ...] = ()
    types: tuple[t.DataType, ...] = ()

    def keys(self, batch: Batch, operator: str) -> list[Any]:
        """Return the key of each row."""
        array = batch.array()
        columns = [
            to_internal_values(array.field(i), data_type) for i, data_type in zip(self.columns, self.types, strict=True)
        ]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def compute_keys(self, batch: Batch, grouper: KeyGrouper | KeyHasher, operator: str) -> tuple[Batch, np.ndarray]:
        """Return the batch in columnar form, and the key group or hash of each row."""
        batch = batch if batch.columnar else Batch(batch.record_type, array=batch.array(), timestamps=batch.timestamps)
        columns = [get_batch_column(batch, i) for i in self.columns]
        if len(columns) == 1 and not pa.types.is_nested(columns[0].type):
            return batch, _hash_column(columns[0], grouper)
        if len(columns) > 1 and len(batch) >= _MIN_ROWS:
            hashes = hash_tuples(columns)
            if hashes is not None:
                if isinstance(grouper, KeyGrouper):
                    return batch, (hashes % np.uint64(grouper.max_parallelism)).astype(np.int32)
                return batch, hashes
        return batch, grouper.of_many(self.keys(batch, operator))


def _hash_column(column: pa.Array, grouper: KeyGrouper | KeyHasher) -> np.ndarray:
    hashes = None
    if pa.types.is_string(column.type) and len(column) >= _MIN_ROWS:
        hashes = compute_per_key([column], lambda keys: grouper.of_column(keys[0]))
    return grouper.of_column(column) if hashes is None else hashes


def select_key_columns(columns: Sequence[int], schema: t.RowType) -> ColumnKeys:
    """Return the selection of some columns of a table as the key."""
    data_types = tuple(t.strip_time_attribute(schema.types[i]) for i in columns)
    return ColumnKeys(create_key_type_info(data_types), None, None, tuple(columns), data_types)


class TableOperator(Operator):
    """An operator on rows of tables. The user-defined functions in its `spec` are opened and closed with it."""

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
        self._user_functions = find_user_functions(spec)
        self._asynchronous = asynchronous
        self._rows: Rows = []
        self._kinds: list[int] = []

    def open(self) -> None:
        """Open the user-defined functions."""
        for function in self._user_functions:
            function.open(self.context, self._asynchronous)

    def close(self) -> None:
        """Close the user-defined functions."""
        for function in self._user_functions:
            function.close()

    def dispose(self) -> None:
        """Abandon running calls of the user-defined functions."""
        for function in self._user_functions:
            function.dispose()

    def create_frame(self, array: pa.Array, width: int) -> Frame:
        """Return the columns of an array as input of expressions."""
        return self.create_frame_of_columns([array.field(i) for i in range(width)], len(array))

    def create_frame_of_batch(self, batch: Batch, width: int) -> Frame:
        """Return the columns of a batch as input of expressions, without gathering columns that are not read."""
        return self.create_frame_of_columns(get_batch_columns(batch, width), len(batch))

    def create_frame_of_columns(self, columns: Sequence[pa.Array], count: int) -> Frame:
        """Return columns as input of expressions, with the operator's time and random numbers."""
        context = self.context
        return Frame(columns, count, context.now, self.zone, self.watermark, context.draws)

    def emit_array(self, array: pa.Array) -> None:
        """Emit an array of rows, unless it is empty."""
        if len(array):
            self.out.emit(Batch(self.context.output_type, array=array))

    def emit_lazy(self, rows: LazyRows, row_kinds: pa.Array | None = None) -> None:
        """Emit rows whose columns are gathered when they are read."""
        if rows.size:
            self.out.emit(LazyBatch(self.context.output_type, rows, row_kinds, self.output))

    def put(self, row_kind: int, row: tuple[Any, ...]) -> None:
        """Add a row to the rows that `flush` emits."""
        self._rows.append(row)
        self._kinds.append(row_kind)

    def flush(self) -> None:
        """Emit the rows that were added by `put`."""
        if self._rows:
            rows, row_kinds = self._rows, self._kinds
            self._rows, self._kinds = [], []
            self.emit_array(create_row_array(rows, row_kinds, self.output))

    def begin_epoch(self) -> None:
        """Discard rows of a failed attempt that were not emitted."""
        self._rows, self._kinds = [], []

    def fail(self, problem: Exception, row: Any = None) -> Exception:
        """Convert a failed evaluation to an error of the user's function or data."""
        if isinstance(problem, EvaluationFailed):
            return rowwise.UserFunctionFailed(self.context.name, problem.message, "")
        return problem


@dataclass
class WindowEnds(MemoryPart):
    """The ends of windows that have rows, as a heap; None if they must be read from state."""

    part_name: ClassVar[str] = "window_ends"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"ends": "ends"}

    ends: list[int] | None = None


def read_open_window_ends(context: OperatorContext, windows: StateTable) -> list[int]:
    """Return the ends of windows that have rows, as a heap.

    They are memory, so that epochs do not scan the state for them. After a change of parallelism they are read from
    state, where each window is a namespace."""
    memory = context.memory.part(WindowEnds)
    if memory.ends is None:
        memory.ends = sorted(windows.namespaces())
    return memory.ends


def read_rows_with_kinds(batch: Batch, schema: t.RowType) -> tuple[Rows, list[int]]:
    """Return the rows of a batch as tuples of internal values, and their row kinds."""
    array = batch.array()
    return to_tuples(array, schema), read_row_kinds(array, len(schema))


def read_keys(columns: Sequence[pa.Array], data_types: Sequence[t.DataType]) -> list[Any]:
    """Return the keys of rows, given their key columns, in the form of `get_key`."""
    values = [to_internal_values(column, data_type) for column, data_type in zip(columns, data_types, strict=True)]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


def get_key(row: tuple[Any, ...], columns: tuple[int, ...]) -> Any:
    """Return the key of a row: a value, a tuple of several values, or None for no columns."""
    if len(columns) == 1:
        return row[columns[0]]
    return tuple(row[i] for i in columns) if columns else None

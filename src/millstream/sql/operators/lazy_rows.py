"""Rows whose columns are gathered when they are first read.

Promises: a column has the values that gathering all columns at once would give. A column that is not read is not
gathered, and rows that are selected several times are gathered once.
Does not know: operators, state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.sql.columns import combine_columns
from millstream.sql.types import data_types as t
from millstream.types.factory import TypeInformation


class LazyRows(Sequence[pa.Array]):
    """The columns of `size` rows, gathered on access."""

    size: int

    @abstractmethod
    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """Return some rows of a column."""


class MaterializedRows(LazyRows):
    """Columns that are already in memory."""

    def __init__(self, columns: Sequence[pa.Array], count: int) -> None:
        self._columns, self.size = columns, count
        self._last_read: tuple[np.ndarray, pa.Array] | None = None

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        return self._columns[index]

    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """Return some rows of a column."""
        if (
            self._last_read is None or self._last_read[0] is not rows
        ):  # the same rows are read from one column after the other
            self._last_read = rows, pa.array(rows)
        return self._columns[column].take(self._last_read[1])


class SelectedRows(LazyRows):
    """A selection of rows."""

    def __init__(self, of: LazyRows, rows: np.ndarray) -> None:
        self._source, self._rows, self.size = of, rows, len(rows)
        self._gathered: dict[int, pa.Array] = {}
        self._last_read: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._gathered:
            self._gathered[index] = self._source.at(index, self._rows)
        return self._gathered[index]

    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """Return some rows of a column."""
        column_values = self._gathered.get(column)
        if column_values is not None:
            return column_values.take(pa.array(rows))
        if self._last_read is None or self._last_read[0] is not rows:
            self._last_read = rows, self._rows[rows]
        return self._source.at(column, self._last_read[1])


class SelectedColumns(LazyRows):
    """A selection of columns."""

    def __init__(self, of: LazyRows, columns: Sequence[int]) -> None:
        self._source, self._columns, self.size = of, columns, of.size

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        return self._source[self._columns[index]]

    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """Return some rows of a column."""
        return self._source.at(self._columns[column], rows)


class JoinedRows(LazyRows):
    """The columns of two sets of rows of the same size, side by side."""

    def __init__(self, left: LazyRows, right: LazyRows) -> None:
        self._left, self._right, self.size = left, right, left.size

    def __len__(self) -> int:
        return len(self._left) + len(self._right)

    def __getitem__(self, index: Any) -> Any:
        width = len(self._left)
        return self._left[index] if index < width else self._right[index - width]

    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """Return some rows of a column."""
        width = len(self._left)
        return self._left.at(column, rows) if column < width else self._right.at(column - width, rows)


def join_rows(left: Sequence[pa.Array], right: Sequence[pa.Array], lefts: np.ndarray, rights: np.ndarray) -> LazyRows:
    """Return rows of one table side by side with rows of another."""
    sides = zip((left, right), (lefts, rights), strict=True)
    left_rows, right_rows = (
        SelectedRows(MaterializedRows(columns, len(columns[0]) if columns else len(rows)), rows)
        for columns, rows in sides
    )
    return JoinedRows(left_rows, right_rows)


class ConcatenatedRows(LazyRows):
    """The rows of several parts, one after the other."""

    def __init__(self, parts: Sequence[LazyRows]) -> None:
        self._parts = parts
        self._ends = np.cumsum([part.size for part in parts])
        self.size = int(self._ends[-1])
        self._gathered: dict[int, pa.Array] = {}
        self._last_read: tuple[np.ndarray, list[tuple[int, np.ndarray]], pa.Array | None] | None = None

    def __len__(self) -> int:
        return len(self._parts[0])

    def __getitem__(self, index: Any) -> Any:
        if index not in self._gathered:
            pieces = [part[index] for part in self._parts]
            self._gathered[index] = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
        return self._gathered[index]

    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """Return some rows of a column."""
        if column in self._gathered:
            return self._gathered[column].take(pa.array(rows))
        if len(self._parts) == 1:
            return self._parts[0].at(column, rows)
        if self._last_read is None or self._last_read[0] is not rows:
            self._last_read = (rows, *self._split(rows))
        _, rows_by_part, restore_order = self._last_read
        pieces = [self._parts[part].at(column, part_rows) for part, part_rows in rows_by_part]
        gathered = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
        return gathered if restore_order is None else gathered.take(restore_order)

    def _split(self, rows: np.ndarray) -> tuple[list[tuple[int, np.ndarray]], pa.Array | None]:
        """Split row indexes by part, and return the indexes that restore the original order."""
        part_indexes = np.searchsorted(self._ends, rows, "right")
        order = np.argsort(part_indexes, kind="stable")
        ordered = rows[order]
        rows_by_part: list[tuple[int, np.ndarray]] = []
        begin = 0
        for part, count in enumerate(np.bincount(part_indexes, minlength=len(self._parts)).tolist()):
            if count or (part == len(self._parts) - 1 and not rows_by_part):
                before = int(self._ends[part - 1]) if part else 0
                rows_by_part.append((part, ordered[begin : begin + count] - before))
                begin += count
        if (order[1:] > order[:-1]).all():
            return rows_by_part, None
        restore_order = np.empty_like(order)
        restore_order[order] = np.arange(len(order))
        return rows_by_part, pa.array(restore_order)


class LazyBatch(Batch):
    """A batch of rows of a table; its struct array is created on first access."""

    __slots__ = ("_lazy_rows", "_row_kinds", "_schema")

    def __init__(
        self, type_info: TypeInformation, rows: LazyRows, row_kinds: pa.Array | None, schema: t.RowType
    ) -> None:
        super().__init__(type_info)
        self._lazy_rows, self._row_kinds, self._schema = rows, row_kinds, schema

    def __len__(self) -> int:
        return self._lazy_rows.size

    @property
    def columnar(self) -> bool:
        """Return True: the rows are columns."""
        return True

    @property
    def lazy_rows(self) -> LazyRows:
        """Return the columns, which are gathered when they are read."""
        return self._lazy_rows

    @property
    def row_kinds(self) -> pa.Array | None:
        """Return the row kinds; None if all rows are inserts."""
        return self._row_kinds

    def array(self) -> pa.Array:
        """Return the rows as a struct array."""
        if self._array is None:
            self._array = combine_columns(list(self._lazy_rows), self._row_kinds, self._schema, self._lazy_rows.size)
        return self._array

    def rows(self) -> list[Any]:
        """Return the rows as Python values."""
        self.array()
        return super().rows()

    def with_timestamps(self, timestamps: np.ndarray | None) -> Batch:
        """Return the same rows with timestamps."""
        self.array()
        return super().with_timestamps(timestamps)

    def copy(self) -> Batch:
        """Return a batch of the same columns. Columns cannot change; each batch creates row objects of its own."""
        copy = LazyBatch(self.record_type, self._lazy_rows, self._row_kinds, self._schema)
        copy._array = self._array
        return copy

    def take(self, indices: np.ndarray) -> Batch:
        """Return some rows, without gathering them."""
        row_kinds = None if self._row_kinds is None else self._row_kinds.take(pa.array(indices))
        return LazyBatch(self.record_type, SelectedRows(self._lazy_rows, indices), row_kinds, self._schema)

    def slice(self, start: int, stop: int) -> Batch:
        """Return a range of rows, without gathering them."""
        return self.take(np.arange(start, min(stop, len(self))))


def get_batch_columns(batch: Batch, width: int) -> LazyRows:
    """Return the columns of a batch, without the row kinds."""
    if isinstance(batch, LazyBatch):
        return batch.lazy_rows
    array = batch.array()
    return MaterializedRows([array.field(i) for i in range(width)], len(array))


def get_batch_row_kinds(batch: Batch, width: int) -> pa.Array | None:
    """Return the row kinds of a batch; None if all rows are inserts."""
    if isinstance(batch, LazyBatch):
        return batch.row_kinds
    row_kinds = batch.array().field(width)
    return None if row_kinds.null_count == len(row_kinds) else row_kinds


def get_batch_column(batch: Batch, column: int) -> pa.Array:
    """Return a column of a batch."""
    return batch.lazy_rows[column] if isinstance(batch, LazyBatch) else batch.array().field(column)

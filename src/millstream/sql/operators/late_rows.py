"""Rows whose columns are gathered when someone reads them.

Promises: a column is what gathering all columns at once would give; one that nobody reads is not gathered, and rows
that are chosen twice are gathered once.
Does not know: operators, state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.sql.columns import struct_of
from millstream.sql.types import data_types as t
from millstream.types.factory import TypeInformation


class LateRows(Sequence[pa.Array]):
    """The columns of `size` rows."""

    size: int

    @abstractmethod
    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """Some rows of a column."""


class Plain(LateRows):
    """Columns that are there."""

    def __init__(self, columns: Sequence[pa.Array], count: int) -> None:
        self._columns, self.size = columns, count
        self._asked: tuple[np.ndarray, pa.Array] | None = None

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        return self._columns[index]

    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """As promised."""
        if self._asked is None or self._asked[0] is not rows:  # column after column is asked for the same rows
            self._asked = rows, pa.array(rows)
        return self._columns[column].take(self._asked[1])


class Some(LateRows):
    """Some of the rows of others."""

    def __init__(self, of: LateRows, rows: np.ndarray) -> None:
        self._of, self._rows, self.size = of, rows, len(rows)
        self._found: dict[int, pa.Array] = {}
        self._asked: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self._of)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._found:
            self._found[index] = self._of.at(index, self._rows)
        return self._found[index]

    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """As promised."""
        found = self._found.get(column)
        if found is not None:
            return found.take(pa.array(rows))
        if self._asked is None or self._asked[0] is not rows:
            self._asked = rows, self._rows[rows]
        return self._of.at(column, self._asked[1])


class Picked(LateRows):
    """Some of the columns of others."""

    def __init__(self, of: LateRows, columns: Sequence[int]) -> None:
        self._of, self._columns, self.size = of, columns, of.size

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        return self._of[self._columns[index]]

    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """As promised."""
        return self._of.at(self._columns[column], rows)


class Beside(LateRows):
    """The columns of some rows, and then those of as many others."""

    def __init__(self, left: LateRows, right: LateRows) -> None:
        self._left, self._right, self.size = left, right, left.size

    def __len__(self) -> int:
        return len(self._left) + len(self._right)

    def __getitem__(self, index: Any) -> Any:
        width = len(self._left)
        return self._left[index] if index < width else self._right[index - width]

    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """As promised."""
        width = len(self._left)
        return self._left.at(column, rows) if column < width else self._right.at(column - width, rows)


def pairs(left: Sequence[pa.Array], right: Sequence[pa.Array], lefts: np.ndarray, rights: np.ndarray) -> LateRows:
    """Rows of one table, each beside one of another."""
    sides = zip((left, right), (lefts, rights), strict=True)
    one, other = (Some(Plain(columns, len(columns[0]) if columns else len(rows)), rows) for columns, rows in sides)
    return Beside(one, other)


class Several(LateRows):
    """Rows of several, one behind the other."""

    def __init__(self, parts: Sequence[LateRows]) -> None:
        self._parts = parts
        self._ends = np.cumsum([part.size for part in parts])
        self.size = int(self._ends[-1])
        self._found: dict[int, pa.Array] = {}
        self._asked: tuple[np.ndarray, list[tuple[int, np.ndarray]], pa.Array | None] | None = None

    def __len__(self) -> int:
        return len(self._parts[0])

    def __getitem__(self, index: Any) -> Any:
        if index not in self._found:
            pieces = [part[index] for part in self._parts]
            self._found[index] = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
        return self._found[index]

    def at(self, column: int, rows: np.ndarray) -> pa.Array:
        """As promised."""
        if column in self._found:
            return self._found[column].take(pa.array(rows))
        if len(self._parts) == 1:
            return self._parts[0].at(column, rows)
        if self._asked is None or self._asked[0] is not rows:
            self._asked = (rows, *self._split(rows))
        _, wanted, back = self._asked
        pieces = [self._parts[part].at(column, some) for part, some in wanted]
        together = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
        return together if back is None else together.take(back)

    def _split(self, rows: np.ndarray) -> tuple[list[tuple[int, np.ndarray]], pa.Array | None]:
        """The rows of each part that are asked for, and how they go back into the order that was asked for."""
        which = np.searchsorted(self._ends, rows, "right")
        order = np.argsort(which, kind="stable")
        ordered = rows[order]
        found: list[tuple[int, np.ndarray]] = []
        begin = 0
        for part, count in enumerate(np.bincount(which, minlength=len(self._parts)).tolist()):
            if count or (part == len(self._parts) - 1 and not found):
                before = int(self._ends[part - 1]) if part else 0
                found.append((part, ordered[begin : begin + count] - before))
                begin += count
        if (order[1:] > order[:-1]).all():
            return found, None
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return found, pa.array(back)


class LateBatch(Batch):
    """A batch of a table's rows; its array is made when someone asks for it."""

    __slots__ = ("_kinds", "_late", "_schema")

    def __init__(self, kind: TypeInformation, late: LateRows, kinds: pa.Array | None, schema: t.RowType) -> None:
        super().__init__(kind)
        self._late, self._kinds, self._schema = late, kinds, schema

    def __len__(self) -> int:
        return self._late.size

    @property
    def columnar(self) -> bool:
        """It is."""
        return True

    @property
    def late(self) -> LateRows:
        """The columns."""
        return self._late

    @property
    def kinds(self) -> pa.Array | None:
        """The kinds of change; None where all are inserts."""
        return self._kinds

    def array(self) -> pa.Array:
        """As Batch promises."""
        if self._array is None:
            self._array = struct_of(list(self._late), self._kinds, self._schema, self._late.size)
        return self._array

    def rows(self) -> list[Any]:
        """As Batch promises."""
        self.array()
        return super().rows()

    def with_timestamps(self, timestamps: np.ndarray | None) -> Batch:
        """As Batch promises."""
        self.array()
        return super().with_timestamps(timestamps)

    def take(self, indices: np.ndarray) -> Batch:
        """As Batch promises; it stays late."""
        kinds = None if self._kinds is None else self._kinds.take(pa.array(indices))
        return LateBatch(self.kind, Some(self._late, indices), kinds, self._schema)

    def slice(self, start: int, stop: int) -> Batch:
        """As Batch promises; it stays late."""
        return self.take(np.arange(start, min(stop, len(self))))


def columns_of(batch: Batch, width: int) -> LateRows:
    """The columns of a batch of a table's rows, without the kinds of change."""
    if isinstance(batch, LateBatch):
        return batch.late
    array = batch.array()
    return Plain([array.field(i) for i in range(width)], len(array))


def kinds_in(batch: Batch, width: int) -> pa.Array | None:
    """The kinds of change of a batch of a table's rows; None where all are inserts."""
    if isinstance(batch, LateBatch):
        return batch.kinds
    kinds = batch.array().field(width)
    return None if kinds.null_count == len(kinds) else kinds


def column_of(batch: Batch, column: int) -> pa.Array:
    """A column of a batch of a table's rows."""
    return batch.late[column] if isinstance(batch, LateBatch) else batch.array().field(column)

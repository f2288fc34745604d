"""Events that are matched together, sorted by key and then by time.

Promises: events of one key and time keep their order of arrival, unless a comparator is given; a record is converted to
a Python value only when it is read.
Does not know: patterns, state."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection

_SMALL = 1 << 16
_LARGEST = 1 << 63


class Events:
    """Sorted events, addressed by index: those of `keys[i]` are from `starts[i]` to before `ends[i]`."""

    def __init__(
        self, parts: list[Batch], key: KeySelection, operator: str, order: Callable[[Any], Any] | None = None
    ) -> None:
        self._parts = parts
        times = np.concatenate([part.timestamps for part in parts])
        codes, distinct_keys = _codes(parts, key, operator)
        self._order = _by_code_and_time(codes, times)
        ordered = codes[self._order]
        self.time_column = times[self._order]
        changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
        self.starts = np.concatenate(([0], changes))
        self.ends = np.concatenate((changes, [len(ordered)]))
        firsts: list[Any] = ordered[self.starts].tolist()
        self.keys: list[Any] = firsts if distinct_keys is None else [distinct_keys[code] for code in firsts]
        if order is not None:
            self._sort_equals(order)

    def __len__(self) -> int:
        return len(self._order)

    @cached_property
    def times(self) -> list[int]:
        """The time of each event, as a Python integer."""
        return self.time_column.tolist()  # type: ignore[no-any-return]

    def column(self, function: Callable[[Batch], np.ndarray | None]) -> np.ndarray | None:
        """Apply a function to each batch and return one column for all events; None if it returns None for a batch."""
        columns = []
        for part in self._parts:
            column = function(part)
            if column is None:
                return None
            columns.append(column)
        return np.concatenate(columns)[self._order]  # type: ignore[no-any-return]

    def rows(self, is_needed: np.ndarray) -> list[Any]:
        """Return a list with one element per event: its Python value if it is needed, else None."""
        indexes = np.flatnonzero(is_needed)
        out: list[Any] = [None] * len(self)
        origin = self._order[indexes]
        offset = 0
        for part in self._parts:
            is_in_batch = (origin >= offset) & (origin < offset + len(part))
            if is_in_batch.any():
                batch_rows, event_indexes = origin[is_in_batch] - offset, indexes[is_in_batch].tolist()
                values = (
                    part.take(batch_rows).rows() if part.columnar else [part.rows()[i] for i in batch_rows.tolist()]
                )
                for event_index, value in zip(event_indexes, values, strict=True):
                    out[event_index] = value
            offset += len(part)
        return out

    def _sort_equals(self, order: Callable[[Any], Any]) -> None:
        """Sort the events of one key and time by the comparator."""
        equal = np.zeros(len(self), dtype=bool)
        equal[1:] = self.time_column[1:] == self.time_column[:-1]
        equal[self.starts] = False
        rows = self.rows(np.ones(len(self), dtype=bool))
        first = np.flatnonzero(~equal)
        for start, end in zip(first.tolist(), [*first[1:].tolist(), len(self)], strict=True):
            if end - start > 1:
                ranked = sorted(range(start, end), key=lambda index: order(rows[index]))
                self._order[start:end] = self._order[ranked]


def _codes(parts: list[Batch], key: KeySelection, operator: str) -> tuple[np.ndarray, list[Any] | None]:
    """Return a code for each event, equal for equal keys, and the keys by code; None if codes are the keys."""
    columns = [_integer_keys(part, key, operator) for part in parts]
    if all(column is not None for column in columns):
        return np.concatenate(columns), None  # type: ignore[arg-type]
    index: dict[Any, int] = {}
    code_of = index.setdefault
    codes = [code_of(event_key, len(index)) for part in parts for event_key in key.keys(part, operator)]
    return np.array(codes, dtype=np.int64), list(index)


def _integer_keys(part: Batch, key: KeySelection, operator: str) -> np.ndarray | None:
    """Return the keys of a batch as a column; None unless all of them are integers."""
    if not part.columnar:
        keys = key.keys(part, operator)
        are_integers = set(map(type, keys)) <= {int} and min(keys) >= -_LARGEST and max(keys) < _LARGEST
        return np.array(keys, dtype=np.int64) if are_integers else None
    column = part.column(key.field) if key.field is not None else None
    if column is None or column[0].null_count or not pa.types.is_integer(column[0].type):
        return None
    return column[0].to_numpy().astype(np.int64, copy=False)  # type: ignore[no-any-return]


def _by_code_and_time(codes: np.ndarray, times: np.ndarray) -> np.ndarray:
    if (times[1:] < times[:-1]).any():
        by_time = np.argsort(times, kind="stable")
        return by_time[_by_code(codes[by_time])]  # type: ignore[no-any-return]
    return _by_code(codes)


def _by_code(codes: np.ndarray) -> np.ndarray:
    least = int(codes.min())
    if int(codes.max()) - least < _SMALL:  # numpy sorts such numbers by radix
        codes = (codes - least).astype(np.uint16)
    return np.argsort(codes, kind="stable")

"""A batch of records, as Python values or as an Arrow array.

Promises: `rows()` and `array()` return the same records in the same order; each form is computed at most once.
Does not know: edges, operators, state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.types.copies import copy_records
from millstream.types.factory import TypeInformation

NO_TIMESTAMP = -(2**63)


class Batch:
    """Records of one type, with timestamps where they have any and keys where they are keyed."""

    __slots__ = ("_array", "_rows", "keys", "record_type", "timestamps")

    def __init__(
        self,
        record_type: TypeInformation,
        *,
        rows: list[Any] | None = None,
        array: Any = None,
        timestamps: np.ndarray | None = None,
        keys: list[Any] | None = None,
    ) -> None:
        self.record_type = record_type
        self._rows = rows
        self._array = array
        self.timestamps = timestamps
        self.keys = keys

    def __len__(self) -> int:
        return len(self._rows) if self._rows is not None else len(self._array)

    def __repr__(self) -> str:
        form = "rows" if self._rows is not None else "columns"
        return f"Batch({len(self)} {form} of {self.record_type})"

    @property
    def columnar(self) -> bool:
        """Whether the records exist as an Arrow array."""
        return self._array is not None

    def rows(self) -> list[Any]:
        """Return the records as Python values."""
        if self._rows is None:
            self._rows = self.record_type.from_arrow(self._array)
        return self._rows

    def array(self) -> pa.Array:
        """Return the records as an Arrow array of their type."""
        if self._array is None:
            self._array = self.record_type.to_arrow(self._rows or [])
        return self._array

    def column(self, field: str | int) -> tuple[pa.Array, TypeInformation] | None:
        """Return one field of columnar records as an Arrow array with its type; None if there is no such column."""
        names = getattr(self.record_type, "field_names", None)
        if names is None or not self.record_type.is_columnar:
            return None
        index = field if isinstance(field, int) else (list(names).index(field) if field in names else None)
        if index is None or not -len(names) <= index < len(names):
            return None
        array = self.array()
        return array.field(index % len(names)), self.record_type.field_types[index]  # type: ignore[attr-defined]

    def times(self) -> list[int]:
        """Return the timestamps as Python integers, NO_TIMESTAMP where a record has none."""
        return [NO_TIMESTAMP] * len(self) if self.timestamps is None else self.timestamps.tolist()

    def with_rows(self, record_type: TypeInformation, rows: list[Any]) -> Batch:
        """Return a batch of other records with the same timestamps."""
        return Batch(record_type, rows=rows, timestamps=self.timestamps)

    def with_timestamps(self, timestamps: np.ndarray | None) -> Batch:
        """Return the same records with other timestamps."""
        return Batch(self.record_type, rows=self._rows, array=self._array, timestamps=timestamps, keys=self.keys)

    def without_keys(self) -> Batch:
        """Return the same records without their keys."""
        if self.keys is None:
            return self
        return Batch(self.record_type, rows=self._rows, array=self._array, timestamps=self.timestamps)

    def copy(self) -> Batch:
        """Return the same records as other objects, for a reader that may change them."""
        rows = None if self._rows is None else copy_records(self.record_type, self._rows)
        return Batch(self.record_type, rows=rows, array=self._array, timestamps=self.timestamps, keys=self.keys)

    def take(self, indices: np.ndarray) -> Batch:
        """Return the records at `indices`, as columns if they exist."""
        times = None if self.timestamps is None else self.timestamps[indices]
        if self._array is not None:
            return Batch(self.record_type, array=self._array.take(pa.array(indices)), timestamps=times)
        rows, keys = self.rows(), self.keys
        row_indexes = indices.tolist()
        return Batch(
            self.record_type,
            rows=[rows[i] for i in row_indexes],
            timestamps=times,
            keys=None if keys is None else [keys[i] for i in row_indexes],
        )

    def slice(self, start: int, stop: int) -> Batch:
        """Return the records from `start` to before `stop`."""
        times = None if self.timestamps is None else self.timestamps[start:stop]
        if self._rows is None:
            return Batch(self.record_type, array=self._array.slice(start, stop - start), timestamps=times)
        keys = None if self.keys is None else self.keys[start:stop]
        return Batch(self.record_type, rows=self._rows[start:stop], timestamps=times, keys=keys)


def timestamps_of(times: Sequence[int | None] | np.ndarray | None) -> np.ndarray | None:
    """Return timestamps as a numpy column; None stays None."""
    if times is None:
        return None
    if isinstance(times, np.ndarray):
        return times.astype(np.int64, copy=False)
    return np.fromiter((NO_TIMESTAMP if time is None else time for time in times), dtype=np.int64, count=len(times))

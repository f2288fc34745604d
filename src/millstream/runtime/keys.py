"""What a stream is keyed by: a field, or a function of the record.

Promises: the same keys whether records are columns or rows; a key that cannot be a key is a user error that names it.
Does not know: key groups' targets, state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.state.key_groups import KeyGrouper, UnusableKey
from millstream.state.key_hashes import KeyHasher
from millstream.types.factory import TypeInformation


@dataclass(frozen=True)
class KeySelection:
    """How to get the key of a record: by `field` (name or position) or by `selector`."""

    key_type: TypeInformation
    selector: Callable[[Any], Any] | None = None
    field: str | int | None = None

    def keys(self, batch: Batch, operator: str) -> list[Any]:
        """The key of every record."""
        if batch.keys is not None:
            return batch.keys
        if self.field is not None:
            column = batch.column(self.field) if batch.columnar else None
            if column is not None:
                array, kind = column
                return kind.from_arrow(array)
            return rowwise.keys_of(operator, field_getter(self.field), batch.rows())
        assert self.selector is not None
        return rowwise.conform(operator, self.key_type, rowwise.keys_of(operator, self.selector, batch.rows()))

    def keyed(self, batch: Batch, grouper: KeyGrouper | KeyHasher, operator: str) -> tuple[Batch, np.ndarray]:
        """The batch ready to be cut by key, and the key group, or the hash, of every record's key."""
        try:
            if self.field is not None and batch.columnar:
                column = batch.column(self.field)
                if column is not None:
                    return batch, grouper.of_column(column[0])
            keys = self.keys(batch, operator)
            if batch.columnar:  # columns travel lighter than rows: the other end finds the keys again
                return batch, grouper.of_many(keys)
            keyed = Batch(batch.kind, rows=batch.rows(), timestamps=batch.timestamps, keys=keys)
            return keyed, grouper.of_many(keys)
        except UnusableKey as problem:
            msg = f"key_by of {operator}"
            raise rowwise.UserFunctionFailed(msg, str(problem), "") from None


def field_getter(field: str | int) -> Callable[[Any], Any]:
    """A function that reads one field of a tuple, Row, dict or object."""
    if isinstance(field, int):
        return lambda record: record[field]

    def get(record: Any) -> Any:
        return getattr(record, field) if hasattr(record, field) else record[field]

    return get

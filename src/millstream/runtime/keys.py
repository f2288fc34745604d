"""Key selection: the key of a record is a field, or the result of a function.

Promises: keys are the same whether records are columns or rows; an invalid key is a user error that names the key.
Does not know: key groups' targets, state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.errors import UserError
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.state.key_groups import KeyGrouper, UnusableKey
from millstream.state.key_hashes import KeyHasher
from millstream.types.copies import is_immutable
from millstream.types.factory import TypeInformation


class NoSuchField(UserError):
    """A record does not have the field that is its key."""

    def __init__(self, field: str, record: object) -> None:
        super().__init__(
            f"{rowwise.shorten(record)} has no field '{field}'",
            hint="give the position of a field in a tuple, as in key_by(0), or a function of the record",
        )


@dataclass(frozen=True)
class KeySelection:
    """How the key of a record is computed: by `field` (name or index) or by `selector`."""

    key_type: TypeInformation
    selector: Callable[[Any], Any] | None = None
    field: str | int | None = None

    def keys(self, batch: Batch, operator: str) -> list[Any]:
        """Return the key of every record."""
        if batch.keys is not None:
            return batch.keys
        if self.field is not None:
            column = batch.column(self.field) if batch.columnar else None
            if column is not None:
                array, field_type = column
                return field_type.from_arrow(array)
            return self._without_lists(rowwise.keys_of(operator, field_getter(self.field), batch.rows()))
        assert self.selector is not None
        keys = rowwise.conform(operator, self.key_type, rowwise.keys_of(operator, self.selector, batch.rows()))
        return self._without_lists(keys)

    def _without_lists(self, keys: list[Any]) -> list[Any]:
        """Return the keys with lists as tuples, which are hashable: PyFlink takes lists as keys."""
        if is_immutable(self.key_type) or list not in set(map(type, keys)):
            return keys
        return [tuple(key) if type(key) is list else key for key in keys]

    def compute_keys(self, batch: Batch, grouper: KeyGrouper | KeyHasher, operator: str) -> tuple[Batch, np.ndarray]:
        """Return the batch with its keys, if it has rows, and the key group or the hash of every record's key."""
        try:
            if self.field is not None and batch.columnar:
                column = batch.column(self.field)
                if column is not None:
                    return batch, grouper.of_column(column[0])
            keys = self.keys(batch, operator)
            if batch.columnar:  # columns are smaller than rows; the receiver computes the keys again
                return batch, grouper.of_many(keys)
            keyed = Batch(batch.record_type, rows=batch.rows(), timestamps=batch.timestamps, keys=keys)
            return keyed, grouper.of_many(keys)
        except UnusableKey as problem:
            msg = f"key_by of {operator}"
            raise rowwise.UserFunctionFailed(msg, problem.message, "", hint=problem.hint) from None


def field_getter(field: str | int) -> Callable[[Any], Any]:
    """Return a function that reads one field of a tuple, Row, dict or object."""
    if isinstance(field, int):
        return lambda record: record[field]

    def get(record: Any) -> Any:
        if hasattr(record, field):
            return getattr(record, field)
        try:
            return record[field]
        except (TypeError, LookupError):
            raise NoSuchField(field, record) from None

    return get

"""Hashes of many keys, as wide as they come: what batches are sorted by.

Promises: the hash of a key is `stable_hash` of it, whether it comes as a Python value or in a column; whole numbers of
64 bits that differ have hashes that differ.
Does not know: key groups, sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.model.arrow_types import python_values
from millstream.state.key_groups import UnusableKey, mix_many, nested_values, stable_hash

KeyHashes = npt.NDArray[np.uint64]


class _Hashes(dict[Any, int]):
    """The hashes of keys seen lately; a look-up that finds nothing computes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def __missing__(self, key: Any) -> int:
        found = stable_hash(key)
        if len(self) >= self._limit:
            self.clear()
        self[key] = found
        return found


class KeyHasher:
    """Hashes of many keys. A key seen lately costs a dictionary look-up."""

    def __init__(self, *, remember: int = 1 << 17) -> None:
        self._hashes = _Hashes(remember)

    def of(self, key: Any) -> int:
        """The hash of a key."""
        try:
            return self._hashes[key]
        except TypeError as error:  # not hashable, not even for Python
            raise UnusableKey(key) from error

    def of_many(self, keys: Sequence[Any]) -> KeyHashes:
        """The hash of each key."""
        try:
            return np.fromiter(map(self._hashes.__getitem__, keys), np.uint64, len(keys))
        except TypeError:
            return np.fromiter(map(self.of, keys), np.uint64, len(keys))  # tells which key it was

    def of_column(self, column: pa.Array) -> KeyHashes:
        """The hash of each value, as `of` says of its Python value; a struct is the tuple of its fields."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        if pa.types.is_integer(column.type):
            return self._of_integers(column)
        if pa.types.is_nested(column.type):
            return self.of_many(nested_values(column))
        distinct = column.dictionary_encode("encode")
        hashes: KeyHashes = self.of_many(python_values(distinct.dictionary))[distinct.indices.to_numpy()]
        return hashes

    def _of_integers(self, column: pa.Array) -> KeyHashes:
        wide = np.uint64 if pa.types.is_unsigned_integer(column.type) else np.int64
        dense = pc.fill_null(column, 0) if column.null_count else column
        hashes = mix_many(dense.to_numpy().astype(wide, copy=False).view(np.uint64))
        if column.null_count:
            hashes[column.is_null().to_numpy(zero_copy_only=False)] = self.of(None)
        return hashes

"""Features without training: hashing, and joining columns to a vector.

Promises: hashes are those of Flink ML, so a model can move. Texts are hashed once for each distinct value of a batch,
all at once.
Does not know: operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import UserError
from millstream.ml.linalg import DENSE_VECTOR, SPARSE_VECTOR
from millstream.ml.prediction import ColumnFunction
from millstream.ml.vector_rows import (
    Array,
    DenseRows,
    SparseRows,
    VectorRows,
    read_vectors,
    write_sparse,
    write_vectors,
)
from millstream.sql.types import data_types as t


def hash_texts(texts: pa.StringArray) -> Array:
    """Return Murmur3 (32 bits, seed 0) of the UTF-16 characters of each text, as Guava's `hashUnencodedChars`."""
    texts = texts.cast(pa.string())
    _, bounds, data = texts.buffers()
    bytes_of = np.frombuffer(bounds, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    joined = b"" if data is None else data[int(bytes_of[0]) : int(bytes_of[-1])].to_pybytes()
    units = np.frombuffer(joined.decode().encode("utf-16-le"), dtype=np.uint16).astype(np.uint32)
    characters = np.flatnonzero((units & 0xFC00) != 0xDC00)  # a pair of surrogates is one character
    ends = np.cumsum(pc.utf8_length(texts).to_numpy())
    offsets = np.append(characters, len(units))[np.concatenate(([0], ends)).astype(np.int64)]
    starts, lengths = offsets[:-1], np.diff(offsets)
    hashes = np.zeros(len(texts), dtype=np.uint32)
    for number in range(int(lengths.max(initial=0)) // 2):
        active = np.flatnonzero(lengths >= 2 * number + 2)
        first = starts[active] + 2 * number
        mixed = hashes[active] ^ _mix_block(units[first] | units[first + 1] << np.uint32(16))
        hashes[active] = (mixed << np.uint32(13) | mixed >> np.uint32(19)) * np.uint32(5) + np.uint32(0xE6546B64)
    odd = np.flatnonzero(lengths % 2)
    hashes[odd] ^= _mix_block(units[starts[odd] + lengths[odd] - 1])
    hashes ^= (2 * lengths).astype(np.uint32)
    hashes = (hashes ^ hashes >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ hashes >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return (hashes ^ hashes >> np.uint32(16)).view(np.int32)


def _mix_block(blocks: Array) -> Array:
    blocks = blocks * np.uint32(0xCC9E2D51)
    return (blocks << np.uint32(15) | blocks >> np.uint32(17)) * np.uint32(0x1B873593)


def _to_indices(hashes: Array, count: int) -> Array:
    return np.abs(hashes.astype(np.int64)) % count


@dataclass(frozen=True)
class FeatureHashing(ColumnFunction):
    """Projects columns to a sparse vector: a number to the hash of its column, a category to that of `column=value`."""

    numbers: tuple[tuple[int, str], ...]
    categories: tuple[tuple[int, str], ...]
    output_column: str
    num_features: int

    def output(self) -> tuple[tuple[str, t.DataType], ...]:
        """Return the vector."""
        return ((self.output_column, SPARSE_VECTOR),)

    def apply(self, rows: pa.StructArray, model: Any) -> tuple[Sequence[pa.Array], Array | None]:
        """Hash; NULL is left out."""
        count, size = len(rows), self.num_features
        row_indexes, indices, values = [], [], []
        for index, name in self.numbers:
            column = rows.field(index)
            kept = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
            row_indexes.append(kept)
            indices.append(np.repeat(_to_indices(hash_texts(pa.array([name])), size), len(kept)))
            values.append(column.drop_null().cast(pa.float64()).to_numpy())
        for index, name in self.categories:
            column = rows.field(index)
            kept = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
            encoded = column.drop_null().dictionary_encode()
            texts = pc.binary_join_element_wise(f"{name}=", encoded.dictionary.cast(pa.string()), "")
            row_indexes.append(kept)
            indices.append(_to_indices(hash_texts(texts), size)[encoded.indices.to_numpy()])
            values.append(np.ones(len(kept)))
        keys = np.concatenate(row_indexes) * np.int64(size) + np.concatenate(indices)
        distinct, inverse = np.unique(keys, return_inverse=True)
        offsets = np.searchsorted(distinct, np.arange(count + 1) * np.int64(size))
        sums = np.bincount(inverse, np.concatenate(values), len(distinct))
        return (write_sparse(SparseRows(size, offsets, distinct % size, sums)),), None


class InvalidRow(UserError):
    """A row has a value that cannot be part of a vector."""

    def __init__(self, column: str) -> None:
        super().__init__(
            f"the column '{column}' contains NULL or NaN", hint="set_handle_invalid('skip') drops such rows"
        )


@dataclass(frozen=True)
class Assembling(ColumnFunction):
    """Joins numbers and vectors to one vector, which is sparse if one of them is."""

    columns: tuple[tuple[int, str], ...]
    output_column: str
    skips: bool
    is_sparse: bool

    def output(self) -> tuple[tuple[str, t.DataType], ...]:
        """Return the vector."""
        return ((self.output_column, SPARSE_VECTOR if self.is_sparse else DENSE_VECTOR),)

    def apply(self, rows: pa.StructArray, model: Any) -> tuple[Sequence[pa.Array], Array | None]:
        """Join."""
        kept = np.ones(len(rows), dtype=bool)
        arrays = [(name, rows.field(index)) for index, name in self.columns]
        for name, array in arrays:
            is_valid = array.is_valid().to_numpy(zero_copy_only=False)
            if pa.types.is_floating(array.type):
                is_valid &= ~np.isnan(array.cast(pa.float64()).fill_null(0.0).to_numpy())
            if not self.skips and not is_valid.all():
                raise InvalidRow(name)
            kept &= is_valid
        chosen = pa.array(np.flatnonzero(kept))
        parts = [_read_part(array.take(chosen), name) for name, array in arrays]
        joined = _join_sparse(parts) if self.is_sparse else DenseRows(np.hstack([part.to_dense() for part in parts]))
        if kept.all():
            return (write_vectors(joined),), None
        indexes = np.cumsum(kept) - 1
        return (write_vectors(joined).take(pa.array(indexes, mask=~kept)),), kept


def _read_part(array: pa.Array, column: str) -> VectorRows:
    if pa.types.is_list(array.type) or pa.types.is_struct(array.type):
        return read_vectors(array, column)
    return DenseRows(array.cast(pa.float64()).to_numpy()[:, np.newaxis])


def _join_sparse(parts: Sequence[VectorRows]) -> SparseRows:
    count = len(parts[0])
    starts = np.cumsum([0, *(part.width for part in parts)])
    row_indexes, indices, values = [], [], []
    for part, start in zip(parts, starts, strict=False):
        if isinstance(part, SparseRows):
            row_indexes.append(np.repeat(np.arange(count), np.diff(part.offsets)))
            indices.append(part.indices + start)
            values.append(part.values)
        else:
            row_indexes.append(np.repeat(np.arange(count), part.width))
            indices.append(np.tile(np.arange(part.width), count) + start)
            values.append(part.values.reshape(-1))
    rows = np.concatenate(row_indexes)
    order = np.argsort(rows, kind="stable")
    offsets = np.searchsorted(rows[order], np.arange(count + 1))
    return SparseRows(int(starts[-1]), offsets, np.concatenate(indices)[order], np.concatenate(values)[order])

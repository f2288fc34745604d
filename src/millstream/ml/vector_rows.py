"""The vectors of a batch as a NumPy matrix: dense, or sparse in compressed rows.

Promises: both forms have the same methods and results; vectors of different sizes are refused with their column.
Does not know: labels, models, operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.errors import UserError
from millstream.ml.linalg import SPARSE_VECTOR
from millstream.sql.columns import arrow_type

Array = np.ndarray


class UnusableVectors(UserError):
    """A column has vectors that cannot be used together, or none."""

    def __init__(self, column: str, problem: str, hint: str) -> None:
        super().__init__(f"the vectors of column '{column}' {problem}", hint=hint)


class UnequalSizes(UserError):
    """Vectors that are used together have different sizes."""

    def __init__(self, size: int, other: int) -> None:
        super().__init__(f"vectors have sizes {size} and {other}", hint="give all vectors the same size")


def check_sizes(sizes: Array) -> None:
    """Raise if sizes differ."""
    if (sizes != sizes[0]).any():
        raise UnequalSizes(int(sizes.min()), int(sizes.max()))


@dataclass(frozen=True, slots=True)
class DenseRows:
    """A matrix with a vector in each row."""

    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        """The number of dimensions."""
        return int(self.values.shape[1])

    def dot(self, vector: Array) -> Array:
        """Return the product of each row and a vector."""
        return self.values @ vector  # type: ignore[no-any-return]

    def weighted_sum(self, weights: Array) -> Array:
        """Return the sum of the rows, each multiplied by a weight."""
        return weights @ self.values  # type: ignore[no-any-return]

    def coverage(self, weights: Array) -> Array:
        """Return for each dimension the sum of the weights of the rows that have a value in it."""
        return np.full(self.width, weights.sum())

    def take(self, rows: Array | slice) -> DenseRows:
        """Return some rows."""
        return DenseRows(self.values[rows])

    def to_dense(self) -> Array:
        """Return the matrix."""
        return self.values

    def positions(self, seed: int) -> Array:
        """Return a number in [0, 1) for each row, a hash of its values and the seed."""
        columns = np.arange(self.width, dtype=np.uint64)
        sums: Array = _mix_values(columns, self.values, seed).sum(axis=1, dtype=np.uint64)
        return _to_unit(sums, seed)


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Rows of which only some values are kept: those from `offsets[i]` to before `offsets[i + 1]` are of row `i`."""

    width: int
    offsets: Array
    indices: Array
    values: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def _rows(self) -> Array:
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def dot(self, vector: Array) -> Array:
        """Return the product of each row and a vector."""
        return np.bincount(self._rows(), self.values * vector[self.indices], len(self))

    def weighted_sum(self, weights: Array) -> Array:
        """Return the sum of the rows, each multiplied by a weight."""
        return np.bincount(self.indices, self.values * weights[self._rows()], self.width)

    def coverage(self, weights: Array) -> Array:
        """Return for each dimension the sum of the weights of the rows that have a value in it."""
        return np.bincount(self.indices, weights[self._rows()], self.width)

    def take(self, rows: Array | slice) -> SparseRows:
        """Return some rows."""
        rows = np.arange(len(self))[rows]
        counts = np.diff(self.offsets)[rows]
        offsets = np.concatenate(([0], np.cumsum(counts)))
        taken = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][rows] - offsets[:-1], counts)
        return SparseRows(self.width, offsets, self.indices[taken], self.values[taken])

    def to_dense(self) -> Array:
        """Return the matrix."""
        matrix = np.zeros((len(self), self.width))
        matrix[self._rows(), self.indices] = self.values
        return matrix

    def positions(self, seed: int) -> Array:
        """Return a number in [0, 1) for each row, a hash of its values and the seed."""
        hashes = _mix_values(self.indices.astype(np.uint64), self.values, seed)
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)))
        return _to_unit(sums[self.offsets[1:]] - sums[self.offsets[:-1]], seed)


VectorRows = DenseRows | SparseRows


def _mix(hashes: Array) -> Array:
    """Return the finalizer of SplitMix64 of 64-bit numbers."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = hashes ^ (hashes >> np.uint64(31))
    return mixed


def _mix_values(columns: Array, values: Array, seed: int) -> Array:
    bits = np.ascontiguousarray(values).view(np.uint64)
    salts = _mix((columns + np.uint64(seed % 2**63 + 1)) * np.uint64(0x9E3779B97F4A7C15))
    return _mix(bits ^ salts)


def _to_unit(hashes: Array, seed: int) -> Array:
    positions: Array = (_mix(hashes + np.uint64(seed % 2**63)) >> np.uint64(11)) * 2.0**-53
    return positions


def read_vectors(array: pa.Array, column: str) -> VectorRows:
    """Return the vectors of a column; raises if there are none, or if their sizes differ."""
    if array.null_count:
        raise UnusableVectors(column, "contain NULL", "filter such rows")
    if pa.types.is_struct(array.type):
        return _read_sparse(array, column)
    offsets = array.offsets.to_numpy()
    width = _common_size(np.diff(offsets), column)
    return DenseRows(_read_numbers(array, column).reshape(len(array), width))


def _read_sparse(array: pa.Array, column: str) -> SparseRows:
    sizes, indices, values = (array.field(index) for index in range(3))
    if sizes.null_count or indices.null_count or values.null_count:
        raise UnusableVectors(column, "contain NULL", "filter such rows")
    offsets, width = indices.offsets.to_numpy(), _common_size(sizes.to_numpy(), column)
    numbers = _read_numbers(values, column)
    flat = indices.flatten().to_numpy()
    if len(flat) != len(numbers) or (len(flat) and not 0 <= int(flat.min()) <= int(flat.max()) < width):
        raise UnusableVectors(column, "have indices that do not fit", "give an index below the size for each value")
    return SparseRows(width, offsets - offsets[0], flat, numbers)


def _common_size(sizes: Array, column: str) -> int:
    width = int(sizes[0]) if len(sizes) else 0
    if (sizes != width).any():
        other = int(sizes[sizes != width][0])
        raise UnusableVectors(column, f"have sizes {width} and {other}", "give all vectors the same size")
    return width


def _read_numbers(array: pa.Array, column: str) -> Array:
    numbers = array.flatten()
    if numbers.null_count:
        raise UnusableVectors(column, "contain NULL", "replace it by a number")
    return numbers.cast(pa.float64()).to_numpy()  # type: ignore[no-any-return]


def concat_vectors(parts: Sequence[VectorRows], column: str) -> VectorRows:
    """Return the rows of several matrices below one another."""
    width = _common_size(np.array([part.width for part in parts]), column)
    if all(isinstance(part, DenseRows) for part in parts):
        return DenseRows(np.concatenate([part.to_dense() for part in parts]))
    sparse = [part for part in parts if isinstance(part, SparseRows)]
    if len(sparse) < len(parts):
        raise UnusableVectors(column, "are dense and sparse", "use one form")
    starts = np.cumsum([0, *(len(part.values) for part in sparse)])
    offsets = [part.offsets[:-1] + start for part, start in zip(sparse, starts[:-1], strict=True)]
    return SparseRows(
        width,
        np.concatenate([*offsets, starts[-1:]]),
        np.concatenate([part.indices for part in sparse]),
        np.concatenate([part.values for part in sparse]),
    )


def write_dense(matrix: Array) -> pa.Array:
    """Return the rows of a matrix as a column of dense vectors."""
    count, width = matrix.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(matrix).reshape(-1)))


def write_sparse(rows: SparseRows) -> pa.Array:
    """Return rows as a column of sparse vectors."""
    offsets = pa.array(rows.offsets.astype(np.int32))
    columns = [
        pa.array(np.full(len(rows), rows.width, dtype=np.int32)),
        pa.ListArray.from_arrays(offsets, pa.array(rows.indices.astype(np.int32))),
        pa.ListArray.from_arrays(offsets, pa.array(rows.values)),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type(SPARSE_VECTOR)))


def write_vectors(rows: VectorRows) -> pa.Array:
    """Return rows as a column of vectors of their form."""
    return write_sparse(rows) if isinstance(rows, SparseRows) else write_dense(rows.values)

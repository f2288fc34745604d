"""Training data as arrays: feature vectors, labels and weights.

Promises: labels and weights without a column are 0 and 1; values that are no numbers are refused with their column.
Does not know: models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.errors import UserError
from millstream.ml.vector_rows import Array, DenseRows, VectorRows, concat_vectors, read_vectors, write_vectors
from millstream.types.arrow_streams import write_stream_bytes

Column = tuple[int, str]
"""The index and the name of a column."""


class UnusableNumbers(UserError):
    """A column has values that are no numbers."""

    def __init__(self, column: str, problem: str) -> None:
        super().__init__(f"the column '{column}' contains {problem}", hint="filter such rows, or replace the value")


@dataclass(frozen=True, slots=True)
class Samples:
    """Records of training data."""

    rows: VectorRows
    labels: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Array | slice) -> Samples:
        """Return some records."""
        return Samples(self.rows.take(rows), self.labels[rows], self.weights[rows])

    def pack(self) -> bytes:
        """Return the records as bytes, in a form that is safe to store."""
        columns = [write_vectors(self.rows), pa.array(self.labels), pa.array(self.weights)]
        return write_stream_bytes(pa.RecordBatch.from_arrays(columns, names=["rows", "labels", "weights"]))


@dataclass(frozen=True)
class SampleColumns:
    """The columns of training data. Without `has_vectors`, each of the feature columns is a number."""

    features: tuple[Column, ...]
    label: Column | None = None
    weight: Column | None = None
    has_vectors: bool = True

    def read(self, array: pa.StructArray) -> Samples:
        """Return the records of a batch; raises for NULL, NaN and infinity."""
        rows: VectorRows
        if self.has_vectors:
            index, name = self.features[0]
            rows = read_vectors(array.field(index), name)
            values = rows.values
            if not np.isfinite(values).all():
                raise UnusableNumbers(name, "NaN or infinity")
        else:
            columns = [_read_numbers(array, column) for column in self.features]
            rows = DenseRows(np.stack(columns, axis=1))
        count = len(array)
        labels = np.zeros(count) if self.label is None else _read_numbers(array, self.label)
        weights = np.ones(count) if self.weight is None else _read_numbers(array, self.weight)
        if self.weight is not None and count and weights.min() < 0:
            raise UnusableNumbers(self.weight[1], "a negative weight")
        return Samples(rows, labels, weights)


def _read_numbers(array: pa.StructArray, column: Column) -> Array:
    index, name = column
    numbers = array.field(index)
    if numbers.null_count:
        raise UnusableNumbers(name, "NULL")
    values: Array = numbers.cast(pa.float64()).to_numpy()
    if not np.isfinite(values).all():
        raise UnusableNumbers(name, "NaN or infinity")
    return values


def unpack_samples(data: bytes | memoryview) -> Samples:
    """Return the inverse of `Samples.pack`."""
    batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
    rows = read_vectors(batch.column(0), "features")
    return Samples(rows, batch.column(1).to_numpy(), batch.column(2).to_numpy())


def concat_samples(parts: Sequence[Samples], column: str) -> Samples:
    """Return the records of several parts; without parts, none."""
    if not parts:
        return Samples(DenseRows(np.zeros((0, 0))), np.zeros(0), np.zeros(0))
    return Samples(
        concat_vectors([part.rows for part in parts], column),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )

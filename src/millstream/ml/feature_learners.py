"""Features: mean and standard deviation, and the categories of columns.

Promises: variances are computed from differences to the mean, so large means do not spoil them.
Does not know: operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from millstream.errors import UserError
from millstream.ml.learners import OnlineLearner, SummaryLearner
from millstream.ml.linalg import DENSE_VECTOR, SPARSE_VECTOR
from millstream.ml.prediction import ModelFunction
from millstream.ml.samples import Samples, UnusableNumbers
from millstream.ml.vector_rows import (
    Array,
    DenseRows,
    SparseRows,
    UnusableVectors,
    VectorRows,
    check_sizes,
    read_vectors,
    write_dense,
    write_sparse,
)
from millstream.sql.types import data_types as t

MOMENTS = t.row_of(["mean", "std"], [DENSE_VECTOR, DENSE_VECTOR], null=False)
VERSIONED_MOMENTS = t.row_of(["mean", "std", "model_version"], [DENSE_VECTOR, DENSE_VECTOR, t.BIGINT], null=False)
CATEGORIES = t.row_of(["max_indices"], [DENSE_VECTOR], null=False)


def summarize_moments(rows: VectorRows) -> Array:
    """Return the number of rows, their mean, and the sum of squared differences to it."""
    count = len(rows)
    if isinstance(rows, DenseRows):
        mean = rows.values.mean(axis=0)
        squares = ((rows.values - mean) ** 2).sum(axis=0)
    else:
        mean = rows.weighted_sum(np.ones(count)) / count
        kept = rows.coverage(np.ones(count))
        differences = (rows.values - mean[rows.indices]) ** 2
        squares = np.bincount(rows.indices, differences, rows.width) + (count - kept) * mean**2
    return np.concatenate(([count], mean, squares))


def merge_moments(parts: Sequence[Array]) -> Array:
    """Return the moments of all rows of several parts."""
    merged = parts[0]
    for part in parts[1:]:
        check_sizes(np.array([len(merged), len(part)]) // 2)
        (count, mean, squares), (other, other_mean, other_squares) = _split_moments(merged), _split_moments(part)
        total, difference = count + other, other_mean - mean
        mean = mean + difference * (other / total)
        squares = squares + other_squares + difference**2 * (count * other / total)
        merged = np.concatenate(([total], mean, squares))
    return merged


def _split_moments(moments: Array) -> tuple[float, Array, Array]:
    mean, squares = np.split(moments[1:], 2)
    return float(moments[0]), mean, squares


def _write_moments(models: Array) -> Sequence[pa.Array]:
    """Return mean and sample standard deviation, which is zero for one row."""
    mean, squares = np.split(models[:, 1:], 2, axis=1)
    std = np.sqrt(squares / np.maximum(models[:, :1] - 1, 1.0))
    return write_dense(mean), write_dense(std)


@dataclass(frozen=True)
class Moments(SummaryLearner):
    """Mean and standard deviation of each dimension."""

    model_schema: ClassVar[t.RowType] = MOMENTS

    def summarize(self, samples: Samples, positions: Array) -> Array:
        """Return the moments of some rows."""
        return summarize_moments(samples.rows)

    def merge(self, partials: Sequence[Array]) -> Array:
        """Return the moments of all rows."""
        return merge_moments(partials)

    def result(self, models: Array) -> Sequence[pa.Array]:
        """Return mean and standard deviation."""
        return _write_moments(models)


@dataclass(frozen=True)
class RunningMoments(OnlineLearner):
    """Mean and standard deviation of all rows until now, after each window of a size."""

    size: int | None
    model_schema: ClassVar[t.RowType] = VERSIONED_MOMENTS

    @property
    def batch_size(self) -> int | None:
        """The size of a window, None for one window."""
        return self.size

    def start(self, model_data: pa.StructArray | None, width: int) -> Array:
        """Return the moments of no rows."""
        return np.zeros(1 + 2 * width)

    def update(self, model: Array, samples: Samples) -> Array:
        """Return the moments with some more rows."""
        return merge_moments([model, summarize_moments(samples.rows)])

    def result(self, models: Array) -> Sequence[pa.Array]:
        """Return mean and standard deviation."""
        return _write_moments(models)


@dataclass(frozen=True)
class Scaling(ModelFunction):
    """Subtracts the mean, and divides by the standard deviation; a dimension that does not vary becomes 0."""

    column: tuple[int, str]
    output_column: str
    with_mean: bool
    with_std: bool
    is_sparse: bool
    model_schema: ClassVar[t.RowType] = MOMENTS

    def output(self) -> tuple[tuple[str, t.DataType], ...]:
        """Return the scaled vector; a sparse one becomes dense by the subtraction of the mean."""
        return ((self.output_column, SPARSE_VECTOR if self.is_sparse and not self.with_mean else DENSE_VECTOR),)

    def load(self, model_data: pa.StructArray) -> Any:
        """Return mean and factor."""
        mean, std = (read_vectors(model_data.field(index), "model").to_dense()[0] for index in range(2))
        factor = np.divide(1.0, std, out=np.zeros_like(std), where=std > 0)
        return mean if self.with_mean else np.zeros_like(mean), factor if self.with_std else np.ones_like(std)

    def apply(self, rows: pa.StructArray, model: Any) -> tuple[Sequence[pa.Array], Array | None]:
        """Scale."""
        index, name = self.column
        vectors = read_vectors(rows.field(index), name)
        mean, factor = model
        if len(vectors) and vectors.width != len(mean):
            problem = f"have size {vectors.width}, but the model has size {len(mean)}"
            raise UnusableVectors(name, problem, "use the column that the model was trained with")
        if isinstance(vectors, SparseRows) and not self.with_mean:
            values = vectors.values * factor[vectors.indices]
            return (write_sparse(SparseRows(vectors.width, vectors.offsets, vectors.indices, values)),), None
        return (write_dense((vectors.to_dense() - mean) * factor),), None


@dataclass(frozen=True)
class OnlineScaling(Scaling):
    """Scales with the newest moments."""

    model_schema: ClassVar[t.RowType] = VERSIONED_MOMENTS


class UnusableCategory(UserError):
    """A category is not a small natural number, or was not in the training data."""

    def __init__(self, column: str, category: float, reason: str) -> None:
        super().__init__(
            f"the column '{column}' contains the category {category:g}, {reason}",
            hint="categories are the numbers from 0; set_handle_invalid('skip') drops rows with unknown ones",
        )


def _check_categories(column: str, values: Array) -> None:
    wrong = (values < 0) | (values != np.floor(values)) | (values > 2**31 - 2)
    if wrong.any():
        raise UnusableCategory(column, float(values[wrong][0]), "which is not an index")


@dataclass(frozen=True)
class Categories(SummaryLearner):
    """The greatest category of each column."""

    columns: tuple[str, ...]
    model_schema: ClassVar[t.RowType] = CATEGORIES

    def summarize(self, samples: Samples, positions: Array) -> Array:
        """Return the greatest categories of some rows."""
        values = samples.rows.to_dense()
        for index, column in enumerate(self.columns):
            _check_categories(column, values[:, index])
        return values.max(axis=0)  # type: ignore[no-any-return]

    def merge(self, partials: Sequence[Array]) -> Array:
        """Return the greatest categories."""
        return np.max(partials, axis=0)  # type: ignore[no-any-return]

    def result(self, models: Array) -> Sequence[pa.Array]:
        """Return the greatest categories."""
        return (write_dense(models),)


@dataclass(frozen=True)
class OneHot(ModelFunction):
    """Turns categories into sparse vectors with a single 1."""

    columns: tuple[tuple[int, str], ...]
    output_columns: tuple[str, ...]
    drop_last: bool
    skips: bool
    model_schema: ClassVar[t.RowType] = CATEGORIES

    def output(self) -> tuple[tuple[str, t.DataType], ...]:
        """Return the vectors."""
        return tuple((name, SPARSE_VECTOR) for name in self.output_columns)

    def load(self, model_data: pa.StructArray) -> Any:
        """Return the greatest categories."""
        return read_vectors(model_data.field(0), "max_indices").to_dense()[0].astype(np.int64)

    def apply(self, rows: pa.StructArray, model: Any) -> tuple[Sequence[pa.Array], Array | None]:
        """Encode."""
        kept = np.ones(len(rows), dtype=bool)
        vectors = []
        for (index, name), greatest in zip(self.columns, model.tolist(), strict=True):
            array = rows.field(index)
            values = array.cast(pa.float64()).fill_null(-1.0).to_numpy()
            is_known = (values >= 0) & (values <= greatest) & (values == np.floor(values))
            if not is_known.all() and not self.skips:
                if array.null_count:
                    raise UnusableNumbers(name, "NULL")
                raise UnusableCategory(name, float(values[~is_known][0]), f"the greatest known one is {greatest}")
            kept &= is_known
            categories = np.where(is_known, values, 0).astype(np.int64)
            width = greatest + (0 if self.drop_last else 1)
            present = categories < width
            offsets = np.concatenate(([0], np.cumsum(present)))
            vectors.append(write_sparse(SparseRows(width, offsets, categories[present], np.ones(int(offsets[-1])))))
        return vectors, None if kept.all() else kept

"""K-means: Lloyd's algorithm in rounds, and mini-batch k-means on streams.

Promises: the initial centroids are distinct samples that depend on the seed only, and not on the parallelism.
Does not know: operators, rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from millstream.errors import InvalidArgument
from millstream.ml.learners import NoTrainingData, OnlineLearner, RoundsLearner
from millstream.ml.linalg import DENSE_VECTOR
from millstream.ml.prediction import ModelFunction
from millstream.ml.samples import Samples
from millstream.ml.vector_rows import (
    Array,
    DenseRows,
    UnusableVectors,
    VectorRows,
    check_sizes,
    read_vectors,
    write_dense,
)
from millstream.sql.types import data_types as t

CLUSTERS = t.row_of(["centroids", "weights"], [t.ArrayType(DENSE_VECTOR), DENSE_VECTOR], null=False)
VERSIONED_CLUSTERS = t.row_of(
    ["centroids", "weights", "model_version"], [t.ArrayType(DENSE_VECTOR), DENSE_VECTOR, t.BIGINT], null=False
)
_BLOCK = 8192  # rows whose distances are computed at once, so that they stay in the cache


def nearest(rows: VectorRows, centroids: Array, measure: str) -> Array:
    """Return the index of the centroid that is nearest to each row; the first of equal ones."""
    blocks = range(0, len(rows), _BLOCK)
    found = [_nearest(rows.take(slice(start, start + _BLOCK)), centroids, measure) for start in blocks]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _nearest(rows: VectorRows, centroids: Array, measure: str) -> Array:
    if measure == "manhattan":
        points = rows.to_dense()
        distances = [np.abs(points - centroid).sum(axis=1) for centroid in centroids]
        return np.argmin(distances, axis=0)  # type: ignore[no-any-return]
    if measure == "cosine":
        norms = np.linalg.norm(centroids, axis=1)
        centroids = centroids / np.where(norms > 0, norms, 1.0)[:, np.newaxis]
    products = rows.values @ centroids.T if isinstance(rows, DenseRows) else _sparse_products(rows, centroids)
    if measure == "cosine":
        return np.argmax(products, axis=1)  # type: ignore[no-any-return]
    return np.argmin((centroids**2).sum(axis=1) - 2 * products, axis=1)  # type: ignore[no-any-return]


def _sparse_products(rows: VectorRows, centroids: Array) -> Array:
    return np.stack([rows.dot(centroid) for centroid in centroids], axis=1)


def sum_clusters(rows: VectorRows, centroids: Array, measure: str) -> tuple[Array, Array]:
    """Return the sum of the rows of each cluster, and their number."""
    count = len(centroids)
    sums, sizes = np.zeros_like(centroids), np.zeros(count)
    for start in range(0, len(rows), _BLOCK):
        block = rows.take(slice(start, start + _BLOCK))
        members = _nearest(block, centroids, measure)[:, np.newaxis] == np.arange(count)
        sizes += members.sum(axis=0)
        if isinstance(block, DenseRows):
            sums += members.T.astype(np.float64) @ block.values
        else:
            sums += np.stack([block.weighted_sum(column.astype(np.float64)) for column in members.T])
    return sums, sizes


def _write_clusters(centroids: Array, weights: Array) -> Sequence[pa.Array]:
    """Return the columns of the model data; the first axis of both are the models."""
    models, count, width = centroids.shape
    vectors = write_dense(centroids.reshape(models * count, width))
    offsets = pa.array(np.arange(models + 1, dtype=np.int32) * np.int32(count))
    return pa.ListArray.from_arrays(offsets, vectors), write_dense(weights)


@dataclass(frozen=True)
class Lloyd(RoundsLearner):
    """Lloyd's algorithm. A model is the numbers of clusters and dimensions, the weights, and the centroids."""

    k: int
    max_iter: int
    measure: str
    chosen_seed: int
    model_schema: ClassVar[t.RowType] = CLUSTERS

    @property
    def rounds(self) -> int:
        """The number of updates."""
        return self.max_iter

    @property
    def seed(self) -> int:
        """The seed that selects the initial centroids."""
        return self.chosen_seed

    def summarize(self, samples: Samples, positions: Array) -> Array:
        """Return the first samples by position as candidates, each with its position; equal samples count once."""
        _, first = np.unique(positions, return_index=True)
        chosen = first[: self.k]
        candidates = np.column_stack((positions[chosen], samples.rows.take(chosen).to_dense()))
        return np.concatenate(([candidates.shape[1]], candidates.reshape(-1)))

    def start(self, partials: Sequence[Array]) -> Array:
        """Return the first candidates as centroids."""
        if not partials:
            raise NoTrainingData
        check_sizes(np.array([int(partial[0]) - 1 for partial in partials]))
        candidates = np.concatenate([partial[1:].reshape(-1, int(partial[0])) for partial in partials])
        _, first = np.unique(candidates[:, 0], return_index=True)
        centroids = candidates[first[: self.k], 1:]
        return _join_clusters(centroids, np.zeros(len(centroids)))

    def train(self, samples: Samples, positions: Array, model: Array) -> Array:
        """Return the sums and sizes of the clusters."""
        sums, sizes = sum_clusters(samples.rows, _split_clusters(model)[0], self.measure)
        return np.concatenate((sizes, sums.reshape(-1)))

    def update(self, model: Array, partials: Sequence[Array]) -> tuple[Array, bool]:
        """Return the means of the clusters; an empty cluster keeps its centroid. Training ends when none moves."""
        before, _ = _split_clusters(model)
        total = np.sum(partials, axis=0)
        sizes, sums = total[: len(before)], total[len(before) :].reshape(before.shape)
        is_used = (sizes > 0)[:, np.newaxis]
        centroids = np.where(is_used, sums / np.maximum(sizes, 1.0)[:, np.newaxis], before)
        return _join_clusters(centroids, sizes), bool(np.array_equal(before, centroids))

    def result(self, models: Array) -> Sequence[pa.Array]:
        """Return centroids and weights."""
        centroids, weights = _split_clusters(models[0])
        return _write_clusters(centroids[np.newaxis], weights[np.newaxis])


def _join_clusters(centroids: Array, weights: Array) -> Array:
    return np.concatenate(([len(centroids)], weights, centroids.reshape(-1)))


def _split_clusters(model: Array) -> tuple[Array, Array]:
    count = int(model[0])
    return model[1 + count :].reshape(count, -1), model[1 : 1 + count]


@dataclass(frozen=True)
class MiniBatchKMeans(OnlineLearner):
    """Mini-batch k-means with forgetting. A model has the form of that of `Lloyd`."""

    k: int
    measure: str
    decay_factor: float
    global_batch_size: int
    model_schema: ClassVar[t.RowType] = VERSIONED_CLUSTERS

    @property
    def needs_model(self) -> bool:
        """Whether samples wait for initial model data."""
        return True

    @property
    def batch_size(self) -> int | None:
        """The number of samples of a mini-batch."""
        return self.global_batch_size

    def start(self, model_data: pa.StructArray | None, width: int) -> Array:
        """Return the initial model data."""
        assert model_data is not None
        centroids, weights = read_clusters(model_data)
        check_sizes(np.array([width, centroids.shape[1]]))
        if len(centroids) != self.k:
            msg = f"the initial model data has {len(centroids)} centroids, and k is {self.k}"
            raise InvalidArgument(msg, hint="set k to the number of centroids")
        return _join_clusters(centroids, weights)

    def update(self, model: Array, samples: Samples) -> Array:
        """Move each centroid to the mean of its samples, by their share of the decayed weight."""
        centroids, weights = _split_clusters(model)
        sums, sizes = sum_clusters(samples.rows, centroids, self.measure)
        weights = weights * self.decay_factor + sizes
        used = sizes > 0
        moved = centroids.copy()
        share = (sizes[used] / weights[used])[:, np.newaxis]
        moved[used] = centroids[used] * (1 - share) + sums[used] / sizes[used][:, np.newaxis] * share
        return _join_clusters(moved, weights)

    def result(self, models: Array) -> Sequence[pa.Array]:
        """Return centroids and weights."""
        parts = [_split_clusters(model) for model in models]
        return _write_clusters(np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts]))


def read_clusters(model_data: pa.StructArray) -> tuple[Array, Array]:
    """Return centroids and weights of model data of one row."""
    centroids = read_vectors(model_data.field(0).flatten(), "centroids").to_dense()
    return centroids, read_vectors(model_data.field(1), "weights").to_dense()[0]


@dataclass(frozen=True)
class ClusterPrediction(ModelFunction):
    """Finds the nearest centroid."""

    features: tuple[int, str]
    prediction: str
    measure: str
    model_schema: ClassVar[t.RowType] = CLUSTERS

    def output(self) -> tuple[tuple[str, t.DataType], ...]:
        """Return the index of the cluster."""
        return ((self.prediction, t.INT),)

    def load(self, model_data: pa.StructArray) -> Any:
        """Return the centroids."""
        return read_clusters(model_data)[0]

    def apply(self, rows: pa.StructArray, model: Any) -> tuple[Sequence[pa.Array], Array | None]:
        """Predict."""
        index, name = self.features
        vectors = read_vectors(rows.field(index), name)
        if len(vectors) and vectors.width != model.shape[1]:
            problem = f"have size {vectors.width}, but the centroids have size {model.shape[1]}"
            raise UnusableVectors(name, problem, "use the columns that the model was trained with")
        return (pa.array(nearest(vectors, model, self.measure).astype(np.int32)),), None


@dataclass(frozen=True)
class OnlineClusterPrediction(ClusterPrediction):
    """Finds the nearest centroid of the newest version of a model."""

    model_schema: ClassVar[t.RowType] = VERSIONED_CLUSTERS

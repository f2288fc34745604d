"""K-means and online k-means.

Promises: names and defaults of Flink ML.
Does not know: the algorithms; see `kmeans_learners.py`."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from millstream.errors import InvalidArgument
from millstream.ml.api import Estimator, TableInput, TableModel
from millstream.ml.common.param import (
    HasBatchStrategy,
    HasDecayFactor,
    HasDistanceMeasure,
    HasFeaturesCol,
    HasGlobalBatchSize,
    HasMaxIter,
    HasModelVersionCol,
    HasPredictionCol,
    HasSeed,
)
from millstream.ml.kmeans_learners import (
    CLUSTERS,
    VERSIONED_CLUSTERS,
    ClusterPrediction,
    Lloyd,
    MiniBatchKMeans,
    OnlineClusterPrediction,
)
from millstream.ml.online import train_online
from millstream.ml.param import Param, greater_than, one_of
from millstream.ml.prediction import ModelFunction
from millstream.ml.samples import SampleColumns
from millstream.ml.training import train
from millstream.sql.types import data_types as t
from millstream.table.table import Table
from millstream.table.table_environment import StreamTableEnvironment


class _KMeansModelParams(HasDistanceMeasure, HasFeaturesCol, HasPredictionCol):
    K: Param[int] = Param("k", int, 2, greater_than(1))

    def set_k(self, value: int) -> Self:
        """Set the greatest number of clusters."""
        return self.set(self.K, value)

    def get_k(self) -> int:
        """Return the greatest number of clusters."""
        return self.get(self.K)


class KMeansModel(_KMeansModelParams, TableModel):
    """Adds the index of the nearest centroid to each row. Its model data are `centroids` and `weights`, the numbers of
    samples of the clusters.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> centroids = t_env.from_elements([([[0.0], [9.0]], [1.0, 1.0])], ["centroids", "weights"])
        >>> model = KMeansModel().set_model_data(centroids)
        >>> model.transform(t_env.from_elements([([7.0],)], ["features"]))[0].to_arrow()["prediction"].to_pylist()
        [1]

    """

    model_schema: ClassVar[t.RowType] = CLUSTERS

    def _function(self, table: TableInput) -> ModelFunction:
        features = table.vector(self.get_features_col())
        return ClusterPrediction(features, self.get_prediction_col(), self.get_distance_measure())


class KMeans(_KMeansModelParams, HasMaxIter, HasSeed, Estimator):
    """Lloyd's k-means on a bounded table.

    The initial centroids are distinct samples, selected by the seed. Training ends when no centroid moves.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> points = t_env.from_elements([([0.0, 0.0],), ([0.5, 0.0],), ([9.0, 9.0],)], ["features"])
        >>> model = KMeans().set_k(2).set_seed(1).fit(points)
        >>> clusters = model.transform(points)[0]

    """

    INIT_MODE: Param[str] = Param("init_mode", str, "random", one_of("random"))

    def set_init_mode(self, value: str) -> Self:
        """Set how the initial centroids are selected.

        Args:
            value: `random`, the only way.

        """
        return self.set(self.INIT_MODE, value)

    def get_init_mode(self) -> str:
        """Return how the initial centroids are selected."""
        return self.get(self.INIT_MODE)

    def fit(self, *inputs: Table) -> KMeansModel:
        """Find the centroids of a table.

        Args:
            *inputs: One bounded table.

        """
        table = TableInput(inputs)
        columns = SampleColumns((table.vector(self.get_features_col()),))
        learner = Lloyd(self.get_k(), self.get_max_iter(), self.get_distance_measure(), self.get_seed() or 0)
        models = train(table.stream, learner, columns, "KMeans")
        return KMeansModel()._copy_params(self).set_model_data(table.t_env.from_data_stream(models))


class OnlineKMeansModel(_KMeansModelParams, HasModelVersionCol, TableModel):
    """Adds the index of the nearest centroid of the newest model to each row, and the version of the model.

    Example:
        >>> model = OnlineKMeansModel().set_model_version_col("model")

    """

    model_schema: ClassVar[t.RowType] = VERSIONED_CLUSTERS

    def _function(self, table: TableInput) -> ModelFunction:
        features = table.vector(self.get_features_col())
        return OnlineClusterPrediction(features, self.get_prediction_col(), self.get_distance_measure())


class OnlineKMeans(
    _KMeansModelParams,
    HasBatchStrategy,
    HasGlobalBatchSize,
    HasDecayFactor,
    HasSeed,
    HasModelVersionCol,
    Estimator,
):
    """Mini-batch k-means on a stream: the model moves with every mini-batch, and forgets by the decay factor.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> points = t_env.from_elements([([0.0, 0.1],), ([0.9, 0.8],)], ["features"])
        >>> train = OnlineKMeans().set_initial_model_data(generate_random_model_data(t_env, 2, 2, 1.0, 7))
        >>> model = train.set_global_batch_size(2).fit(points)

    """

    def __init__(self) -> None:
        super().__init__()
        self._initial: Table | None = None

    def set_initial_model_data(self, table: Table) -> Self:
        """Set the centroids to begin with.

        Args:
            table: The model data of a `KMeansModel`, or what `generate_random_model_data` returns.

        """
        self._initial = TableInput((table,)).check_model_data(CLUSTERS)
        return self

    def fit(self, *inputs: Table) -> OnlineKMeansModel:
        """Train with the rows of a table, as they arrive.

        Args:
            *inputs: One table.

        """
        if self._initial is None:
            msg = "OnlineKMeans has no initial model data"
            raise InvalidArgument(msg, hint="call set_initial_model_data() with that of a KMeansModel")
        table = TableInput(inputs)
        learner = MiniBatchKMeans(
            self.get_k(), self.get_distance_measure(), self.get_decay_factor(), self.get_global_batch_size()
        )
        columns = SampleColumns((table.vector(self.get_features_col()),))
        initial = table.t_env.to_data_stream(self._initial)
        models = train_online(table.stream, learner, columns, "OnlineKMeans", initial)
        return OnlineKMeansModel()._copy_params(self).set_model_data(table.t_env.from_data_stream(models))


def generate_random_model_data(t_env: StreamTableEnvironment, k: int, dim: int, weight: float, seed: int) -> Table:
    """Create model data with random centroids.

    Args:
        t_env: The environment.
        k: The number of centroids.
        dim: The number of dimensions.
        weight: The weight of each centroid.
        seed: The seed.

    Returns:
        A table of one row, with coordinates from 0 to below 1.

    """
    centroids: Any = np.random.default_rng(seed).random((k, dim)).tolist()
    return t_env.from_elements([(centroids, [float(weight)] * k)], ["centroids", "weights"])

"""Parameters that several stages share.

Promises: names and defaults are those of Flink ML's Python API.
Does not know: what stages do with them."""

from __future__ import annotations

from typing import Self

from millstream.ml.common.window import GlobalWindows, Windows
from millstream.ml.param import NOT_EMPTY, Param, WithParams, at_least, between, greater_than, one_of


class HasDistanceMeasure(WithParams):
    """Has the distance measure: `euclidean`, `manhattan` or `cosine`."""

    DISTANCE_MEASURE: Param[str] = Param(
        "distance_measure", str, "euclidean", one_of("euclidean", "manhattan", "cosine")
    )

    def set_distance_measure(self, value: str) -> Self:
        """Set the distance measure: `euclidean`, `manhattan` or `cosine`."""
        return self.set(self.DISTANCE_MEASURE, value)

    def get_distance_measure(self) -> str:
        """Return the distance measure: `euclidean`, `manhattan` or `cosine`."""
        return self.get(self.DISTANCE_MEASURE)


class HasFeaturesCol(WithParams):
    """Has the column of feature vectors."""

    FEATURES_COL: Param[str] = Param("features_col", str, "features", NOT_EMPTY)

    def set_features_col(self, value: str) -> Self:
        """Set the column of feature vectors."""
        return self.set(self.FEATURES_COL, value)

    def get_features_col(self) -> str:
        """Return the column of feature vectors."""
        return self.get(self.FEATURES_COL)


class HasLabelCol(WithParams):
    """Has the column of labels."""

    LABEL_COL: Param[str] = Param("label_col", str, "label", NOT_EMPTY)

    def set_label_col(self, value: str) -> Self:
        """Set the column of labels."""
        return self.set(self.LABEL_COL, value)

    def get_label_col(self) -> str:
        """Return the column of labels."""
        return self.get(self.LABEL_COL)


class HasWeightCol(WithParams):
    """Has the column of weights; without one, all weights are 1."""

    WEIGHT_COL: Param[str | None] = Param("weight_col", str, None, NOT_EMPTY, optional=True)

    def set_weight_col(self, value: str) -> Self:
        """Set the column of weights; without one, all weights are 1."""
        return self.set(self.WEIGHT_COL, value)

    def get_weight_col(self) -> str | None:
        """Return the column of weights; without one, all weights are 1."""
        return self.get(self.WEIGHT_COL)


class HasPredictionCol(WithParams):
    """Has the column of predictions."""

    PREDICTION_COL: Param[str] = Param("prediction_col", str, "prediction", NOT_EMPTY)

    def set_prediction_col(self, value: str) -> Self:
        """Set the column of predictions."""
        return self.set(self.PREDICTION_COL, value)

    def get_prediction_col(self) -> str:
        """Return the column of predictions."""
        return self.get(self.PREDICTION_COL)


class HasRawPredictionCol(WithParams):
    """Has the column of the probabilities of the classes."""

    RAW_PREDICTION_COL: Param[str] = Param("raw_prediction_col", str, "raw_prediction", NOT_EMPTY)

    def set_raw_prediction_col(self, value: str) -> Self:
        """Set the column of the probabilities of the classes."""
        return self.set(self.RAW_PREDICTION_COL, value)

    def get_raw_prediction_col(self) -> str:
        """Return the column of the probabilities of the classes."""
        return self.get(self.RAW_PREDICTION_COL)


class HasModelVersionCol(WithParams):
    """Has the column of the version of the model that made the prediction."""

    MODEL_VERSION_COL: Param[str] = Param("model_version_col", str, "version", NOT_EMPTY)

    def set_model_version_col(self, value: str) -> Self:
        """Set the column of the version of the model that made the prediction."""
        return self.set(self.MODEL_VERSION_COL, value)

    def get_model_version_col(self) -> str:
        """Return the column of the version of the model that made the prediction."""
        return self.get(self.MODEL_VERSION_COL)


class HasInputCol(WithParams):
    """Has the input column."""

    INPUT_COL: Param[str] = Param("input_col", str, "input", NOT_EMPTY)

    def set_input_col(self, value: str) -> Self:
        """Set the input column."""
        return self.set(self.INPUT_COL, value)

    def get_input_col(self) -> str:
        """Return the input column."""
        return self.get(self.INPUT_COL)


class HasOutputCol(WithParams):
    """Has the output column."""

    OUTPUT_COL: Param[str] = Param("output_col", str, "output", NOT_EMPTY)

    def set_output_col(self, value: str) -> Self:
        """Set the output column."""
        return self.set(self.OUTPUT_COL, value)

    def get_output_col(self) -> str:
        """Return the output column."""
        return self.get(self.OUTPUT_COL)


class HasInputCols(WithParams):
    """Has the input columns."""

    INPUT_COLS: Param[tuple[str, ...]] = Param("input_cols", tuple, (), NOT_EMPTY)

    def set_input_cols(self, *value: str) -> Self:
        """Set the input columns."""
        return self.set(self.INPUT_COLS, value)

    def get_input_cols(self) -> tuple[str, ...]:
        """Return the input columns."""
        return self.get(self.INPUT_COLS)


class HasOutputCols(WithParams):
    """Has the output columns."""

    OUTPUT_COLS: Param[tuple[str, ...]] = Param("output_cols", tuple, (), NOT_EMPTY)

    def set_output_cols(self, *value: str) -> Self:
        """Set the output columns."""
        return self.set(self.OUTPUT_COLS, value)

    def get_output_cols(self) -> tuple[str, ...]:
        """Return the output columns."""
        return self.get(self.OUTPUT_COLS)


class HasCategoricalCols(WithParams):
    """Has the columns whose numbers are categories."""

    CATEGORICAL_COLS: Param[tuple[str, ...]] = Param("categorical_cols", tuple, ())

    def set_categorical_cols(self, *value: str) -> Self:
        """Set the columns whose numbers are categories."""
        return self.set(self.CATEGORICAL_COLS, value)

    def get_categorical_cols(self) -> tuple[str, ...]:
        """Return the columns whose numbers are categories."""
        return self.get(self.CATEGORICAL_COLS)


class HasHandleInvalid(WithParams):
    """Has what happens to rows with invalid values: `error` or `skip`."""

    HANDLE_INVALID: Param[str] = Param("handle_invalid", str, "error", one_of("error", "skip"))

    def set_handle_invalid(self, value: str) -> Self:
        """Set what happens to rows with invalid values: `error` or `skip`."""
        return self.set(self.HANDLE_INVALID, value)

    def get_handle_invalid(self) -> str:
        """Return what happens to rows with invalid values: `error` or `skip`."""
        return self.get(self.HANDLE_INVALID)


class HasNumFeatures(WithParams):
    """Has the number of features."""

    NUM_FEATURES: Param[int] = Param("num_features", int, 262144, greater_than(0))

    def set_num_features(self, value: int) -> Self:
        """Set the number of features."""
        return self.set(self.NUM_FEATURES, value)

    def get_num_features(self) -> int:
        """Return the number of features."""
        return self.get(self.NUM_FEATURES)


class HasGlobalBatchSize(WithParams):
    """Has the number of records of a mini-batch, over all subtasks."""

    GLOBAL_BATCH_SIZE: Param[int] = Param("global_batch_size", int, 32, greater_than(0))

    def set_global_batch_size(self, value: int) -> Self:
        """Set the number of records of a mini-batch, over all subtasks."""
        return self.set(self.GLOBAL_BATCH_SIZE, value)

    def get_global_batch_size(self) -> int:
        """Return the number of records of a mini-batch, over all subtasks."""
        return self.get(self.GLOBAL_BATCH_SIZE)


class HasBatchStrategy(WithParams):
    """Has how mini-batches are made of a stream."""

    BATCH_STRATEGY: Param[str] = Param("batch_strategy", str, "count", one_of("count"))

    def set_batch_strategy(self, value: str) -> Self:
        """Set how mini-batches are made of a stream."""
        return self.set(self.BATCH_STRATEGY, value)

    def get_batch_strategy(self) -> str:
        """Return how mini-batches are made of a stream."""
        return self.get(self.BATCH_STRATEGY)


class HasDecayFactor(WithParams):
    """Has how much of the weight of old centroids is kept: 0 forgets, 1 keeps all."""

    DECAY_FACTOR: Param[float] = Param("decay_factor", float, 0.0, between(0, 1))

    def set_decay_factor(self, value: float) -> Self:
        """Set how much of the weight of old centroids is kept: 0 forgets, 1 keeps all."""
        return self.set(self.DECAY_FACTOR, value)

    def get_decay_factor(self) -> float:
        """Return how much of the weight of old centroids is kept: 0 forgets, 1 keeps all."""
        return self.get(self.DECAY_FACTOR)


class HasMaxIter(WithParams):
    """Has the greatest number of rounds."""

    MAX_ITER: Param[int] = Param("max_iter", int, 20, greater_than(0))

    def set_max_iter(self, value: int) -> Self:
        """Set the greatest number of rounds."""
        return self.set(self.MAX_ITER, value)

    def get_max_iter(self) -> int:
        """Return the greatest number of rounds."""
        return self.get(self.MAX_ITER)


class HasTol(WithParams):
    """Has the mean loss at which training ends."""

    TOL: Param[float] = Param("tol", float, 1e-6, at_least(0))

    def set_tol(self, value: float) -> Self:
        """Set the mean loss at which training ends."""
        return self.set(self.TOL, value)

    def get_tol(self) -> float:
        """Return the mean loss at which training ends."""
        return self.get(self.TOL)


class HasLearningRate(WithParams):
    """Has the learning rate."""

    LEARNING_RATE: Param[float] = Param("learning_rate", float, 0.1, greater_than(0))

    def set_learning_rate(self, value: float) -> Self:
        """Set the learning rate."""
        return self.set(self.LEARNING_RATE, value)

    def get_learning_rate(self) -> float:
        """Return the learning rate."""
        return self.get(self.LEARNING_RATE)


class HasReg(WithParams):
    """Has the strength of the regularization."""

    REG: Param[float] = Param("reg", float, 0.0, at_least(0))

    def set_reg(self, value: float) -> Self:
        """Set the strength of the regularization."""
        return self.set(self.REG, value)

    def get_reg(self) -> float:
        """Return the strength of the regularization."""
        return self.get(self.REG)


class HasElasticNet(WithParams):
    """Has the share of L1 in the regularization; the rest is L2."""

    ELASTIC_NET: Param[float] = Param("elastic_net", float, 0.0, between(0, 1))

    def set_elastic_net(self, value: float) -> Self:
        """Set the share of L1 in the regularization; the rest is L2."""
        return self.set(self.ELASTIC_NET, value)

    def get_elastic_net(self) -> float:
        """Return the share of L1 in the regularization; the rest is L2."""
        return self.get(self.ELASTIC_NET)


class HasAlpha(WithParams):
    """Has the parameter alpha of FTRL."""

    ALPHA: Param[float] = Param("alpha", float, 0.1, greater_than(0))

    def set_alpha(self, value: float) -> Self:
        """Set the parameter alpha of FTRL."""
        return self.set(self.ALPHA, value)

    def get_alpha(self) -> float:
        """Return the parameter alpha of FTRL."""
        return self.get(self.ALPHA)


class HasBeta(WithParams):
    """Has the parameter beta of FTRL."""

    BETA: Param[float] = Param("beta", float, 0.1, greater_than(0))

    def set_beta(self, value: float) -> Self:
        """Set the parameter beta of FTRL."""
        return self.set(self.BETA, value)

    def get_beta(self) -> float:
        """Return the parameter beta of FTRL."""
        return self.get(self.BETA)


class HasMultiClass(WithParams):
    """Has the type of classification; only two classes are possible."""

    MULTI_CLASS: Param[str] = Param("multi_class", str, "auto", one_of("auto", "binomial", "multinomial"))

    def set_multi_class(self, value: str) -> Self:
        """Set the type of classification; only two classes are possible."""
        return self.set(self.MULTI_CLASS, value)

    def get_multi_class(self) -> str:
        """Return the type of classification; only two classes are possible."""
        return self.get(self.MULTI_CLASS)


class HasSeed(WithParams):
    """Has the seed of random choices; without one it is 0."""

    SEED: Param[int | None] = Param("seed", int, None, optional=True)

    def set_seed(self, value: int) -> Self:
        """Set the seed of random choices; without one it is 0."""
        return self.set(self.SEED, value)

    def get_seed(self) -> int | None:
        """Return the seed of random choices; without one it is 0."""
        return self.get(self.SEED)


class HasWindows(WithParams):
    """Has how the stream is divided; a model is emitted after each window."""

    WINDOWS: Param[Windows] = Param("windows", Windows, GlobalWindows())

    def set_windows(self, value: Windows) -> Self:
        """Set how the stream is divided; a model is emitted after each window."""
        return self.set(self.WINDOWS, value)

    def get_windows(self) -> Windows:
        """Return how the stream is divided; a model is emitted after each window."""
        return self.get(self.WINDOWS)

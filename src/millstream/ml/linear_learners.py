"""Linear models: training by mini-batch gradient descent, and online by FTRL-proximal; predictions.

Promises: as in Flink ML, there is no intercept, and the coefficients start at zero.
Does not know: operators, rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from millstream.errors import UserError
from millstream.ml.learners import NoTrainingData, OnlineLearner, RoundsLearner, TrainingDiverged
from millstream.ml.linalg import DENSE_VECTOR
from millstream.ml.prediction import ModelFunction
from millstream.ml.samples import Samples
from millstream.ml.vector_rows import Array, UnusableVectors, VectorRows, check_sizes, read_vectors, write_dense
from millstream.sql.types import data_types as t

COEFFICIENT = t.row_of(["coefficient"], [DENSE_VECTOR], null=False)
VERSIONED_COEFFICIENT = t.row_of(["coefficient", "model_version"], [DENSE_VECTOR, t.BIGINT], null=False)


class UnusableLabel(UserError):
    """A label of a classification is not 0 or 1."""

    def __init__(self, label: float) -> None:
        super().__init__(f"a label is {label:g}", hint="use 0.0 and 1.0 as the labels of the two classes")


class Loss(ABC):
    """A loss function of the products of features and coefficients."""

    @abstractmethod
    def check(self, labels: Array) -> None:
        """Raise for labels that cannot be used."""

    @abstractmethod
    def losses(self, products: Array, labels: Array) -> Array:
        """Return the loss of each sample."""

    @abstractmethod
    def slopes(self, products: Array, labels: Array) -> Array:
        """Return the derivative of each loss by the product."""


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """The negative log-likelihood of labels 0 and 1."""

    def check(self, labels: Array) -> None:
        """Raise for labels other than 0 and 1."""
        wrong = (labels != 0) & (labels != 1)
        if wrong.any():
            raise UnusableLabel(float(labels[wrong][0]))

    def losses(self, products: Array, labels: Array) -> Array:
        """Return the loss of each sample."""
        return np.logaddexp(0.0, np.where(labels == 1, -products, products))

    def slopes(self, products: Array, labels: Array) -> Array:
        """Return the probability of class 1, minus the label."""
        return sigmoid(products) - labels  # type: ignore[no-any-return]


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """Half of the squared difference."""

    def check(self, labels: Array) -> None:
        """Accept all labels."""

    def losses(self, products: Array, labels: Array) -> Array:
        """Return the loss of each sample."""
        return (products - labels) ** 2 / 2  # type: ignore[no-any-return]

    def slopes(self, products: Array, labels: Array) -> Array:
        """Return the difference."""
        return products - labels  # type: ignore[no-any-return]


def sigmoid(products: Array) -> Array:
    """Return the logistic function, without overflow."""
    return np.exp(-np.logaddexp(0.0, -products))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class GradientDescent(RoundsLearner):
    """Mini-batch gradient descent. A model is the round, the number of samples, and the coefficients.

    As in Flink ML, regularization shrinks the coefficients after the step of the gradient.

    A round uses the samples whose positions are in an interval of the length `batch_size / samples`; the interval of
    the next round follows it."""

    loss: Loss
    max_iter: int
    batch_size: int
    learning_rate: float
    reg: float
    elastic_net: float
    tol: float
    model_schema: ClassVar[t.RowType] = COEFFICIENT

    @property
    def rounds(self) -> int:
        """The number of updates."""
        return self.max_iter

    def summarize(self, samples: Samples, positions: Array) -> Array:
        """Return the number of samples and of dimensions."""
        self.loss.check(samples.labels)
        return np.array([len(samples), samples.rows.width], dtype=np.float64)

    def start(self, partials: Sequence[Array]) -> Array:
        """Return coefficients of zero."""
        if not partials:
            raise NoTrainingData
        counts, widths = np.stack(partials).T
        check_sizes(widths)
        return np.concatenate(([0.0, counts.sum()], np.zeros(int(widths[0]))))

    def train(self, samples: Samples, positions: Array, model: Array) -> Array:
        """Return the sums of weights, losses and gradients of the mini-batch of the round."""
        batch = self._mini_batch(samples, positions, int(model[0]), model[1])
        products = batch.rows.dot(model[2:])
        loss = float(batch.weights @ self.loss.losses(products, batch.labels))
        gradient = batch.rows.weighted_sum(batch.weights * self.loss.slopes(products, batch.labels))
        return np.concatenate(([batch.weights.sum(), loss], gradient))

    def _mini_batch(self, samples: Samples, positions: Array, number: int, count: float) -> Samples:
        if self.batch_size >= count:
            return samples
        length = self.batch_size / count
        low, high = number * length % 1.0, (number + 1) * length % 1.0
        start, stop = np.searchsorted(positions, [low, high])
        if low < high:
            return samples.take(slice(start, stop))
        return samples.take(np.concatenate((np.arange(stop), np.arange(start, len(samples)))))

    def update(self, model: Array, partials: Sequence[Array]) -> tuple[Array, bool]:
        """Return the model after one step; training ends when the mean loss is small enough."""
        model = model.copy()
        model[0] += 1
        total = np.sum(partials, axis=0) if partials else np.zeros(len(model))
        weight, loss, gradient = total[0], total[1], total[2:]
        if weight <= 0:  # a mini-batch without samples
            return model, False
        coefficient = model[2:] - self.learning_rate / weight * gradient
        lasso, ridge = self.reg * self.elastic_net, self.reg * (1 - self.elastic_net)
        coefficient -= self.learning_rate * (lasso * np.sign(coefficient) + ridge * coefficient)
        if not np.isfinite(coefficient).all():
            raise TrainingDiverged
        model[2:] = coefficient
        return model, bool(loss / weight <= self.tol)

    def result(self, models: Array) -> Sequence[pa.Array]:
        """Return the coefficients."""
        return (write_dense(models[:, 2:]),)


@dataclass(frozen=True)
class FollowTheRegularizedLeader(OnlineLearner):
    """FTRL-proximal with a learning rate for each coordinate. A model is three vectors of equal length: the
    coefficients, the sums `z`, and the sums `n` of squared gradients."""

    loss: Loss
    global_batch_size: int
    alpha: float
    beta: float
    reg: float
    elastic_net: float
    has_initial: bool = False
    model_schema: ClassVar[t.RowType] = VERSIONED_COEFFICIENT

    @property
    def needs_model(self) -> bool:
        """Whether samples wait for initial model data."""
        return self.has_initial

    @property
    def batch_size(self) -> int | None:
        """The number of samples of a mini-batch."""
        return self.global_batch_size

    def start(self, model_data: pa.StructArray | None, width: int) -> Array:
        """Return the initial coefficients, or zeros."""
        model = np.zeros(3 * width)
        if model_data is not None:
            initial = read_vectors(model_data.field(0), "coefficient").to_dense()[0]
            check_sizes(np.array([width, len(initial)]))
            model[:width] = initial
        return model

    def update(self, model: Array, samples: Samples) -> Array:
        """Return the model after one mini-batch."""
        self.loss.check(samples.labels)
        coefficient, z, n = model.reshape(3, -1)
        slopes = self.loss.slopes(samples.rows.dot(coefficient), samples.labels)
        covered = samples.rows.coverage(samples.weights)
        gradient = samples.rows.weighted_sum(samples.weights * slopes)
        gradient = np.divide(gradient, covered, out=np.zeros_like(gradient), where=covered > 0)
        squares = n + gradient**2
        z = z + gradient - (np.sqrt(squares) - np.sqrt(n)) / self.alpha * coefficient
        lasso, ridge = self.reg * self.elastic_net, self.reg * (1 - self.elastic_net)
        scale = (self.beta + np.sqrt(squares)) / self.alpha + ridge
        coefficient = np.where(np.abs(z) <= lasso, 0.0, (np.sign(z) * lasso - z) / scale)
        if not np.isfinite(coefficient).all():
            raise TrainingDiverged
        return np.concatenate((coefficient, z, squares))

    def result(self, models: Array) -> Sequence[pa.Array]:
        """Return the coefficients."""
        return (write_dense(models[:, : models.shape[1] // 3]),)


@dataclass(frozen=True)
class LinearPrediction(ModelFunction):
    """Predicts with the coefficients of a linear model. With `raw_prediction`, the model is a classification."""

    features: tuple[int, str]
    prediction: str
    raw_prediction: str | None = None
    model_schema: ClassVar[t.RowType] = COEFFICIENT

    def output(self) -> tuple[tuple[str, t.DataType], ...]:
        """Return the prediction, and for a classification the probabilities of both classes."""
        columns: list[tuple[str, t.DataType]] = [(self.prediction, t.DOUBLE)]
        if self.raw_prediction is not None:
            columns.append((self.raw_prediction, DENSE_VECTOR))
        return tuple(columns)

    def load(self, model_data: pa.StructArray) -> Any:
        """Return the coefficients."""
        return read_vectors(model_data.field(0), "coefficient").to_dense()[0]

    def apply(self, rows: pa.StructArray, model: Any) -> tuple[Sequence[pa.Array], Array | None]:
        """Predict."""
        index, name = self.features
        products = _read_features(rows.field(index), name, len(model)).dot(model)
        if self.raw_prediction is None:
            return (pa.array(products),), None
        raw = np.stack((sigmoid(-products), sigmoid(products)), axis=1)
        return (pa.array((products >= 0).astype(np.float64)), write_dense(raw)), None


@dataclass(frozen=True)
class OnlineLinearPrediction(LinearPrediction):
    """Predicts with the newest version of a linear model."""

    model_schema: ClassVar[t.RowType] = VERSIONED_COEFFICIENT


def _read_features(array: pa.Array, column: str, width: int) -> VectorRows:
    rows = read_vectors(array, column)
    if len(rows) and rows.width != width:
        problem = f"have size {rows.width}, but the model has {width} coefficients"
        raise UnusableVectors(column, problem, "use the columns that the model was trained with")
    return rows

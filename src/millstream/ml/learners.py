"""What a training algorithm is: functions on arrays, without state of their own.

Promises: a batch learner gets the samples of a subtask and the model, and returns one vector of numbers, a partial
result; partial results of all subtasks give the next model. An online learner gets mini-batches in order.
Does not know: operators, rounds, where samples come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from millstream.errors import UserError
from millstream.ml.samples import Samples
from millstream.ml.vector_rows import Array
from millstream.sql.types import data_types as t


class NoTrainingData(UserError):
    """A stage was fitted to an empty table."""

    def __init__(self) -> None:
        super().__init__("there are no records to train with", hint="check the filters before fit()")


class TrainingDiverged(UserError):
    """The coefficients are not finite any more."""

    def __init__(self) -> None:
        super().__init__(
            "training diverged: the coefficients are not finite",
            hint="scale the features (StandardScaler), or lower the learning rate",
        )


class Learner(ABC):
    """The base of learners, which are frozen dataclasses."""

    model_schema: ClassVar[t.RowType]

    @abstractmethod
    def result(self, models: Array) -> Sequence[pa.Array]:
        """Return the columns of the model data, with one row for each row of a matrix of models; an online learner
        leaves out the last column, the version."""


class BatchLearner(Learner):
    """Trains with all samples."""

    @property
    def rounds(self) -> int:
        """The greatest number of rounds after the first pass over the samples."""
        return 0

    @property
    def seed(self) -> int:
        """The seed by which samples are ordered."""
        return 0

    @abstractmethod
    def summarize(self, samples: Samples, positions: Array) -> Array:
        """Return what the first model needs to know about some samples.

        Args:
            samples: The samples, in ascending order of their positions.
            positions: A number in [0, 1) for each sample, a hash of its features and the seed.

        """

    @abstractmethod
    def start(self, partials: Sequence[Array]) -> Array:
        """Return the first model; raises `NoTrainingData`."""


class SummaryLearner(BatchLearner):
    """Trains in one pass, and only merges summaries: samples are not kept."""

    @abstractmethod
    def merge(self, partials: Sequence[Array]) -> Array:
        """Return one summary for several."""

    def start(self, partials: Sequence[Array]) -> Array:
        """Return the summary of all samples; raises `NoTrainingData`."""
        if not partials:
            raise NoTrainingData
        return self.merge(partials)


class RoundsLearner(BatchLearner):
    """Trains in rounds over the samples."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """The greatest number of rounds after the first pass over the samples."""

    @abstractmethod
    def train(self, samples: Samples, positions: Array, model: Array) -> Array:
        """Return the partial result of a round."""

    @abstractmethod
    def update(self, model: Array, partials: Sequence[Array]) -> tuple[Array, bool]:
        """Return the next model, and whether training ends."""


class OnlineLearner(Learner):
    """Trains with mini-batches of a stream."""

    @property
    def needs_model(self) -> bool:
        """Whether samples wait for initial model data."""
        return False

    @property
    @abstractmethod
    def batch_size(self) -> int | None:
        """The number of samples of a mini-batch, None for one mini-batch of the whole input."""

    @abstractmethod
    def start(self, model_data: pa.StructArray | None, width: int) -> Array:
        """Return the first model: that of the initial model data, or one for vectors of a width."""

    @abstractmethod
    def update(self, model: Array, samples: Samples) -> Array:
        """Return the model after one mini-batch; without a size of mini-batches, after some of the samples."""

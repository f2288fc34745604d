"""What the stages of linear models share.

Promises: each estimator describes its training by its parameters only.
Does not know: which loss a stage has."""

from __future__ import annotations

from typing import Any, Self

from millstream.datastream.data_stream import DataStream
from millstream.ml.api import TableInput
from millstream.ml.common.param import (
    HasAlpha,
    HasBatchStrategy,
    HasBeta,
    HasElasticNet,
    HasFeaturesCol,
    HasGlobalBatchSize,
    HasLabelCol,
    HasLearningRate,
    HasMaxIter,
    HasReg,
    HasTol,
    HasWeightCol,
)
from millstream.ml.linear_learners import COEFFICIENT, FollowTheRegularizedLeader, GradientDescent, Loss
from millstream.ml.online import train_online
from millstream.ml.samples import SampleColumns
from millstream.ml.training import train
from millstream.table.table import Table


class _LinearParams(HasFeaturesCol, HasLabelCol, HasWeightCol, HasReg, HasElasticNet, HasGlobalBatchSize):
    def _columns(self, table: TableInput) -> SampleColumns:
        return SampleColumns(
            (table.vector(self.get_features_col()),),
            table.number(self.get_label_col()),
            table.optional_number(self.get_weight_col()),
        )


class GradientDescentParams(_LinearParams, HasMaxIter, HasLearningRate, HasTol):
    """The parameters of training by gradient descent."""

    def _train(self, table: TableInput, loss: Loss) -> Table:
        learner = GradientDescent(
            loss,
            self.get_max_iter(),
            self.get_global_batch_size(),
            self.get_learning_rate(),
            self.get_reg(),
            self.get_elastic_net(),
            self.get_tol(),
        )
        models = train(table.stream, learner, self._columns(table), type(self).__name__)
        return table.t_env.from_data_stream(models)


class FtrlParams(_LinearParams, HasBatchStrategy, HasAlpha, HasBeta):
    """The parameters of training by FTRL."""

    _initial: Table | None = None

    def set_initial_model_data(self, table: Table) -> Self:
        """Set the coefficients to begin with; by default they are zero.

        Args:
            table: The model data of a model of the same type.

        """
        self._initial = TableInput((table,)).check_model_data(COEFFICIENT)
        return self

    def _train(self, table: TableInput, loss: Loss) -> Table:
        learner = FollowTheRegularizedLeader(
            loss,
            self.get_global_batch_size(),
            self.get_alpha(),
            self.get_beta(),
            self.get_reg(),
            self.get_elastic_net(),
            has_initial=self._initial is not None,
        )
        initial: DataStream[Any] | None = None
        if self._initial is not None:
            initial = table.t_env.to_data_stream(self._initial)
        models = train_online(table.stream, learner, self._columns(table), type(self).__name__, initial)
        return table.t_env.from_data_stream(models)

"""Logistic regression of two classes, on bounded tables and online.

Promises: names and defaults of Flink ML.
Does not know: the algorithms; see `linear_learners.py`."""

from __future__ import annotations

from typing import ClassVar

from millstream.errors import InvalidArgument
from millstream.ml.api import Estimator, TableInput, TableModel
from millstream.ml.common.param import (
    HasFeaturesCol,
    HasModelVersionCol,
    HasMultiClass,
    HasPredictionCol,
    HasRawPredictionCol,
)
from millstream.ml.linear_learners import (
    COEFFICIENT,
    VERSIONED_COEFFICIENT,
    LinearPrediction,
    LogisticLoss,
    OnlineLinearPrediction,
)
from millstream.ml.linear_params import FtrlParams, GradientDescentParams
from millstream.ml.param import NOT_EMPTY, Param
from millstream.ml.prediction import ModelFunction
from millstream.sql.types import data_types as t
from millstream.table.table import Table


class _PredictionParams(HasFeaturesCol, HasPredictionCol, HasRawPredictionCol):
    """The columns of a prediction."""


class _OnlineModelParams(_PredictionParams, HasModelVersionCol):
    MODEL_VERSION_COL: Param[str] = Param("model_version_col", str, "model_version", NOT_EMPTY)


class LogisticRegressionModel(_PredictionParams, TableModel):
    """Adds the class of each row, 0.0 or 1.0, and the probabilities of both. Its model data is `coefficient`.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> data = t_env.from_elements([([1.0, -1.0],)], ["coefficient"])
        >>> model = LogisticRegressionModel().set_model_data(data)
        >>> model.transform(t_env.from_elements([([3.0, 2.0],)], ["features"]))[0].to_arrow()["prediction"].to_pylist()
        [1.0]

    """

    model_schema: ClassVar[t.RowType] = COEFFICIENT

    def _function(self, table: TableInput) -> ModelFunction:
        features = table.vector(self.get_features_col())
        return LinearPrediction(features, self.get_prediction_col(), self.get_raw_prediction_col())


class LogisticRegression(GradientDescentParams, _PredictionParams, HasMultiClass, Estimator):
    """Logistic regression by mini-batch gradient descent, without an intercept.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> rows = [([1.0, -1.0], 1.0), ([-1.0, 1.0], 0.0)]
        >>> samples = t_env.from_elements(rows, ["features", "label"])
        >>> model = LogisticRegression().set_max_iter(50).set_global_batch_size(1000).fit(samples)

    """

    def fit(self, *inputs: Table) -> LogisticRegressionModel:
        """Train with a bounded table, whose labels are 0 and 1.

        Args:
            *inputs: One table.

        """
        if self.get_multi_class() == "multinomial":
            msg = "multi_class is 'multinomial'"
            raise InvalidArgument(msg, hint="only two classes are possible: use 'auto' or 'binomial'")
        models = self._train(TableInput(inputs), LogisticLoss())
        return LogisticRegressionModel()._copy_params(self).set_model_data(models)


class OnlineLogisticRegressionModel(_OnlineModelParams, TableModel):
    """Adds the class by the newest model to each row, the probabilities, and the version of the model.

    Example:
        >>> OnlineLogisticRegressionModel().get_model_version_col()
        'model_version'

    """

    model_schema: ClassVar[t.RowType] = VERSIONED_COEFFICIENT

    def _function(self, table: TableInput) -> ModelFunction:
        features = table.vector(self.get_features_col())
        return OnlineLinearPrediction(features, self.get_prediction_col(), self.get_raw_prediction_col())


class OnlineLogisticRegression(FtrlParams, _OnlineModelParams, Estimator):
    """Logistic regression on a stream by FTRL-proximal: every mini-batch gives a new version of the model.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> samples = t_env.from_elements([([1.0, 2.0], 1.0), ([2.0, 1.0], 0.0)], ["features", "label"])
        >>> model = OnlineLogisticRegression().set_global_batch_size(2).fit(samples)

    """

    def fit(self, *inputs: Table) -> OnlineLogisticRegressionModel:
        """Train with the rows of a table, as they arrive.

        Args:
            *inputs: One table, whose labels are 0 and 1.

        """
        models = self._train(TableInput(inputs), LogisticLoss())
        return OnlineLogisticRegressionModel()._copy_params(self).set_model_data(models)

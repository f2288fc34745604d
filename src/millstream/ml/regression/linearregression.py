"""Linear regression, on bounded tables and online.

Promises: names and defaults of Flink ML, which has no online linear regression; that one has the names of
`OnlineLogisticRegression`.
Does not know: the algorithms; see `linear_learners.py`."""

from __future__ import annotations

from typing import ClassVar

from millstream.ml.api import Estimator, TableInput, TableModel
from millstream.ml.common.param import HasFeaturesCol, HasModelVersionCol, HasPredictionCol
from millstream.ml.linear_learners import (
    COEFFICIENT,
    VERSIONED_COEFFICIENT,
    LinearPrediction,
    OnlineLinearPrediction,
    SquaredLoss,
)
from millstream.ml.linear_params import FtrlParams, GradientDescentParams
from millstream.ml.param import NOT_EMPTY, Param
from millstream.ml.prediction import ModelFunction
from millstream.sql.types import data_types as t
from millstream.table.table import Table


class _OnlineModelParams(HasFeaturesCol, HasPredictionCol, HasModelVersionCol):
    MODEL_VERSION_COL: Param[str] = Param("model_version_col", str, "model_version", NOT_EMPTY)


class LinearRegressionModel(HasFeaturesCol, HasPredictionCol, TableModel):
    """Adds the prediction to each row. Its model data is `coefficient`.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> data = t_env.from_elements([([1.0, -1.0],)], ["coefficient"])
        >>> model = LinearRegressionModel().set_model_data(data)
        >>> model.transform(t_env.from_elements([([3.0, 2.0],)], ["features"]))[0].to_arrow()["prediction"].to_pylist()
        [1.0]

    """

    model_schema: ClassVar[t.RowType] = COEFFICIENT

    def _function(self, table: TableInput) -> ModelFunction:
        return LinearPrediction(table.vector(self.get_features_col()), self.get_prediction_col())


class LinearRegression(GradientDescentParams, HasPredictionCol, Estimator):
    """Linear regression by mini-batch gradient descent, without an intercept.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> samples = t_env.from_elements([([1.0, 2.0], 1.0), ([2.0, 1.0], 0.0)], ["features", "label"])
        >>> model = LinearRegression().set_max_iter(50).set_reg(0.01).fit(samples)

    """

    def fit(self, *inputs: Table) -> LinearRegressionModel:
        """Train with a bounded table.

        Args:
            *inputs: One table.

        """
        models = self._train(TableInput(inputs), SquaredLoss())
        return LinearRegressionModel()._copy_params(self).set_model_data(models)


class OnlineLinearRegressionModel(_OnlineModelParams, TableModel):
    """Adds the prediction of the newest model to each row, and the version of the model.

    Example:
        >>> OnlineLinearRegressionModel().get_model_version_col()
        'model_version'

    """

    model_schema: ClassVar[t.RowType] = VERSIONED_COEFFICIENT

    def _function(self, table: TableInput) -> ModelFunction:
        return OnlineLinearPrediction(table.vector(self.get_features_col()), self.get_prediction_col())


class OnlineLinearRegression(FtrlParams, _OnlineModelParams, Estimator):
    """Linear regression on a stream by FTRL-proximal: every mini-batch gives a new version of the model.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> samples = t_env.from_elements([([1.0, 2.0], 1.0), ([2.0, 1.0], 0.0)], ["features", "label"])
        >>> model = OnlineLinearRegression().set_global_batch_size(2).fit(samples)

    """

    def fit(self, *inputs: Table) -> OnlineLinearRegressionModel:
        """Train with the rows of a table, as they arrive.

        Args:
            *inputs: One table.

        """
        models = self._train(TableInput(inputs), SquaredLoss())
        return OnlineLinearRegressionModel()._copy_params(self).set_model_data(models)

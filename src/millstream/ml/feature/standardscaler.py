"""Standard scalers, on bounded tables and online.

Promises: names and defaults of Flink ML; the standard deviation is that of a sample.
Does not know: how moments are computed; see `feature_learners.py`."""

from __future__ import annotations

from typing import ClassVar, Self

from millstream.errors import InvalidArgument
from millstream.ml.api import Estimator, TableInput, TableModel
from millstream.ml.common.param import HasInputCol, HasModelVersionCol, HasOutputCol, HasWindows
from millstream.ml.common.window import CountTumblingWindows, GlobalWindows
from millstream.ml.feature_learners import (
    MOMENTS,
    VERSIONED_MOMENTS,
    Moments,
    OnlineScaling,
    RunningMoments,
    Scaling,
)
from millstream.ml.online import train_online
from millstream.ml.param import Param
from millstream.ml.prediction import ModelFunction
from millstream.ml.samples import SampleColumns
from millstream.ml.training import train
from millstream.sql.types import data_types as t
from millstream.table.table import Table


class _ScalerParams(HasInputCol, HasOutputCol):
    WITH_MEAN: Param[bool] = Param("with_mean", bool, False)
    WITH_STD: Param[bool] = Param("with_std", bool, True)

    def set_with_mean(self, value: bool) -> Self:
        """Set whether the mean is subtracted."""
        return self.set(self.WITH_MEAN, value)

    def get_with_mean(self) -> bool:
        """Return whether the mean is subtracted."""
        return self.get(self.WITH_MEAN)

    def set_with_std(self, value: bool) -> Self:
        """Set whether vectors are divided by the standard deviation."""
        return self.set(self.WITH_STD, value)

    def get_with_std(self) -> bool:
        """Return whether vectors are divided by the standard deviation."""
        return self.get(self.WITH_STD)

    def _scaling(self, table: TableInput, function: type[Scaling]) -> Scaling:
        column = table.vector(self.get_input_col())
        is_sparse = table.is_sparse(self.get_input_col())
        return function(column, self.get_output_col(), self.get_with_mean(), self.get_with_std(), is_sparse)


class StandardScalerModel(_ScalerParams, TableModel):
    """Adds the scaled vector to each row. Its model data are `mean` and `std`.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> moments = t_env.from_elements([([5.0], [2.0])], ["mean", "std"])
        >>> model = StandardScalerModel().set_with_mean(True).set_model_data(moments)
        >>> model.transform(t_env.from_elements([([7.0],)], ["input"]))[0].to_arrow()["output"].to_pylist()
        [[1.0]]

    """

    model_schema: ClassVar[t.RowType] = MOMENTS

    def _function(self, table: TableInput) -> ModelFunction:
        return self._scaling(table, Scaling)


class StandardScaler(_ScalerParams, Estimator):
    """Scales each dimension to a standard deviation of 1, and if `with_mean` is set, to a mean of 0.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> table = t_env.from_elements([([1.0],), ([3.0],)], ["input"])
        >>> model = StandardScaler().set_with_mean(True).fit(table)

    """

    def fit(self, *inputs: Table) -> StandardScalerModel:
        """Compute mean and standard deviation of a bounded table.

        Args:
            *inputs: One table.

        """
        table = TableInput(inputs)
        columns = SampleColumns((table.vector(self.get_input_col()),))
        models = train(table.stream, Moments(), columns, "StandardScaler")
        return StandardScalerModel()._copy_params(self).set_model_data(table.t_env.from_data_stream(models))


class OnlineStandardScalerModel(_ScalerParams, HasModelVersionCol, TableModel):
    """Adds the vector, scaled by the newest model, and the version of the model to each row.

    Example:
        >>> model = OnlineStandardScalerModel().set_model_version_col("model")

    """

    model_schema: ClassVar[t.RowType] = VERSIONED_MOMENTS

    def _function(self, table: TableInput) -> ModelFunction:
        return self._scaling(table, OnlineScaling)


class OnlineStandardScaler(_ScalerParams, HasModelVersionCol, HasWindows, Estimator):
    """A running standard scaler: after each window, the moments of all records until then are a new model.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> table = t_env.from_elements([([1.0],), ([3.0],)], ["input"])
        >>> model = OnlineStandardScaler().set_windows(CountTumblingWindows.of(2)).fit(table)

    """

    def fit(self, *inputs: Table) -> OnlineStandardScalerModel:
        """Train with the rows of a table, as they arrive.

        Args:
            *inputs: One table.

        """
        windows = self.get_windows()
        if not isinstance(windows, GlobalWindows | CountTumblingWindows):
            msg = f"OnlineStandardScaler has the windows {windows!r}"
            raise InvalidArgument(msg, hint="use GlobalWindows() or CountTumblingWindows.of(size)")
        table = TableInput(inputs)
        size = windows.size if isinstance(windows, CountTumblingWindows) else None
        columns = SampleColumns((table.vector(self.get_input_col()),))
        models = train_online(table.stream, RunningMoments(size), columns, "OnlineStandardScaler")
        return OnlineStandardScalerModel()._copy_params(self).set_model_data(table.t_env.from_data_stream(models))

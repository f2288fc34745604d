"""One-hot encoding of categories.

Promises: names and defaults of Flink ML.
Does not know: how categories are collected; see `feature_learners.py`."""

from __future__ import annotations

from typing import ClassVar, Self

from millstream.errors import InvalidArgument
from millstream.ml.api import Estimator, TableInput, TableModel
from millstream.ml.common.param import HasHandleInvalid, HasInputCols, HasOutputCols
from millstream.ml.feature_learners import CATEGORIES, Categories, OneHot
from millstream.ml.param import Param
from millstream.ml.prediction import ModelFunction
from millstream.ml.samples import SampleColumns
from millstream.ml.training import train
from millstream.sql.types import data_types as t
from millstream.table.table import Table


class _OneHotEncoderParams(HasInputCols, HasOutputCols, HasHandleInvalid):
    DROP_LAST: Param[bool] = Param("drop_last", bool, True)

    def set_drop_last(self, value: bool) -> Self:
        """Set whether the last category is encoded as a vector without a 1."""
        return self.set(self.DROP_LAST, value)

    def get_drop_last(self) -> bool:
        """Return whether the last category is encoded as a vector without a 1."""
        return self.get(self.DROP_LAST)

    def _check_columns(self) -> None:
        inputs, outputs = self.get_input_cols(), self.get_output_cols()
        if len(inputs) != len(outputs):
            msg = f"there are {len(inputs)} input columns and {len(outputs)} output columns"
            raise InvalidArgument(msg, hint="set_input_cols() and set_output_cols() need the same number of names")


class OneHotEncoderModel(_OneHotEncoderParams, TableModel):
    """Adds a sparse vector for each category. Its model data is `max_indices`, the greatest category of each column.

    Example:
        >>> model = OneHotEncoderModel().set_input_cols("color").set_output_cols("color_vector")

    """

    model_schema: ClassVar[t.RowType] = CATEGORIES

    def _function(self, table: TableInput) -> ModelFunction:
        self._check_columns()
        columns = table.numbers(self.get_input_cols())
        return OneHot(columns, self.get_output_cols(), self.get_drop_last(), self.get_handle_invalid() == "skip")


class OneHotEncoder(_OneHotEncoderParams, Estimator):
    """Encodes columns of categories, which are the numbers from 0, as sparse vectors.

    A category that was not in the training data is an error, or with `set_handle_invalid("skip")` drops the row.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
        >>> table = t_env.from_elements([(0,), (2,)], ["color"])
        >>> model = OneHotEncoder().set_input_cols("color").set_output_cols("color_vector").fit(table)

    """

    def fit(self, *inputs: Table) -> OneHotEncoderModel:
        """Find the greatest category of each column of a bounded table.

        Args:
            *inputs: One table.

        """
        self._check_columns()
        table = TableInput(inputs)
        names = self.get_input_cols()
        columns = SampleColumns(table.numbers(names), has_vectors=False)
        models = train(table.stream, Categories(names), columns, "OneHotEncoder")
        return OneHotEncoderModel()._copy_params(self).set_model_data(table.t_env.from_data_stream(models))

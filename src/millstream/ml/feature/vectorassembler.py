"""Joins columns to a vector.

Promises: names and defaults of Flink ML.
Does not know: how vectors are joined; see `feature_functions.py`."""

from __future__ import annotations

from millstream.errors import InvalidArgument
from millstream.ml.api import TableInput, Transformer
from millstream.ml.common.param import HasHandleInvalid, HasInputCols, HasOutputCol
from millstream.ml.feature_functions import Assembling
from millstream.ml.samples import Column
from millstream.table.table import Table


class VectorAssembler(HasInputCols, HasOutputCol, HasHandleInvalid, Transformer):
    """Joins columns of numbers and vectors to one vector. It is sparse if one of the columns is.

    NULL and NaN are an error, or with `set_handle_invalid("skip")` drop the row.

    Example:
        >>> assembler = VectorAssembler().set_input_cols("age", "height").set_output_col("features")

    """

    def transform(self, *inputs: Table) -> list[Table]:
        """Add the vector to each row.

        Args:
            *inputs: One table.

        """
        table = TableInput(inputs)
        names = self.get_input_cols()
        if not names:
            msg = "VectorAssembler has no input columns"
            raise InvalidArgument(msg, hint="call set_input_cols()")
        columns: list[Column] = [table.vector(name) if table.is_vector(name) else table.number(name) for name in names]
        skips, is_sparse = self.get_handle_invalid() == "skip", any(map(table.is_sparse, names))
        return table.transform(Assembling(tuple(columns), self.get_output_col(), skips, is_sparse), "VectorAssembler")

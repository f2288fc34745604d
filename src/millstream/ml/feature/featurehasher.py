"""Feature hashing.

Promises: names, defaults and hashes of Flink ML.
Does not know: how texts are hashed; see `feature_functions.py`."""

from __future__ import annotations

from millstream.errors import InvalidArgument
from millstream.ml.api import TableInput, Transformer
from millstream.ml.common.param import HasCategoricalCols, HasInputCols, HasNumFeatures, HasOutputCol
from millstream.ml.feature_functions import FeatureHashing
from millstream.sql.types import data_types as t
from millstream.table.table import Table


class FeatureHasher(HasInputCols, HasCategoricalCols, HasOutputCol, HasNumFeatures, Transformer):
    """Projects columns of any types to a sparse vector of a fixed size.

    A number is added at the hash of the name of its column. A text, a boolean or a number of one of the categorical
    columns adds 1 at the hash of `column=value`. NULL adds nothing.

    Example:
        >>> hasher = FeatureHasher().set_input_cols("city", "age").set_output_col("features")

    """

    def transform(self, *inputs: Table) -> list[Table]:
        """Add the vector to each row.

        Args:
            *inputs: One table.

        """
        table = TableInput(inputs)
        names, categorical = self.get_input_cols(), set(self.get_categorical_cols())
        if not names or not categorical <= set(names):
            msg = f"the input columns are {', '.join(names) or 'not set'}"
            raise InvalidArgument(msg, hint="set_input_cols() needs all columns, the categorical ones too")
        numbers, categories = [], []
        for name in names:
            column, data_type = table.column(name)
            if name in categorical or isinstance(data_type, t.BooleanType | t.CharType | t.VarCharType):
                categories.append(column)
            else:
                numbers.append(table.number(name))
        function = FeatureHashing(tuple(numbers), tuple(categories), self.get_output_col(), self.get_num_features())
        return table.transform(function, "FeatureHasher")

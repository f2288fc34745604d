"""Model: a model of the session that predicts columns for a table.

Promises: the methods of Flink's `Model` of the Java API, with Python's names. `predict` is ML_PREDICT.
Does not know: providers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.sql.catalog.catalog import ColumnDefinition
from millstream.sql.catalog.models import ModelDefinition
from millstream.sql.logical.bind.model_calls import find_columns, predict
from millstream.sql.types import data_types as t
from millstream.table.catalog import ResolvedSchema
from millstream.table.catalog.models import to_columns
from millstream.table.model_descriptor import ModelDescriptor
from millstream.table.table import Table


class Model:
    """A model that was created with CREATE MODEL, or from a descriptor; `TableEnvironment.from_model` returns it.

    Example:
        >>> from millstream.table import DataTypes, EnvironmentSettings, ModelDescriptor, Schema, TableEnvironment
        >>> text = Schema.new_builder().column("text", DataTypes.STRING()).build()
        >>> label = Schema.new_builder().column("label", DataTypes.STRING()).build()
        >>> descriptor = ModelDescriptor.for_provider("python").input_schema(text).output_schema(label)
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> t_env.create_temporary_model("classify", descriptor.option("function", "models.classify").build())
        >>> t_env.from_model("classify").get_resolved_input_schema().get_column_names()
        ['text']

    """

    def __init__(self, path: tuple[str, ...], definition: ModelDefinition, t_env: Any) -> None:
        self._path, self._definition, self._t_env = path, definition, t_env

    def predict(
        self, table: Table, input_columns: Sequence[str] | str, options: Mapping[str, str] | None = None
    ) -> Table:
        """Return the rows of a table with the predictions of the model, like ML_PREDICT.

        Args:
            table: An append-only table.
            input_columns: The columns that the model takes, in the order of its input columns.
            options: Options of the call: `async`, `max-concurrent-operations`, `timeout` and `output-mode`.

        Returns:
            A table with the columns of the table and the output columns of the model.

        Raises:
            SqlError: If the columns do not fit the model.

        """
        names = (input_columns,) if isinstance(input_columns, str) else tuple(input_columns)
        features = find_columns(table._plan, names)
        plan = predict(
            self._t_env._session(), table._plan, self._path, features, dict(options or {}), model=self._definition
        )
        return Table(plan, self._t_env)

    def get_resolved_input_schema(self) -> ResolvedSchema:
        """Return the columns that the model takes."""
        return _resolve(self._definition.input)

    def get_resolved_output_schema(self) -> ResolvedSchema:
        """Return the columns that the model predicts."""
        return _resolve(self._definition.output)


def _resolve(columns: tuple[ColumnDefinition, ...]) -> ResolvedSchema:
    schema = t.row_of([column.name for column in columns], [column.type for column in columns], null=False)
    return ResolvedSchema._of(schema)


def define_model(descriptor: ModelDescriptor) -> ModelDefinition:
    """Return the definition of the model that a descriptor describes."""
    return ModelDefinition(
        to_columns(descriptor.get_input_schema()),
        to_columns(descriptor.get_output_schema()),
        descriptor.get_options(),
        descriptor.get_comment(),
    )

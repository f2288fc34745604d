"""Stages of pipelines, with Flink ML's interfaces: estimators are fitted to tables, and models transform tables.

Promises: `fit` and `transform` describe a job, as all calls of the Table API do; nothing runs until results are read.
Does not know: algorithms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

from millstream.datastream.data_stream import DataStream
from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.ml import persistence
from millstream.ml.common.param import HasModelVersionCol
from millstream.ml.param import WithParams
from millstream.ml.prediction import ColumnFunction, ModelFunction, transform
from millstream.ml.samples import Column
from millstream.sql.types import data_types as t
from millstream.table.table import Table
from millstream.table.table_environment import StreamTableEnvironment


class Stage(WithParams, ABC):
    """A part of a pipeline. It has parameters, and can be saved and loaded.

    Example:
        >>> from millstream.ml import KMeans
        >>> isinstance(KMeans(), Stage)
        True

    """

    def save(self, path: str) -> None:
        """Save the stage in a new directory: its parameters as JSON, and the model data of a model as Parquet.

        A model of which the data has not been computed yet runs a job.

        Args:
            path: The directory, a local path or a URI.

        Raises:
            InvalidArgument: The directory contains a stage already.

        """
        persistence.write_stage(path, type(self), self._values, {})

    @classmethod
    def load(cls, t_env: StreamTableEnvironment, path: str) -> Self:
        """Load a stage.

        Args:
            t_env: The environment of the tables that the stage will transform.
            path: The directory that `save` has created.

        Raises:
            InvalidArgument: The directory contains a stage of another class.

        """
        saved = persistence.read_stage(path)
        stage = cls()
        persistence.check_class(path, saved, cls)
        for name, value in saved["params"].items():
            param = stage.get_param(name)
            if param is not None:
                stage.set(param, persistence.decode_value(value))
        stage._load_data(t_env, path)
        return stage

    def _load_data(self, t_env: StreamTableEnvironment, path: str) -> None:
        """Load what a stage has besides parameters."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        persistence.register_class(cls)


class AlgoOperator(Stage):
    """A stage that computes tables from tables.

    Example:
        >>> from millstream.ml import FeatureHasher
        >>> isinstance(FeatureHasher(), AlgoOperator)
        True

    """

    @abstractmethod
    def transform(self, *inputs: Table) -> list[Table]:
        """Apply the stage.

        Args:
            *inputs: The tables.

        Returns:
            The results, as a list of tables.

        """


class Transformer(AlgoOperator):
    """A stage that adds columns to each row of a table.

    Example:
        >>> from millstream.ml import FeatureHasher
        >>> isinstance(FeatureHasher(), Transformer)
        True

    """


class Model(Transformer):
    """A transformer that an estimator has returned.

    Example:
        >>> from millstream.ml import KMeansModel
        >>> issubclass(KMeansModel, Model)
        True

    """


class TableModel(Model):
    """A model with model data, which is a table.

    Example:
        >>> from millstream.ml import KMeansModel
        >>> issubclass(KMeansModel, TableModel)
        True

    """

    model_schema: ClassVar[t.RowType]

    def __init__(self) -> None:
        super().__init__()
        self._model_data: Table | None = None

    def set_model_data(self, *inputs: Table) -> Self:
        """Set the model data.

        Args:
            *inputs: One table, with the columns of the table that `get_model_data` returns.

        """
        self._model_data = TableInput(inputs).check_model_data(self.model_schema)
        return self

    def get_model_data(self) -> list[Table]:
        """Return the model data, as a list of one table; that of an online model has a row for each version."""
        return [self._model_table()]

    def _model_table(self) -> Table:
        if self._model_data is None:
            msg = f"the {type(self).__name__} has no model data"
            raise InvalidArgument(msg, hint="create it with fit() or load(), or call set_model_data()")
        return self._model_data

    def transform(self, *inputs: Table) -> list[Table]:
        """Add the predictions of the model to each row.

        Args:
            *inputs: One table.

        Returns:
            A list of one table: the input with new columns.

        """
        table = TableInput(inputs)
        models = table.t_env.to_data_stream(self._model_table())
        version = self.get_model_version_col() if isinstance(self, HasModelVersionCol) else None
        return table.transform(self._function(table), type(self).__name__, models, version)

    @abstractmethod
    def _function(self, table: TableInput) -> ModelFunction:
        """Return what is applied to the rows of a table."""

    def save(self, path: str) -> None:
        """Save the model in a new directory; of an online model, its newest version."""
        persistence.check_new(path)
        data = self._model_table().to_arrow()
        if not data.num_rows:
            msg = f"the {type(self).__name__} has no version yet"
            raise InvalidArgument(msg, hint="train with at least one mini-batch: lower global_batch_size")
        if "model_version" in data.column_names:
            data = data.sort_by("model_version")
        persistence.write_stage(path, type(self), self._values, {"model_data": data.slice(data.num_rows - 1)})

    def _load_data(self, t_env: StreamTableEnvironment, path: str) -> None:
        self._model_data = t_env.from_arrow(persistence.read_data(path, "model_data"))


class Estimator(Stage):
    """A stage that is trained with tables.

    Example:
        >>> from millstream.ml import KMeans
        >>> issubclass(KMeans, Estimator)
        True

    """

    @abstractmethod
    def fit(self, *inputs: Table) -> Model:
        """Train a model.

        Args:
            *inputs: The training data.

        Returns:
            The model. It is computed by the job that reads it or what it transforms.

        """


class TableInput:
    """A table as a stream of rows, for a stage."""

    def __init__(self, inputs: tuple[Any, ...]) -> None:
        if len(inputs) != 1 or not isinstance(inputs[0], Table):
            msg = f"a stage got {inputs!r}"
            raise InvalidArgumentType(msg, hint="pass one Table")
        self.table = inputs[0]
        if not isinstance(self.table._t_env, StreamTableEnvironment):
            msg = "stages need tables of a StreamTableEnvironment"
            raise InvalidArgument(msg, hint="create the tables with StreamTableEnvironment.create(env)")
        self.t_env = self.table._t_env
        self.schema = self.table._plan.schema
        self._stream: DataStream[Any] | None = None

    @property
    def stream(self) -> DataStream[Any]:
        """The rows."""
        if self._stream is None:
            self._stream = self.t_env.to_data_stream(self.table)
        return self._stream

    def _type_of(self, name: str) -> tuple[int, t.DataType]:
        if name not in self.schema.names:
            msg = f"the table has no column '{name}'"
            raise InvalidArgument(msg, hint=f"it has {', '.join(self.schema.names)}")
        index = self.schema.names.index(name)
        return index, self.schema.types[index]

    def is_sparse(self, name: str) -> bool:
        """Return whether a column has sparse vectors."""
        return isinstance(self._type_of(name)[1], t.RowType)

    def is_vector(self, name: str) -> bool:
        """Return whether a column has vectors."""
        _, data_type = self._type_of(name)
        if isinstance(data_type, t.ArrayType):
            return isinstance(data_type.element, t.NumericType)
        return isinstance(data_type, t.RowType) and tuple(data_type.names) == ("size", "indices", "values")

    def vector(self, name: str) -> Column:
        """Return a column of vectors."""
        index, data_type = self._type_of(name)
        if not self.is_vector(name):
            msg = f"the column '{name}' has the type {data_type}, which is not a vector"
            raise InvalidArgument(msg, hint="use ARRAY<DOUBLE>, or join columns of numbers with a VectorAssembler")
        return index, name

    def number(self, name: str) -> Column:
        """Return a column of numbers."""
        index, data_type = self._type_of(name)
        if not isinstance(data_type, t.NumericType):
            msg = f"the column '{name}' has the type {data_type}, which is not a number"
            raise InvalidArgument(msg, hint="CAST it to DOUBLE")
        return index, name

    def optional_number(self, name: str | None) -> Column | None:
        """Return a column of numbers, None without a name."""
        return None if name is None else self.number(name)

    def numbers(self, names: Iterable[str]) -> tuple[Column, ...]:
        """Return columns of numbers; raises if there are none."""
        columns = tuple(map(self.number, names))
        if not columns:
            msg = "the stage has no input columns"
            raise InvalidArgument(msg, hint="call set_input_cols()")
        return columns

    def column(self, name: str) -> tuple[Column, t.DataType]:
        """Return a column of any type, and its type."""
        index, data_type = self._type_of(name)
        return (index, name), data_type

    def check_model_data(self, schema: t.RowType) -> Table:
        """Return the table, with the columns of model data in their order."""
        missing = [name for name in schema.names if name not in self.schema.names]
        if missing:
            msg = f"model data has no column '{missing[0]}'"
            raise InvalidArgument(msg, hint=f"it needs {', '.join(schema.names)}")
        return self.table.select(*(getattr(self.table, name) for name in schema.names))

    def transform(
        self,
        function: ColumnFunction,
        name: str,
        models: DataStream[Any] | None = None,
        version: str | None = None,
    ) -> list[Table]:
        """Return the table with the columns that a function computes."""
        for column in [*(column for column, _ in function.output()), *([version] if version is not None else [])]:
            if column in self.schema.names:
                msg = f"the table has a column '{column}' already"
                raise InvalidArgument(msg, hint="set another name for the output of the stage")
        result = transform(self.stream, self.schema, function, name, models, version)
        return [self.t_env.from_data_stream(result)]

"""Operators that add columns to the rows of a table: with a model that is broadcast to all subtasks, or without one.

Promises: rows that come before the first model wait in state for it; no row is lost. Later rows get the newest model
that the subtask has received.
Does not know: how models are trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from millstream.datastream.data_stream import DataStream
from millstream.graph.transformations import Input
from millstream.ml.calls import call
from millstream.ml.vector_rows import Array
from millstream.runtime import feedback
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.partitioners import Broadcast
from millstream.sql.columns import combine_columns, create_row_type_info
from millstream.sql.types import data_types as t
from millstream.state.deltas import Redistribution
from millstream.state.store import ABSENT
from millstream.types.arrow_streams import write_stream_bytes
from millstream.types.factory import Types

ROWS, MODELS = range(2)
"""The inputs."""

_MODEL_KEY = "model"


class ColumnFunction(ABC):
    """Computes new columns of a batch of rows. Subclasses are frozen dataclasses."""

    @abstractmethod
    def output(self) -> tuple[tuple[str, t.DataType], ...]:
        """Return the names and types of the new columns."""

    @abstractmethod
    def apply(self, rows: pa.StructArray, model: Any) -> tuple[Sequence[pa.Array], Array | None]:
        """Return the new columns, and a mask of the rows to keep; None if all are kept.

        Args:
            rows: The rows; the model data, as `load` returned it.
            model: The model, None for functions without one.

        """


class ModelFunction(ColumnFunction):
    """A function that needs model data."""

    model_schema: ClassVar[t.RowType]

    @abstractmethod
    def load(self, model_data: pa.StructArray) -> Any:
        """Return the model in the form that `apply` uses, from model data of one row."""


@dataclass(frozen=True)
class TransformSpec(OperatorSpec):
    """Adds columns to rows. With a `version` column, the version of the model is another new column."""

    function: ColumnFunction
    input_schema: t.RowType
    output_schema: t.RowType
    version: str | None = None

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        if isinstance(self.function, ModelFunction):
            return ModelOperator(context, self, self.function)
        return ColumnsOperator(context, self)


class ColumnsOperator(Operator):
    """Adds columns without a model."""

    def __init__(self, context: OperatorContext, spec: TransformSpec) -> None:
        super().__init__(context)
        self._spec = spec
        self._model: Any = None
        self._version = 0

    def on_batch(self, batch: Batch, side: int) -> None:
        """Emit the rows with new columns."""
        self._transform(batch)

    def _transform(self, batch: Batch) -> None:
        rows, timestamps = batch.array(), batch.timestamps
        columns, kept = call(self.context, self._spec.function.apply, rows, self._model)
        columns = list(columns)
        if self._spec.version is not None:
            columns.append(pa.array(np.full(len(rows), self._version)))
        width = len(self._spec.input_schema)
        before = [rows.field(index) for index in range(width)]
        array = combine_columns([*before, *columns], rows.field(width), self._spec.output_schema, len(rows))
        result = Batch(self.context.output_type, array=array, timestamps=timestamps)
        self.out.emit(result if kept is None else result.take(np.flatnonzero(kept)))


class ModelOperator(ColumnsOperator):
    """State: the newest model, and the rows that wait for the first one."""

    def __init__(self, context: OperatorContext, spec: TransformSpec, function: ModelFunction) -> None:
        super().__init__(context, spec)
        self._function = function
        blob, text = Types.PICKLED_BYTE_ARRAY(), Types.STRING()
        self._models = context.state.table("model", blob, Redistribution.BROADCAST, key_type=text)
        self._waiting = context.state.table("waiting", blob, Redistribution.SPLIT, key_type=text)
        self._chunks = 0

    def begin_epoch(self) -> None:
        """Load the model from state; rows that waited when the parallelism changed may have one now."""
        self._chunks = 0
        data = self._models.get(None, _MODEL_KEY)
        self._model = None
        if data is not ABSENT:
            self._take_model(pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch().column(0))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Take a model, or transform rows."""
        if side == MODELS:
            newest = batch.array().slice(len(batch) - 1, 1)
            self._models.put(
                None, _MODEL_KEY, write_stream_bytes(pa.RecordBatch.from_arrays([newest], names=["model"]))
            )
            self._take_model(newest)
            for key, data in sorted(self._waiting.scan(None)):
                self._waiting.delete(None, key)
                self._transform(feedback.unpack_chunk(data, create_row_type_info(self._spec.input_schema)))
        elif self._model is None:
            self._waiting.put(None, f"{self.context.epoch:012d}-{self._chunks:06d}", feedback.pack_chunk(batch))
            self._chunks += 1
        else:
            self._transform(batch)

    def _take_model(self, model_data: pa.StructArray) -> None:
        self._model = call(self.context, self._function.load, model_data)
        if self._spec.version is not None:
            index = self._function.model_schema.names.index("model_version")
            self._version = int(model_data.field(index).to_numpy()[0])


def transform(
    stream: DataStream[Any],
    schema: t.RowType,
    function: ColumnFunction,
    name: str,
    models: DataStream[Any] | None = None,
    version: str | None = None,
) -> DataStream[Any]:
    """Add an operator that adds columns, and return the stream of its rows."""
    new = [*function.output(), *([(version, t.BIGINT)] if version is not None else [])]
    output = t.row_of(
        [*schema.names, *(name for name, _ in new)], [*schema.types, *(data_type for _, data_type in new)], null=False
    )
    inputs = stream._inputs
    if models is not None:
        inputs += tuple(Input(edge.upstream, MODELS, edge.tag, Broadcast()) for edge in models._inputs)
    env = stream.get_execution_environment()
    spec = TransformSpec(function, schema, output, version)
    return env._stream(env._program.add(name, spec, create_row_type_info(output), inputs, follows_input=models is None))

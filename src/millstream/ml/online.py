"""Training with the mini-batches of a stream, one after the other.

Promises: mini-batches have exactly their size, however the stream is cut into batches and epochs; every version of the
model is emitted. The model and the incomplete mini-batch are state.
Does not know: what is learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.datastream.data_stream import DataStream
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.graph.transformations import Input
from millstream.ml.calls import call
from millstream.ml.learners import OnlineLearner
from millstream.ml.samples import SampleColumns, Samples, concat_samples, unpack_samples
from millstream.ml.vector_rows import Array
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.partitioners import Global
from millstream.sql.columns import combine_columns, create_row_type_info
from millstream.state.deltas import Redistribution
from millstream.state.store import ABSENT
from millstream.types.arrow_streams import write_stream_bytes
from millstream.types.factory import Types

SAMPLES, INITIAL_MODEL = range(2)
"""The inputs."""

_MOST_NUMBERS = 1 << 20  # of models in one batch
_MODEL, _INITIAL, _REST, _COUNTS = "model", "initial", "rest", "counts"


@dataclass(frozen=True)
class OnlineSpec(OperatorSpec):
    """Trains a model, and emits every version of it."""

    learner: OnlineLearner
    columns: SampleColumns

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return OnlineOperator(context, self)


class OnlineOperator(Operator):
    """State: the model, its version, the incomplete mini-batch, and the initial model data."""

    def __init__(self, context: OperatorContext, spec: OnlineSpec) -> None:
        super().__init__(context)
        self._learner, self._columns = spec.learner, spec.columns
        blob = Types.PICKLED_BYTE_ARRAY()
        self._table = context.state.table("model", blob, Redistribution.BROADCAST, key_type=Types.STRING())
        self._parts: list[Samples] = []
        self._model: Array | None = None
        self._version, self._folded = 0, False

    def begin_epoch(self) -> None:
        """Load the state."""
        model, rest, counts = (self._table.get(None, key) for key in (_MODEL, _REST, _COUNTS))
        self._model = None if model is ABSENT else np.frombuffer(model)
        self._parts = [] if rest is ABSENT else [unpack_samples(rest)]
        version, folded = (0, 0) if counts is ABSENT else np.frombuffer(counts, dtype=np.int64).tolist()
        self._version, self._folded = version, bool(folded)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Train with the complete mini-batches, or take the initial model data."""
        if side == INITIAL_MODEL:
            array = batch.array().slice(len(batch) - 1, 1)
            self._table.put(None, _INITIAL, write_stream_bytes(pa.RecordBatch.from_arrays([array], names=["model"])))
        else:
            self._parts.append(call(self.context, self._columns.read, batch.array()))
        self._train()

    def _train(self) -> None:
        initial = self._table.get(None, _INITIAL)
        if not any(map(len, self._parts)) or (initial is ABSENT and self._learner.needs_model):
            return
        call(self.context, self._train_batches, initial)

    def _train_batches(self, initial: Any) -> None:
        learner = self._learner
        samples = concat_samples([part for part in self._parts if len(part)], self._columns.features[0][1])
        if self._model is None:
            data = None if initial is ABSENT else pa.ipc.open_stream(pa.py_buffer(initial)).read_next_batch().column(0)
            self._model = learner.start(data, samples.rows.width)
        size, start, count = learner.batch_size, 0, len(samples)
        models: list[Array] = []
        while size is not None and count - start >= size:
            self._model = learner.update(self._model, samples.take(slice(start, start + size)))
            models.append(self._model)
            start += size
            if len(models) * len(self._model) >= _MOST_NUMBERS:
                self._emit(models)
                models = []
        rest = samples.take(slice(start, count))
        if size is None and len(rest):
            self._model = learner.update(self._model, rest)
            self._folded = True
            rest = rest.take(slice(0, 0))
        self._parts = [rest]
        if models:
            self._emit(models)

    def _emit(self, models: list[Array]) -> None:
        count = len(models)
        versions = pa.array(np.arange(self._version + 1, self._version + count + 1))
        columns = [*self._learner.result(np.stack(models)), versions]
        self._version += count
        array = combine_columns(columns, None, self._learner.model_schema, count)
        self.out.emit(Batch(self.context.output_type, array=array))

    def on_watermark(self, watermark: int) -> None:
        """Emit the model of the last window at the end of the input."""
        is_end = watermark == MAX_WATERMARK and self.watermark != MAX_WATERMARK
        if is_end and self._folded and self._model is not None:
            self._folded = False
            self._emit([self._model])
        super().on_watermark(watermark)

    def end_epoch(self) -> None:
        """Keep the state."""
        if self._model is not None:
            self._put(_MODEL, self._model.tobytes())
            self._put(_COUNTS, np.array([self._version, self._folded], dtype=np.int64).tobytes())
        if sum(map(len, self._parts)):
            rest = call(self.context, concat_samples, self._parts, self._columns.features[0][1])
            self._put(_REST, rest.pack())
        elif self._table.get(None, _REST) is not ABSENT:
            self._table.delete(None, _REST)

    def _put(self, key: str, data: bytes) -> None:
        if self._table.get(None, key) != data:
            self._table.put(None, key, data)


def train_online(
    stream: DataStream[Any],
    learner: OnlineLearner,
    columns: SampleColumns,
    name: str,
    initial: DataStream[Any] | None = None,
) -> DataStream[Any]:
    """Add the operator that trains a model, and return the stream of the versions of its model data."""
    inputs = tuple(Input(edge.upstream, SAMPLES, edge.tag, Global()) for edge in stream._inputs)
    if initial is not None:
        inputs += tuple(Input(edge.upstream, INITIAL_MODEL, edge.tag, Global()) for edge in initial._inputs)
    env = stream.get_execution_environment()
    output = create_row_type_info(learner.model_schema)
    spec = OnlineSpec(learner, columns)
    return env._stream(env._program.add(f"Train: {name}", spec, output, inputs, parallelism=1))

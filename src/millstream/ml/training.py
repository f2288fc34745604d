"""Training in rounds: one operator with the samples, and one of parallelism 1 with the model, in an iteration.

Promises: a mini-batch does not depend on the parallelism or the order of the input, because samples are selected by
hashes of their values. All that a round needs is state and feedback, so training continues after a failure.
Does not know: what is learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.datastream.data_stream import DataStream
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.graph.transformations import Input
from millstream.iteration.construction import Construction
from millstream.iteration.termination import Termination
from millstream.ml.calls import call
from millstream.ml.learners import BatchLearner, RoundsLearner, SummaryLearner
from millstream.ml.samples import SampleColumns, Samples, concat_samples, unpack_samples
from millstream.ml.vector_rows import Array
from millstream.runtime.batch import Batch
from millstream.runtime.loops import LoopWork, Phase
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.partitioners import Broadcast, Global
from millstream.sql.columns import combine_columns, create_row_type_info
from millstream.state.deltas import Redistribution
from millstream.types.factory import Types

RESULT = "model-data"
"""The side output with the trained model."""

SAMPLES, MODEL = range(2)
"""The inputs of the operator with the samples."""

MESSAGE = Types.ROW_NAMED(["subtask", "numbers"], [Types.LONG(), Types.LIST(Types.DOUBLE())])
_MODEL_KEY = "model"


@dataclass(frozen=True)
class TrainSpec(OperatorSpec):
    """Keeps samples, and computes a partial result in each round."""

    learner: BatchLearner
    columns: SampleColumns

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return TrainOperator(context, self)


@dataclass(frozen=True)
class UpdateSpec(OperatorSpec):
    """Computes the next model from the partial results of a round."""

    learner: BatchLearner

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return UpdateOperator(context, self.learner)


class TrainOperator(Operator):
    """State: chunks of samples, or one summary if the learner needs no rounds."""

    def __init__(self, context: OperatorContext, spec: TrainSpec) -> None:
        super().__init__(context)
        self._learner, self._columns = spec.learner, spec.columns
        blob = Types.PICKLED_BYTE_ARRAY()
        self._table = context.state.table("samples", blob, Redistribution.SPLIT, key_type=Types.STRING())
        self._chunks = 0
        self._model: Array | None = None
        self._loaded: tuple[tuple[str, ...], Samples, Array] | None = None

    def begin_epoch(self) -> None:
        """Forget a failed attempt."""
        self._chunks, self._model = 0, None

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep samples, or take the model of the round."""
        if side == MODEL:
            self._model = read_messages(batch)[-1][1]
            return
        samples = call(self.context, self._columns.read, batch.array())
        if isinstance(self._learner, RoundsLearner):
            self._put(samples.pack())
        elif len(samples):
            self._put(self._learner.summarize(*_order(samples, self._learner.seed)).tobytes())

    def _put(self, data: bytes) -> None:
        self._table.put(None, f"{self.context.epoch:012d}-{self._chunks:06d}", data)
        self._chunks += 1

    def end_epoch(self) -> None:
        """Merge the summaries of the epoch."""
        if self._chunks and isinstance(self._learner, SummaryLearner):
            merged = call(self.context, self._learner.merge, self._summaries())
            for key in [key for key, _ in self._table.scan(None)]:
                self._table.delete(None, key)
            self._chunks = 0
            self._put(merged.tobytes())

    def _summaries(self) -> list[Array]:
        return [np.frombuffer(data) for _, data in sorted(self._table.scan(None))]

    def end_round(self) -> None:
        """Emit the partial result of the round."""
        work = self.context.work
        if not isinstance(work, LoopWork) or not work.ends_round:
            return
        if isinstance(self._learner, RoundsLearner):
            call(self.context, self._run_round, work)
        else:
            for summary in self._summaries():
                self.out.emit(write_message(self.context.subtask, summary))

    def _run_round(self, work: LoopWork) -> None:
        samples, positions = self._load()
        if work.phase is Phase.READ:
            if len(samples):
                self.out.emit(write_message(self.context.subtask, self._learner.summarize(samples, positions)))
        elif self._model is not None and len(samples):
            assert isinstance(self._learner, RoundsLearner)
            self.out.emit(write_message(self.context.subtask, self._learner.train(samples, positions, self._model)))

    def _load(self) -> tuple[Samples, Array]:
        keys = tuple(sorted(key for key, _ in self._table.scan(None)))
        if self._loaded is None or self._loaded[0] != keys:
            parts = [unpack_samples(self._table.get(None, key)) for key in keys]
            samples = concat_samples(parts, self._columns.features[0][1])
            self._loaded = (keys, *_order(samples, self._learner.seed))
        return self._loaded[1:]


def _order(samples: Samples, seed: int) -> tuple[Samples, Array]:
    """Return samples in ascending order of the hashes of their features, and the hashes."""
    positions = samples.rows.positions(seed)
    order = np.lexsort((samples.weights, samples.labels, positions))
    return samples.take(order), positions[order]


class UpdateOperator(Operator):
    """State: the model."""

    def __init__(self, context: OperatorContext, learner: BatchLearner) -> None:
        super().__init__(context)
        self._learner = learner
        blob = Types.PICKLED_BYTE_ARRAY()
        self._table = context.state.table("model", blob, Redistribution.BROADCAST, key_type=Types.STRING())
        self._partials: list[tuple[int, Array]] = []

    def begin_epoch(self) -> None:
        """Forget a failed attempt."""
        self._partials = []

    def on_batch(self, batch: Batch, side: int) -> None:
        """Collect partial results."""
        self._partials += read_messages(batch)

    def end_round(self) -> None:
        """Update the model, and feed it back unless training ends."""
        work = self.context.work
        if isinstance(work, LoopWork) and work.ends_round:
            call(self.context, self._run_round, work)

    def _run_round(self, work: LoopWork) -> None:
        partials = [partial for _, partial in sorted(self._partials, key=lambda pair: pair[0])]
        if work.phase is Phase.READ:
            model, is_done = self._learner.start(partials), not self._learner.rounds
        else:
            assert isinstance(self._learner, RoundsLearner)
            model, is_done = self._learner.update(np.frombuffer(self._table.get(None, _MODEL_KEY)), partials)
        self._table.put(None, _MODEL_KEY, model.tobytes())
        if not is_done:
            self.out.emit(write_message(0, model))

    def on_watermark(self, watermark: int) -> None:
        """Emit the model when the iteration terminates."""
        work = self.context.work
        if watermark == MAX_WATERMARK and isinstance(work, LoopWork) and work.phase is Phase.CLOSE:
            model = np.frombuffer(self._table.get(None, _MODEL_KEY))[np.newaxis]
            schema = self._learner.model_schema
            array = combine_columns(self._learner.result(model), None, schema, 1)
            self.out.emit_side(RESULT, Batch(self.context.side_types[RESULT], array=array))
        super().on_watermark(watermark)


def write_message(subtask: int, numbers: Array) -> Batch:
    """Return a vector of numbers as a batch of one record."""
    values = pa.ListArray.from_arrays(pa.array([0, len(numbers)], pa.int32()), pa.array(numbers))
    array = pa.StructArray.from_arrays([pa.array([subtask]), values], names=["subtask", "numbers"])
    return Batch(MESSAGE, array=array)


def read_messages(batch: Batch) -> list[tuple[int, Array]]:
    """Return the inverse of `write_message`, for several records."""
    array = batch.array()
    subtasks, lists = array.field(0).to_numpy(), array.field(1)
    numbers = np.split(lists.flatten().to_numpy(), np.cumsum(lists.value_lengths().to_numpy())[:-1])
    return list(zip(subtasks.tolist(), numbers, strict=True))


def train(stream: DataStream[Any], learner: BatchLearner, columns: SampleColumns, name: str) -> DataStream[Any]:
    """Add the operators that train a model, and return the stream of its model data, of one record."""
    env = stream.get_execution_environment()
    messages = env.from_collection([], MESSAGE)
    construction = Construction(messages, None, bounded=True)
    models = construction.variable(messages)
    inputs = (*stream._inputs, *(Input(edge.upstream, MODEL, edge.tag, Broadcast()) for edge in models._inputs))
    program = env._program
    step = program.add(f"Train: {name}", TrainSpec(learner, columns), MESSAGE, inputs)
    update = program.add(
        f"Update: {name}", UpdateSpec(learner), MESSAGE, (Input(step, partitioner=Global()),), parallelism=1
    )
    construction.feed_back((env._stream(update),))
    program.declare_side(update, RESULT, create_row_type_info(learner.model_schema))
    termination = Termination(max_iterations=learner.rounds + 1)
    construction.configure(termination.configure(construction.loop, has_criterion=False))
    return DataStream(env, (Input(update, tag=RESULT),))

"""Vertex programs on the vertices of a subtask: one update of arrays in each round.

Promises: a round costs time for the vertices that have messages or send some; their values are state, of which a round
writes what changed. Vertices that only edges name exist.
Does not know: what a vertex program computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.functions.vertex import VertexProgram
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.column_chunks import ColumnChunks
from millstream.runtime.loops import LoopReport, LoopWork, Phase
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.vertex_blocks import (
    VertexBlock,
    check_weights,
    combine_messages,
    concat_columns,
    to_numbers,
    values_of_vertices,
)
from millstream.types.factory import TypeInformation

RESULT = "vertex-values"
"""The side output with the results of all vertices."""

EDGES, MESSAGES, REVERSED, VERTICES = range(4)
"""The inputs: edges by their source, messages, edges by their target, and vertices."""


@dataclass(frozen=True)
class SuperstepSpec(OperatorSpec):
    """A vertex program; the output are messages."""

    program: VertexProgram
    result_type: TypeInformation

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return SuperstepOperator(context, self)


class SuperstepOperator(Operator):
    """State: chunks of edges and of vertices, and chunks of values, of which later ones replace earlier ones."""

    def __init__(self, context: OperatorContext, spec: SuperstepSpec) -> None:
        super().__init__(context)
        self._spec, self._program = spec, spec.program
        self._names = [f"value{index}" for index in range(spec.program.width)]
        self._edges = ColumnChunks(context, "edges")
        self._vertices = ColumnChunks(context, "vertices")
        self._values = ColumnChunks(context, "values")
        self._block: VertexBlock | None = None
        self._messages: list[pa.Array] = []

    def begin_epoch(self) -> None:
        """Forget the messages of a failed attempt."""
        self._messages = []
        for chunks in (self._edges, self._vertices, self._values):
            chunks.begin_epoch()

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep edges and vertices, and buffer messages."""
        array = batch.array()
        if side == MESSAGES:
            self._messages.append(array)
            return
        self._block = None
        columns = rowwise.call_user_code(self.context, _read_columns, array, 2 if side == VERTICES else 3)
        if side == VERTICES:
            self._vertices.put(vertex=columns[0], value=columns[1])
            return
        source, target, weight = columns
        rowwise.call_user_code(self.context, check_weights, source, target, weight)
        forward = np.full(len(source), side == EDGES)
        if side == EDGES:
            self._edges.put(source=source, target=target, weight=weight, forward=forward)
        elif self._program.undirected:
            self._edges.put(source=target, target=source, weight=weight, forward=forward)
        else:
            vertices = np.unique(target)
            self._vertices.put(vertex=vertices, value=np.full(len(vertices), np.nan))

    def _load(self) -> VertexBlock:
        """Return the block, built from state if this operator has not kept it."""
        if self._block is None:
            edges = concat_columns(self._edges.batches(), "source", "target", "weight", "forward")
            vertices, initial = concat_columns(self._vertices.batches(), "vertex", "value")
            ids = np.unique(np.concatenate((edges[0], vertices)))
            values = np.zeros(self._shape(len(ids)), dtype=self._program.dtype)
            for chunk in self._values.batches():
                vertex, *columns = concat_columns([chunk], "vertex", *self._names)
                values[np.searchsorted(ids, vertex)] = self._join_columns(columns)
            initial = rowwise.call_user_code(self.context, values_of_vertices, ids, vertices, initial)
            self._block = VertexBlock((ids, initial), values, edges, simple=self._program.simple)
        return self._block

    def _shape(self, count: int) -> tuple[int, ...]:
        return (count,) if self._program.width == 1 else (count, self._program.width)

    def _join_columns(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        return columns[0] if self._program.width == 1 else np.stack(columns, axis=1)

    def end_round(self) -> None:
        """Update the vertices when a round ends, and send their messages."""
        work = self.context.work
        if not isinstance(work, LoopWork) or not work.ends_round:
            return
        block = self._load()
        block.notes = {}
        if work.phase is Phase.READ:
            values, senders = rowwise.call_user_code(self.context, self._program.start, block)
            block.values = np.array(values, dtype=self._program.dtype)
            changed = np.arange(len(block))
        else:
            changed, senders = self._update(block, *self._combine_messages(), work)
        delayed: list[tuple[np.ndarray, np.ndarray]] = []
        for _ in work.numbers[1:]:
            targets, messages = self._messages_of(block, senders)
            local = block.has(targets)
            delayed.append((targets[~local], messages[~local]))
            changed_now, senders = self._update(block, targets[local], messages[local], work)
            changed = np.union1d(changed, changed_now)
        self._save(block, changed)
        self._send(block, senders, delayed)
        report = self.context.memory.part(LoopReport)
        report.aggregates = {}
        for name, (kind, value) in rowwise.call_user_code(self.context, self._program.aggregate, block).items():
            report.put(name, kind, float(value))

    def _update(
        self, block: VertexBlock, ids: np.ndarray, messages: np.ndarray, work: LoopWork
    ) -> tuple[np.ndarray, np.ndarray]:
        """Update the vertices with messages; return those that changed and those that send, by index."""
        update = self._program.update
        changed, values, senders = rowwise.call_user_code(
            self.context, update, block, block.indexes(ids), messages, work.aggregates
        )
        block.values[changed] = values
        return changed, senders

    def _combine_messages(self) -> tuple[np.ndarray, np.ndarray]:
        arrays = [array.filter(array.field(1).is_valid()) for array in self._messages]
        self._messages = []
        if not arrays:
            return np.zeros(0, dtype=np.int64), np.zeros(self._shape(0), dtype=self._program.dtype)
        ids, *columns = (
            np.concatenate([array.field(index).to_numpy() for array in arrays]) for index in range(len(self._names) + 1)
        )
        return combine_messages(self._program.combiner, ids, self._join_columns(columns))

    def _save(self, block: VertexBlock, changed: np.ndarray) -> None:
        """Write changed values; all of them, when the changes are more than twice as many as the vertices."""
        if not len(changed):
            return
        keys = self._values.keys()
        if len(keys) >= 16 or 2 * len(changed) > len(block):
            self._values.delete(keys)
            changed = np.arange(len(block))
        self._values.put(vertex=block.ids[changed], **self._columns(block.values[changed]))

    def _columns(self, values: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(self._names, np.atleast_2d(values.T), strict=True))

    def _messages_of(self, block: VertexBlock, senders: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the combined messages of vertices: ids of receivers, and messages."""
        edges = block.edges_of(senders)
        edges = rowwise.call_user_code(self.context, self._program.select, block, edges)
        if not len(edges):
            return np.zeros(0, dtype=np.int64), np.zeros(self._shape(0), dtype=self._program.dtype)
        messages = np.asarray(rowwise.call_user_code(self.context, self._program.message, block, edges))
        return block.combine(self._program.combiner, edges, messages.astype(self._program.dtype, copy=False))

    def _send(
        self, block: VertexBlock, senders: np.ndarray, delayed: Sequence[tuple[np.ndarray, np.ndarray]] = ()
    ) -> None:
        targets, messages = self._messages_of(block, senders)
        if delayed:
            targets, messages = (np.concatenate(parts) for parts in zip((targets, messages), *delayed, strict=True))
            targets, messages = combine_messages(self._program.combiner, targets, messages)
        if len(targets):
            self.out.emit(_rows(self.context.output_type, targets, list(self._columns(messages).values())))
        elif len(block) and rowwise.call_user_code(self.context, self._program.continues, block):
            nothing: Any = pa.nulls(1, pa.from_numpy_dtype(np.dtype(self._program.dtype)))
            self.out.emit(_rows(self.context.output_type, block.ids[:1], [nothing] * len(self._names)))

    def on_watermark(self, watermark: int) -> None:
        """Emit the results when the iteration terminates."""
        work = self.context.work
        if watermark == MAX_WATERMARK and isinstance(work, LoopWork) and work.phase is Phase.CLOSE:
            block = self._load()
            results = rowwise.call_user_code(self.context, self._program.finish, block, work.aggregates)
            if len(block):
                columns = list(np.atleast_2d(np.asarray(results, dtype=self._program.dtype).T))
                self.out.emit_side(RESULT, _rows(self._spec.result_type, block.ids, columns))
        super().on_watermark(watermark)


def _read_columns(array: pa.StructArray, count: int) -> list[np.ndarray]:
    """Return the first columns of vertices or edges."""
    return [to_numbers(array.field(index), array.type.field(index).name) for index in range(count)]


def _rows(record_type: TypeInformation, ids: np.ndarray, columns: Sequence[Any]) -> Batch:
    names = record_type.field_names  # type: ignore[attr-defined]
    array = pa.StructArray.from_arrays([pa.array(column) for column in (ids, *columns)], names=names)
    return Batch(record_type, array=array)

"""One subtask of one vertex in a batch job: all of its input once, keyed input key by key.

Promises: a keyed operator sees the records of a key together and in the order of their times, with no watermark, then
the end of time for that key: its timers fire, and its state is dropped. The last watermark comes after all input.
Nothing is saved: a batch job that fails starts again.
Does not know: Spark, other subtasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime import block as blocks
from millstream.runtime.batch import Batch
from millstream.runtime.block_order import REPORT_SORT_KEY, is_of_sorted_run, unsorted_block_key
from millstream.runtime.exchange import concat_rows
from millstream.runtime.operator import OperatorContext
from millstream.runtime.partitioners import Broadcast, Hash, Router
from millstream.runtime.sorted_input import SortedEdge, SortedInput
from millstream.runtime.sorted_runs import SortedRuns
from millstream.runtime.task import OutEdge, Task, TaskEnvironment, TaskRequest, TaskSpec
from millstream.runtime.watermarks import SentWatermarks
from millstream.state.backend import OperatorState
from millstream.state.deltas import Redistribution
from millstream.state.handles import Chain

_BUFFERED_RECORDS = 1024  # small batches are sent together

SortableBlock = tuple[int, bytes, bytes]
"""(target slot, sort key, block)."""


class BatchTask(Task):
    """A subtask that lives for one attempt. `ranks` has, for each edge, the rank of the vertex that it goes to."""

    def __init__(self, spec: TaskSpec, subtask: int, environment: TaskEnvironment, ranks: Mapping[int, int]) -> None:
        self._ranks = ranks
        super().__init__(spec, subtask, environment)
        self.outbox: list[Any] = []

    def _exchange(self, edge: OutEdge) -> Any:
        return (_SortedExchange if isinstance(edge.partitioner, Hash) else _OrderedExchange)(edge, self)

    def rank(self, edge: int) -> int:
        """Return the rank of the vertex that an edge goes to."""
        return self._ranks[edge]

    def run_all(self, request: TaskRequest, arrived: Iterator[tuple[bytes, bytes]]) -> Iterator[SortableBlock]:
        """Process (sort key, block) in the order of sort keys; yields blocks with theirs, and finally the report."""
        for block in self.run(request, arrived):  # type: ignore[arg-type]
            yield block if len(block) == 3 else (block[0], REPORT_SORT_KEY, block[1])

    def _receive(self, inbox: Any, sent: Mapping[int, SentWatermarks]) -> Iterator[None]:
        head, context, output = self._operators[0], self._contexts[0], self._outputs[0]
        edges = {edge.edge: edge for edge in self.spec.inputs}
        for in_order, pieces in groupby(self._count_reads(inbox), key=lambda piece: is_of_sorted_run(piece[0])):
            if not in_order:
                for _, data in pieces:
                    edge = edges[blocks.header(data).edge]
                    batch = blocks.unpack_batch(data, edge.record_type)
                    context.metrics.count("records_in", len(batch))
                    head.on_batch(batch, edge.side)
                    yield
                continue
            for unit in SortedInput(_sorted_edges(self.spec), context.name).units(pieces):
                context.metrics.count("records_in", len(unit))
                head.on_sorted(unit)
                if unit.complete:
                    output.muted = True
                    head.finish_keys()
                    output.muted = False
                    context.memory.watermark = None
                    clear_keyed_state(context.state)
                yield
        if self.spec.inputs:
            head.on_watermark(MAX_WATERMARK)

    def _count_reads(self, inbox: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        for piece in inbox:
            self.count_read(blocks.header(piece[1]), len(piece[1]))
            yield piece

    def _save(self, context: OperatorContext, request: TaskRequest) -> Chain:
        return ()


def _sorted_edges(spec: TaskSpec) -> dict[int, SortedEdge]:
    return {
        edge.edge: SortedEdge(edge.side, edge.record_type, edge.partitioner.key)
        for edge in spec.inputs
        if isinstance(edge.partitioner, Hash)
    }


def clear_keyed_state(state: OperatorState) -> None:
    """Drop the state of all keys; operator state stays."""
    for table in state.tables.values():
        if table.schema.redistribution in (Redistribution.KEYED, Redistribution.CUT):
            table.clear_live()


class _OrderedExchange:
    """The sending end of an edge whose records stay in the order of their channel."""

    def __init__(self, edge: OutEdge, task: BatchTask) -> None:
        self._edge, self._task = edge, task
        node = task.spec.operators[edge.source]
        self.router = Router(edge.partitioner, node.name, task.subtask, task.spec.parallelism, edge.targets)
        self._broadcast = isinstance(edge.partitioner, Broadcast)
        self._sequence = 0
        self._buffer: list[Batch] = []
        self._rows = 0

    def begin(self, epoch: int, position: int) -> None:
        """Start the job."""
        self.router.seed(epoch, self._edge.edge)

    def send(self, batch: Batch) -> None:
        """Send records; small batches are buffered."""
        if self._buffer and (batch.columnar or (self._buffer[0].timestamps is None) != (batch.timestamps is None)):
            self.flush()
        self._buffer.append(batch)
        self._rows += len(batch)
        if batch.columnar or self._rows >= _BUFFERED_RECORDS:
            self.flush()

    def flush(self) -> None:
        """Send the buffered records."""
        if not self._buffer:
            return
        batch, self._buffer, self._rows = concat_rows(self._buffer), [], 0
        task, edge = self._task, self._edge.edge
        limit = task.environment.block_records
        for start in range(0, len(batch), limit):
            part = batch if len(batch) <= limit else batch.slice(start, start + limit)
            for target, piece in self.router.split(part):
                sort_key = unsorted_block_key(
                    task.rank(edge), edge, task.subtask, self._sequence, broadcast=self._broadcast
                )
                packed = blocks.pack_batch(edge, task.subtask, self._sequence, piece, task.attempt)
                task.send(edge, target, sort_key, packed)
            self._sequence += 1

    def watermark(self, watermark: int | None) -> None:
        """Send nothing: event time ends with the last record, in every subtask."""


class _SortedExchange:
    """The sending end of an edge by key."""

    def __init__(self, edge: OutEdge, task: BatchTask) -> None:
        partitioner = edge.partitioner
        assert isinstance(partitioner, Hash)
        self._task = task
        node = task.spec.operators[edge.source]
        self.router = Router(partitioner, node.name, task.subtask, task.spec.parallelism, edge.targets)
        self._runs = SortedRuns(
            partitioner,
            node.name,
            edge.edge,
            task.subtask,
            edge.targets,
            task.rank(edge.edge),
            task.environment.run_bytes,
            partial(task.send, edge.edge),
            None if partitioner.reduce is None else partitioner.reduce.reduce,
        )
        self.send, self.flush = self._runs.add, self._runs.flush

    def begin(self, epoch: int, position: int) -> None:
        """Start the job."""
        self._runs.attempt = self._task.attempt

    def watermark(self, watermark: int | None) -> None:
        """Send nothing: event time ends with the last record, in every subtask."""

"""One subtask of one vertex in a batch job: all of its input once, keyed input key by key.

Promises: a keyed operator sees the records of a key together and in the order of their times, with no watermark, then
the end of time for that key: its timers fire, and its state is forgotten. The last watermark comes after all input.
Nothing is saved: a batch job that fails begins anew.
Does not know: Spark, other subtasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime import block as blocks
from millstream.runtime.batch import Batch
from millstream.runtime.exchange import joined
from millstream.runtime.operator import OperatorContext
from millstream.runtime.partitioners import Broadcast, Hash, Router
from millstream.runtime.places import REPORTS, is_sorted, unsorted_place
from millstream.runtime.sorted_input import SortedEdge, SortedInput
from millstream.runtime.sorted_runs import SortedRuns
from millstream.runtime.task import OutEdge, Task, TaskEnvironment, TaskRequest, TaskSpec
from millstream.state.backend import OperatorState
from millstream.state.deltas import Redistribution
from millstream.state.handles import Chain

_GATHERED = 1024  # records of small batches that are sent together

Placed = tuple[int, bytes, bytes]
"""(target slot, place, block)."""


class BatchTask(Task):
    """A subtask that lives for one attempt. `ranks` has the vertex that each edge goes to, as places count them."""

    def __init__(self, spec: TaskSpec, subtask: int, environment: TaskEnvironment, ranks: Mapping[int, int]) -> None:
        self._ranks = ranks
        super().__init__(spec, subtask, environment)
        self.outbox: list[Any] = []

    def _exchange(self, edge: OutEdge) -> Any:
        return (_SortedExchange if isinstance(edge.partitioner, Hash) else _OrderedExchange)(edge, self)

    def rank(self, edge: int) -> int:
        """The vertex an edge goes to."""
        return self._ranks[edge]

    def run_all(self, request: TaskRequest, arrived: Iterator[tuple[bytes, bytes]]) -> Iterator[Placed]:
        """Process (place, block) in the order of places; yields blocks with theirs, and at last the report."""
        for sent in self.run(request, arrived):  # type: ignore[arg-type]
            yield sent if len(sent) == 3 else (sent[0], REPORTS, sent[1])

    def _receive(self, inbox: Any) -> Iterator[None]:
        head, context, fan = self._operators[0], self._contexts[0], self._fans[0]
        edges = {edge.edge: edge for edge in self.spec.inputs}
        for in_order, pieces in groupby(self._noted(inbox), key=lambda piece: is_sorted(piece[0])):
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
                    fan.muted = True
                    head.finish_keys()
                    fan.muted = False
                    context.memory.watermark = None
                    forget_keys(context.state)
                yield
        if self.spec.inputs:
            head.on_watermark(MAX_WATERMARK)

    def _noted(self, inbox: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        for piece in inbox:
            self.note(blocks.header(piece[1]))
            yield piece

    def _save(self, context: OperatorContext, request: TaskRequest) -> Chain:
        return ()


def _sorted_edges(spec: TaskSpec) -> dict[int, SortedEdge]:
    return {
        edge.edge: SortedEdge(edge.side, edge.record_type, edge.partitioner.key)
        for edge in spec.inputs
        if isinstance(edge.partitioner, Hash)
    }


def forget_keys(state: OperatorState) -> None:
    """Let go of the state of all keys; what belongs to the operator stays."""
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
        self._waiting: list[Batch] = []
        self._rows = 0

    def begin(self, epoch: int, position: int) -> None:
        """The job starts."""
        self.router.seed(epoch, self._edge.edge)

    def send(self, batch: Batch) -> None:
        """Send records; small batches wait for each other."""
        if self._waiting and (batch.columnar or (self._waiting[0].timestamps is None) != (batch.timestamps is None)):
            self.flush()
        self._waiting.append(batch)
        self._rows += len(batch)
        if batch.columnar or self._rows >= _GATHERED:
            self.flush()

    def flush(self) -> None:
        """Send what waits."""
        if not self._waiting:
            return
        whole, self._waiting, self._rows = joined(self._waiting), [], 0
        task, edge = self._task, self._edge.edge
        limit = task.environment.block_records
        for start in range(0, len(whole), limit):
            part = whole if len(whole) <= limit else whole.slice(start, start + limit)
            for target, piece in self.router.split(part):
                place = unsorted_place(task.rank(edge), edge, task.subtask, self._sequence, broadcast=self._broadcast)
                packed = blocks.pack_batch(edge, task.subtask, self._sequence, piece, task.attempt)
                task.send(edge, target, place, packed)
            self._sequence += 1

    def watermark(self, watermark: int | None) -> None:
        """Time comes to its end with the last record, for everybody."""


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
            None if partitioner.fold is None else partitioner.fold.reduce,
        )
        self.send, self.flush = self._runs.add, self._runs.flush

    def begin(self, epoch: int, position: int) -> None:
        """The job starts."""
        self._runs.attempt = self._task.attempt

    def watermark(self, watermark: int | None) -> None:
        """Time comes to its end with the last record, for everybody."""

"""The sending end of one exchange edge of a streaming task.

Promises: small batches are buffered, partitioned by target, and packed into numbered blocks that name the
attempt of the task.
Does not know: who receives the blocks, how they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from millstream.runtime import block as blocks
from millstream.runtime.batch import Batch
from millstream.runtime.partitioners import Router

if TYPE_CHECKING:
    from millstream.runtime.task import OutEdge, Task

_BUFFERED_ROWS = 1024  # smaller batches are sent together


class Exchange:
    """The sending end of one edge of one subtask."""

    def __init__(self, edge: OutEdge, task: Task) -> None:
        self._edge = edge
        self._task = task
        node = task.spec.operators[edge.source]
        self.router = Router(edge.partitioner, node.name, task.subtask, task.spec.parallelism, edge.targets)
        self._sequence = 0
        self._buffer: list[Batch] = []
        self._buffered_rows = 0

    def begin(self, epoch: int, position: int) -> None:
        """Start a new attempt at an epoch; `position` is where round-robin partitioners continue."""
        self._sequence = 0
        self._buffer, self._buffered_rows = [], 0
        self.router.position = position
        self.router.seed(epoch, self._edge.edge)

    def send(self, batch: Batch) -> None:
        """Send records; small batches are buffered."""
        if batch.columnar or len(batch) >= _BUFFERED_ROWS:
            self.flush()
            self._pack(batch)
            return
        if self._buffer and (self._buffer[0].timestamps is None) != (batch.timestamps is None):
            self.flush()
        self._buffer.append(batch)
        self._buffered_rows += len(batch)
        if self._buffered_rows >= _BUFFERED_ROWS:
            self.flush()

    def flush(self) -> None:
        """Send the buffered records."""
        if self._buffer:
            batch = concat_rows(self._buffer)
            self._buffer, self._buffered_rows = [], 0
            self._pack(batch)

    def _pack(self, batch: Batch) -> None:
        task, edge = self._task, self._edge.edge
        limit = task.environment.block_records
        for start in range(0, len(batch), limit):
            part = batch if len(batch) <= limit else batch.slice(start, start + limit)
            for target, piece in self.router.split(part):
                packed = blocks.pack_batch(edge, task.subtask, self._sequence, piece, task.attempt)
                task.send(edge, target, packed)
            self._sequence += 1

    def watermark(self, watermark: int | None) -> None:
        """Send a watermark, None for idle, to every subtask that this one can reach."""
        self.flush()
        task, edge = self._task, self._edge.edge
        packed = blocks.pack_watermark(edge, task.subtask, self._sequence, watermark, task.attempt)
        self._sequence += 1
        for target in self.router.reachable():
            task.send(edge, target, packed)


def concat_rows(batches: list[Batch]) -> Batch:
    """Return several batches of one type as one batch of rows."""
    if len(batches) == 1:
        return batches[0]
    rows = [row for batch in batches for row in batch.rows()]
    timed = batches[0].timestamps is not None
    times = np.concatenate([batch.timestamps for batch in batches]) if timed else None
    return Batch(batches[0].record_type, rows=rows, timestamps=times)

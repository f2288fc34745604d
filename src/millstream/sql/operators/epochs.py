"""Operators that buffer the rows of an epoch and process them together.

Promises: all rows that arrived before a watermark, or before the end of the epoch, are processed as one array, and the
resulting changes are emitted before the watermark; with a limit, no array has more rows. Rows of a failed attempt are
discarded.
Does not know: what any operator does with the rows."""

from __future__ import annotations

from abc import abstractmethod

import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.operator import OperatorContext
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.mini_batch import MiniBatch
from millstream.sql.types import data_types as t


class EpochOperator(TableOperator):
    """Buffers rows until the end of the epoch, a watermark, or `limit` rows."""

    def __init__(
        self, context: OperatorContext, output: t.RowType, zone: str = "UTC", limit: int | None = None
    ) -> None:
        super().__init__(context, output, zone)
        self._mini_batch = MiniBatch(limit)
        self._buffer: list[pa.Array] = []

    def begin_epoch(self) -> None:
        """Discard rows of a failed attempt."""
        super().begin_epoch()
        self._buffer = []
        self._mini_batch.restart()

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add the rows to the buffer, and process a full buffer."""
        for part, is_full in self._mini_batch.split(batch):
            self._buffer.append(part.array())
            if is_full:
                self._process_buffer()

    def on_watermark(self, watermark: int) -> None:
        """Process the buffer, so that changes are emitted before the watermark."""
        self._process_buffer()
        super().on_watermark(watermark)

    def end_epoch(self) -> None:
        """Process the buffer."""
        self._process_buffer()

    def _process_buffer(self) -> None:
        self._mini_batch.restart()
        if self._buffer:
            array = pa.concat_arrays(self._buffer) if len(self._buffer) > 1 else self._buffer[0]
            self._buffer = []
            self._process(array)
            self.flush()

    @abstractmethod
    def _process(self, array: pa.Array) -> None:
        """Update state with the buffered rows, and put or emit the changes."""

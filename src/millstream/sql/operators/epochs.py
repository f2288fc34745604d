"""Operators whose rows wait until the epoch is over, so that they are taken together.

Promises: all rows that came before a watermark, or before the end of the epoch, are taken as one array, and what that
changes is told before the watermark; an attempt that failed leaves nothing waiting.
Does not know: what any operator does with the rows."""

from __future__ import annotations

from abc import abstractmethod

import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.operator import OperatorContext
from millstream.sql.operators.base import TableOperator
from millstream.sql.types import data_types as t


class EpochOperator(TableOperator):
    """Rows wait for the end of the epoch, or for a watermark."""

    def __init__(self, context: OperatorContext, output: t.RowType, zone: str = "UTC") -> None:
        super().__init__(context, output, zone)
        self._waiting: list[pa.Array] = []

    def begin_epoch(self) -> None:
        """Nothing is waiting."""
        super().begin_epoch()
        self._waiting = []

    def on_batch(self, batch: Batch, side: int) -> None:
        """Gather."""
        self._waiting.append(batch.array())

    def on_watermark(self, watermark: int) -> None:
        """What changed comes before the watermark."""
        self._take_waiting()
        super().on_watermark(watermark)

    def end_epoch(self) -> None:
        """Nothing stays."""
        self._take_waiting()

    def _take_waiting(self) -> None:
        if self._waiting:
            array = pa.concat_arrays(self._waiting) if len(self._waiting) > 1 else self._waiting[0]
            self._waiting = []
            self._take(array)
            self.flush()

    @abstractmethod
    def _take(self, array: pa.Array) -> None:
        """Take rows that waited into state, and put or emit what changed."""

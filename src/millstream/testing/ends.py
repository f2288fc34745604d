"""The source and the sink of a pipeline under test: a feed emits given records, and a collector reports the records
that the pipeline emits.

Promises: a feed emits records, watermarks and idleness in the given order; a collector reports each record with its
timestamp and its output, and each watermark.
Does not know: harnesses. Both are operators: they get their work from the request of the epoch, and put their results
into the report."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cloudpickle

from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP, Batch, timestamps_of
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.types.factory import TypeInformation


@dataclass(frozen=True)
class Rows:
    """Records to emit, with their timestamps. They are pickled with the classes that a test defines."""

    values: tuple[Any, ...]
    timestamps: tuple[int | None, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_rows, (cloudpickle.dumps((self.values, self.timestamps)),)


def _load_rows(data: bytes) -> Rows:
    return Rows(*pickle.loads(data))


@dataclass(frozen=True)
class Watermark:
    """A watermark to emit; None marks the input as idle."""

    watermark: int | None


@dataclass(frozen=True)
class FeedSpec(OperatorSpec):
    """An input of the pipeline."""

    data_type: TypeInformation

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return FeedOperator(context, self.data_type)


class FeedOperator(Operator):
    """Emits the work of the epoch."""

    def __init__(self, context: OperatorContext, data_type: TypeInformation) -> None:
        super().__init__(context)
        self._data_type = data_type

    def on_batch(self, batch: Batch, side: int) -> None:
        """Refuse: a feed has no input."""
        raise AssertionError(batch, side)

    def pump(self) -> Iterator[None]:
        """Emit the records and watermarks of the epoch in order."""
        for item in self.context.work or ():
            if isinstance(item, Rows):
                values = rowwise.conform(self.context.name, self._data_type, list(item.values))
                untimed = all(time is None for time in item.timestamps)
                times = None if untimed else timestamps_of(item.timestamps)
                self.out.emit(Batch(self._data_type, rows=values, timestamps=times))
            elif item.watermark is None:
                self.on_idle()
            else:
                self.on_watermark(max(item.watermark, self.watermark))  # as in a source, event time never goes back
            yield


@dataclass(frozen=True)
class CollectSpec(OperatorSpec):
    """The end of the pipeline: input 0 is its main output, the others are side outputs."""

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return CollectOperator(context)


class CollectOperator(Operator):
    """Reports the records that arrive as (input, value, timestamp), and the watermarks, None for idle."""

    def __init__(self, context: OperatorContext) -> None:
        super().__init__(context)
        self._collected: list[tuple[int, Any, int | None]] = []
        self._watermarks: list[int | None] = []

    def begin_epoch(self) -> None:
        """Forget the records of the epoch before."""
        self._collected, self._watermarks = [], []

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep the records."""
        times = (None if time == NO_TIMESTAMP else time for time in batch.times())
        self._collected.extend(zip([side] * len(batch), batch.rows(), times, strict=True))

    def on_watermark(self, watermark: int) -> None:
        """Remember the watermark."""
        self._watermarks.append(watermark)
        super().on_watermark(watermark)

    def on_idle(self) -> None:
        """Remember that the input became idle."""
        self._watermarks.append(None)

    def on_active(self) -> None:
        """Remember the watermark of an input that became active again."""
        self._watermarks.append(self.watermark)

    def end_epoch(self) -> None:
        """Put the records and watermarks into the report."""
        self.context.result = (self._collected, self._watermarks)

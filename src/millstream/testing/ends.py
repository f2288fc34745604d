"""The two ends of a pipeline under test: a feed that says what it is told, and a catch that keeps all that comes out.

Promises: records, watermarks and idleness leave a feed in the order given; a catch reports each record with its
timestamp and the output it came from, and the last watermark.
Does not know: harnesses; it gets its work from the epoch's request and answers in the report, as any operator."""

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
    """Records to feed, with their timestamps. They travel as bytes, with classes that were defined in a test."""

    values: tuple[Any, ...]
    timestamps: tuple[int | None, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rows, (cloudpickle.dumps((self.values, self.timestamps)),)


def _rows(data: bytes) -> Rows:
    return Rows(*pickle.loads(data))


@dataclass(frozen=True)
class Mark:
    """A watermark to feed; None says that the input is idle."""

    watermark: int | None


@dataclass(frozen=True)
class FeedSpec(OperatorSpec):
    """An input of the pipeline."""

    kind: TypeInformation

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return FeedOperator(context, self.kind)


class FeedOperator(Operator):
    """Emits the work of the epoch."""

    def __init__(self, context: OperatorContext, kind: TypeInformation) -> None:
        super().__init__(context)
        self._kind = kind

    def on_batch(self, batch: Batch, side: int) -> None:
        """A feed has no input."""
        raise AssertionError(batch, side)

    def pump(self) -> Iterator[None]:
        """Emit one piece of work after the other."""
        for piece in self.context.work or ():
            if isinstance(piece, Rows):
                values = rowwise.conform(self.context.name, self._kind, list(piece.values))
                untimed = all(time is None for time in piece.timestamps)
                times = None if untimed else timestamps_of(piece.timestamps)
                self.out.emit(Batch(self._kind, rows=values, timestamps=times))
            elif piece.watermark is None:
                self.on_idle()
            else:
                self.on_watermark(max(piece.watermark, self.watermark))  # as a source: event time never goes back
            yield


@dataclass(frozen=True)
class CatchSpec(OperatorSpec):
    """The end of the pipeline: input 0 is its main output, the others are side outputs."""

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return CatchOperator(context)


class CatchOperator(Operator):
    """Puts what arrives into the report: (input, value, timestamp), and the watermark or None for idle."""

    def __init__(self, context: OperatorContext) -> None:
        super().__init__(context)
        self._caught: list[tuple[int, Any, int | None]] = []
        self._marks: list[int | None] = []

    def begin_epoch(self) -> None:
        """Nothing has arrived."""
        self._caught, self._marks = [], []

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep the records."""
        times = (None if time == NO_TIMESTAMP else time for time in batch.times())
        self._caught.extend(zip([side] * len(batch), batch.rows(), times, strict=True))

    def on_watermark(self, watermark: int) -> None:
        """Keep the watermark."""
        self._marks.append(watermark)
        super().on_watermark(watermark)

    def on_idle(self) -> None:
        """Keep the news."""
        self._marks.append(None)

    def on_active(self) -> None:
        """Keep the news."""
        self._marks.append(self.watermark)

    def end_epoch(self) -> None:
        """Report."""
        self.context.result = (self._caught, self._marks)

"""The operator of sink functions: one call for every record, which cannot be undone.

Promises: the function is called at least once for every record: records of a failed epoch are passed again. A sink
that must write each record exactly once has a writer and a committer instead.
Does not know: commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.functions import SinkFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.context import TimeOnly
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.map import FunctionOperator


@dataclass(frozen=True)
class SinkFunctionSpec(OperatorSpec):
    """A sink function."""

    function: SinkFunction

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return SinkFunctionOperator(context, self.function)


class SinkCall(SinkFunction.Context):
    """The context of a sink function; the loop sets `time` before each call."""

    def __init__(self, timers: TimeOnly) -> None:
        self._timers = timers
        self.time = NO_TIMESTAMP

    def current_processing_time(self) -> int:
        """Return the processing time of the epoch."""
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        """Return the watermark of the operator."""
        return self._timers.current_watermark()

    def timestamp(self) -> int | None:
        """Return the timestamp of the record, if it has one."""
        return None if self.time == NO_TIMESTAMP else self.time


class SinkFunctionOperator(FunctionOperator):
    """Calls the function with every record."""

    def __init__(self, context: OperatorContext, function: SinkFunction) -> None:
        super().__init__(context, function, keyed=False)
        self._call = SinkCall(TimeOnly(context))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Call the function with every record."""
        rowwise.process_rows(self.context, self._invoke, batch, self._call)

    def _invoke(self, value: Any, call: SinkCall) -> None:
        self.function.invoke(value, call)

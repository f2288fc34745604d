"""Watermarks of a table, computed by an expression over its rows.

Promises: one watermark at the end of each epoch's rows; watermarks of the input are dropped, except for the last one,
which ends the input.
Does not know: what the watermark is used for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.operators.event_time import EventTimeMemory, EventTimeOperator
from millstream.sql.columns import scalar_value
from millstream.sql.evaluation.evaluate import EvaluationFailed, Projection
from millstream.sql.expressions.nodes import Expression
from millstream.sql.expressions.stable_text import format_expression
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.spec import PlanContext, RowPassingSpec, StateTraits
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class WatermarkSpec(RowPassingSpec):
    """The expression of the watermark, and the time without input after which the subtask is idle."""

    schema: t.RowType
    expr: Expression
    idle_timeout: int | None = None
    zone: str = "UTC"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits(free={"watermark": format_expression(self.expr, plan.inputs[0])})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return WatermarkOperator(context, self)


@dataclass
class WatermarkMemory(EventTimeMemory):
    """The greatest watermark computed so far, and whether the source has nothing to read in this subtask."""

    part_name: ClassVar[str] = "table_watermark"
    unversioned_keys: ClassVar[Mapping[str, str]] = {
        **EventTimeMemory.unversioned_keys,
        "mark": "greatest",
        "unfed": "without_input",
    }

    greatest: int = MIN_WATERMARK
    without_input: bool = False


class WatermarkOperator(EventTimeOperator, TableOperator):
    """A subtask without input is idle: a topic with fewer partitions than subtasks must not hold event time back."""

    memory_type = WatermarkMemory

    def __init__(self, context: OperatorContext, spec: WatermarkSpec) -> None:
        TableOperator.__init__(self, context, spec.schema, spec.zone, spec)
        self._spec = spec
        self._projection = Projection([spec.expr])

    @property
    def idle_timeout(self) -> int | None:
        """Return the idle timeout of the table."""
        return self._spec.idle_timeout

    def current_watermark(self) -> int | None:
        """Return the greatest watermark so far; None if there is nothing to read."""
        memory = self.context.memory.part(WatermarkMemory)
        return None if memory.without_input and not self.has_records else memory.greatest

    def on_idle(self) -> None:
        """Record that there is nothing to read: a table source is idle if and only if it has no splits."""
        self.context.memory.part(WatermarkMemory).without_input = True

    def on_active(self) -> None:
        """Record that there is something to read."""
        self.context.memory.part(WatermarkMemory).without_input = False

    def on_watermark(self, watermark: int) -> None:
        """Handle a watermark of the input, which also means that the source is not idle any more."""
        self.context.memory.part(WatermarkMemory).without_input = False
        super().on_watermark(watermark)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Update the greatest watermark, and pass the rows on."""
        try:
            (watermarks,) = self._projection.columns(self.create_frame_of_batch(batch, len(self.output)))
        except EvaluationFailed as problem:
            raise self.fail(problem) from None
        greatest = pc.max(pc.cast(watermarks, pa.timestamp("ms", watermarks.type.tz), safe=False))
        if greatest.is_valid:
            watermark = scalar_value(pc.cast(greatest, pa.int64()))
            memory = self.context.memory.part(WatermarkMemory)
            memory.greatest = max(memory.greatest, watermark)
        self.has_records = True
        self.out.emit(batch)

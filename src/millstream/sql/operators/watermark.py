"""Event time of a table: the watermark follows an expression over its rows.

Promises: one watermark at the end of what an epoch brought; the input's own watermarks are passed over, but for the
last one, which ends the input.
Does not know: what the watermark is for."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from millstream.model.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.sql import types as t
from millstream.sql.columns import scalar_value
from millstream.sql.evaluate import EvaluationFailed, Projection
from millstream.sql.expressions import Expression
from millstream.sql.operators.base import TableOperator


@dataclass(frozen=True)
class WatermarkSpec(OperatorSpec):
    """The expression of the watermark, and after which silence the input counts as idle."""

    schema: t.RowType
    expr: Expression
    idle_timeout: int | None = None
    zone: str = "UTC"

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return WatermarkOperator(context, self)


class WatermarkOperator(TableOperator):
    """Memory: the greatest watermark computed so far, and when a row came last."""

    def __init__(self, context: OperatorContext, spec: WatermarkSpec) -> None:
        super().__init__(context, spec.schema, spec.zone)
        self._spec = spec
        self._projection = Projection([spec.expr])
        self._seen = False

    def begin_epoch(self) -> None:
        """Nothing was seen."""
        super().begin_epoch()
        self._seen = False
        self.context.memory.setdefault("active_at", self.context.now)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Look at the rows and pass them on."""
        array = batch.array()
        try:
            (marks,) = self._projection.columns(self.frame(array, len(self.output)))
        except EvaluationFailed as problem:
            raise self.fail(problem) from None
        found = pc.max(pc.cast(marks, pa.timestamp("ms", marks.type.tz), safe=False))
        if found.is_valid:
            mark = scalar_value(pc.cast(found, pa.int64()))
            self.context.memory["mark"] = max(self.context.memory.get("mark", MIN_WATERMARK), mark)
        self._seen = True
        self.out.emit(batch)

    def on_watermark(self, watermark: int) -> None:
        """Only the last one counts."""
        if watermark == MAX_WATERMARK:
            super().on_watermark(watermark)

    def on_idle(self) -> None:
        """Idleness is measured here."""

    def on_active(self) -> None:
        """As for idleness."""

    def end_epoch(self) -> None:
        """Emit the watermark, or say that nothing comes."""
        memory = self.context.memory
        if self._seen:
            memory["active_at"] = self.context.now
        if self.watermark == MAX_WATERMARK:
            return
        current = memory.get("mark", MIN_WATERMARK)
        timeout = self._spec.idle_timeout
        idle = timeout is not None and self.context.now - memory["active_at"] >= timeout
        if idle and not memory.get("idle_sent"):
            self.out.emit_watermark(None)
        elif not idle and (current > self.watermark or memory.get("idle_sent")):
            super().on_watermark(max(current, self.watermark))
        memory["idle_sent"] = idle

    def next_timer(self) -> int | None:
        """When this input counts as idle."""
        timeout = self._spec.idle_timeout
        if timeout is None or self.context.memory.get("idle_sent") or self.watermark == MAX_WATERMARK:
            return None
        return int(self.context.memory["active_at"]) + timeout

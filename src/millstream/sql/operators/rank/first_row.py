"""The first row of each key by event time, told once.

Promises: inserts only: a row is told when the watermark has passed it, so none that is earlier can come in time; rows
that are later than the watermark, and rows of keys that were told, are dropped; the late ones are counted.
Does not know: last rows; they are corrected as they come."""

from __future__ import annotations

from typing import Any

from millstream.runtime.batch import Batch
from millstream.runtime.operator import OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.runtime.timers import Timers
from millstream.sql.columns import INSERT
from millstream.sql.operators.base import TableOperator, key_of, rows_with_kinds
from millstream.sql.operators.expiry import expiry_of
from millstream.sql.operators.moments import millis_of
from millstream.state.store import ABSENT
from millstream.types.factory import Types


class FirstRowOperator(TableOperator):
    """State: by key, the row that waits, or True once it was told; a timer at the time of each row that waits."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._table = context.state.table("row/first", Types.PICKLED_BYTE_ARRAY())
        self._timers = Timers(context.state, "event")
        self._expiry = expiry_of(context, "row", spec.ttl)

    def begin_epoch(self) -> None:
        """Forget keys that have lived long enough."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.expired():
                if self._table.get(None, key) is True:
                    self._table.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Let the earliest row of each key wait."""
        spec, watermark = self._spec, self.watermark
        live, dirty = self._table.by_key()
        late = 0
        for row in rows_with_kinds(batch, spec.schema)[0]:
            time = millis_of(row[spec.time], spec.schema.types[spec.time])
            if time < watermark:
                late += 1
                continue
            key = key_of(row, spec.keys)
            held = live[key]
            if held is True:
                if self._expiry is None or self._expiry.alive(key):
                    continue
                held = ABSENT
            if held is not ABSENT:
                before = millis_of(held[spec.time], spec.schema.types[spec.time])
                if time >= before:
                    continue
                self._timers.delete(None, key, before)
            self._timers.register(None, key, time)
            live[key] = row
            dirty.add(key)
        if late:
            self.context.metrics.count(LATE_COUNT, late)

    def on_watermark(self, watermark: int) -> None:
        """Tell the rows whose time has come."""
        for _, _, key in self._timers.due(watermark):
            held = self._table.get(None, key)
            if held is ABSENT or held is True:
                continue
            self.put(INSERT, tuple(held))
            self._table.put(None, key, True)
            if self._expiry is not None:
                self._expiry.touch(key)
        self.flush()
        super().on_watermark(watermark)

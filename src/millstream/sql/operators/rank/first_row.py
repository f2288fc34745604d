"""Deduplication that keeps the first row of each key by event time.

Promises: insert-only output: a row is emitted when the watermark has passed it, so that no earlier row can arrive in
time. Late rows are dropped and counted; rows of keys that have emitted are dropped.
Does not know: deduplication that keeps the last row."""

from __future__ import annotations

from typing import Any

from millstream.runtime.batch import Batch
from millstream.runtime.operator import OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.runtime.timers import Timers
from millstream.sql.columns import INSERT
from millstream.sql.operators.base import TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.expiry import find_expiry
from millstream.sql.operators.timestamps import to_millis
from millstream.state.store import ABSENT
from millstream.types.factory import Types


class FirstRowOperator(TableOperator):
    """State: by key, the row that waits, or True when it was emitted; a timer at the time of each waiting row."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._table = context.state.table("row/first", Types.PICKLED_BYTE_ARRAY())
        self._timers = Timers(context.state, "event")
        self._expiry = find_expiry(context, "row", spec.ttl)

    def begin_epoch(self) -> None:
        """Delete expired keys."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.take_expired():
                if self._table.get(None, key) is True:
                    self._table.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep the earliest row of each key until the watermark passes it."""
        spec, watermark = self._spec, self.watermark
        live, dirty = self._table.by_key()
        late = 0
        for row in read_rows_with_kinds(batch, spec.schema)[0]:
            time = to_millis(row[spec.time], spec.schema.types[spec.time])
            if time < watermark:
                late += 1
                continue
            key = get_key(row, spec.keys)
            stored = live[key]
            if stored is True:
                if self._expiry is None or self._expiry.is_alive(key):
                    continue
                stored = ABSENT
            if stored is not ABSENT:
                before = to_millis(stored[spec.time], spec.schema.types[spec.time])
                if time >= before:
                    continue
                self._timers.delete(None, key, before)
            self._timers.register(None, key, time)
            live[key] = row
            dirty.add(key)
        if late:
            self.context.metrics.count(LATE_COUNT, late)

    def on_watermark(self, watermark: int) -> None:
        """Emit the rows that the watermark has passed."""
        for _, _, key in self._timers.due(watermark):
            stored = self._table.get(None, key)
            if stored is ABSENT or stored is True:
                continue
            self.put(INSERT, tuple(stored))
            self._table.put(None, key, True)
            if self._expiry is not None:
                self._expiry.touch(key)
        self.flush()
        super().on_watermark(watermark)

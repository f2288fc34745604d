"""Clean-up of OVER frames with a time range, after their rows have left the range of any later row.

Promises: Flink's times: a frame is deleted when time has passed its last row by one and a half times the range. A row
that arrives after that, or after a later row was emitted, is late.
Does not know: frames; the operator deletes the frames of the returned keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.runtime.operator import OperatorContext
from millstream.runtime.timers import Timers
from millstream.state.store import ABSENT
from millstream.types.factory import Types


class FrameCleanup:
    """State: by key, the time of the last emitted row and the clean-up time of the frame; `span` is in milliseconds."""

    def __init__(self, context: OperatorContext, span: int) -> None:
        self._span = span
        self._table = context.state.table("frames/passed", Types.LIST(Types.LONG()))
        self._timers = Timers(context.state, "frames")

    def _get_times_table(self, key: Any) -> list[int]:
        stored = self._table.get(None, key)
        return [MIN_WATERMARK, MIN_WATERMARK] if stored is ABSENT else list(stored)

    def get_emitted_up_to(self, key: Any) -> int:
        """Return the time of the last emitted row of a key."""
        return self._get_times_table(key)[0]

    def register(self, key: Any, time: int) -> None:
        """Register the clean-up of the frame of a row that waits for the watermark."""
        emitted, cleanup_time = self._get_times_table(key)
        if cleanup_time < time + self._span + 1:
            cleanup_time = time + self._span * 3 // 2 + 1
            self._timers.register(None, key, cleanup_time)
            self._table.put(None, key, [emitted, cleanup_time])

    def record_emitted(self, key: Any, time: int) -> None:
        """Record that rows of the key are emitted."""
        _, cleanup_time = self._get_times_table(key)
        self._table.put(None, key, [time, cleanup_time])

    def take_due(self, until: int) -> Iterator[Any]:
        """Iterate over the keys whose frames are to be deleted up to a time."""
        for time, _, key in self._timers.due(until):
            _, cleanup_time = self._get_times_table(key)
            if cleanup_time <= time:
                self._table.delete(None, key)
                yield key
            else:
                self._table.put(None, key, [time, cleanup_time])

"""Frames that reach back a span of time are forgotten once no row can reach them any more.

Promises: Flink's moments: a frame goes when time has passed its last row by half as much again as the span, and a row
that comes after such a moment, or after a later row has come out, is late.
Does not know: frames; who keeps them is told which keys to forget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.runtime.operator import OperatorContext
from millstream.runtime.timers import Timers
from millstream.state.store import ABSENT
from millstream.types.factory import Types


class Forgetting:
    """State: by key, up to when rows have come out and when its frame is to go; `span` is in milliseconds."""

    def __init__(self, context: OperatorContext, span: int) -> None:
        self._span = span
        self._table = context.state.table("frames/passed", Types.LIST(Types.LONG()))
        self._timers = Timers(context.state, "frames")

    def _held(self, key: Any) -> list[int]:
        found = self._table.get(None, key)
        return [MIN_WATERMARK, MIN_WATERMARK] if found is ABSENT else list(found)

    def passed(self, key: Any) -> int:
        """Up to which time rows of the key have come out."""
        return self._held(key)[0]

    def expect(self, key: Any, time: int) -> None:
        """A row of the key waits for its time."""
        passed, gone = self._held(key)
        if gone < time + self._span + 1:
            gone = time + self._span * 3 // 2 + 1
            self._timers.register(None, key, gone)
            self._table.put(None, key, [passed, gone])

    def process(self, key: Any, time: int) -> None:
        """Rows of the key come out."""
        _, gone = self._held(key)
        self._table.put(None, key, [time, gone])

    def due(self, until: int) -> Iterator[Any]:
        """The keys to forget by a time; for others that time has passed."""
        for moment, _, key in self._timers.due(until):
            _, gone = self._held(key)
            if gone <= moment:
                self._table.delete(None, key)
                yield key
            else:
                self._table.put(None, key, [moment, gone])

"""Collects cycles of garbage in workers, in a small share of their time.

Promises: a worker whose automatic collector is disabled still frees cycles, which only user code creates: records and
state are freed by reference counts.
Does not know: tasks."""

from __future__ import annotations

import gc
import time

_SHARE = 100  # one part in this many of the time is spent on garbage collection
_PAUSE = 10.0  # seconds between two collections, at least
_next_collection = 0.0


def collect_cycles() -> None:
    """Collect cycles, if the last collection was long enough ago."""
    global _next_collection
    started = time.monotonic()
    if started < _next_collection:
        return
    gc.unfreeze()
    gc.collect()
    ended = time.monotonic()
    _next_collection = ended + max(_PAUSE, _SHARE * (ended - started))
    gc.freeze()

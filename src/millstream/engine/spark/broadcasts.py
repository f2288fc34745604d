"""Broadcasts that end: their blocks in the JVM, and their files.

Promises: what was broadcast does not add up: all but the newest of those that ended are destroyed, with their files.
Does not know: what was broadcast.

PySpark keeps the value of a broadcast in a file, and the driver's JVM has a block that refers to it. A task of a job
that failed may still run, and put the block back into memory after it was removed. Without the file, the JVM could not
move that block to disk when memory is short, and every later task would fail for it. So a broadcast is destroyed only
after others have ended, when such tasks are gone."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from typing import Any

from py4j.protocol import Py4JError
from pyspark import Broadcast

KEPT = 16  # broadcasts that ended and are not destroyed yet

_ended: deque[Broadcast[Any]] = deque()


def end(broadcast: Broadcast[Any]) -> None:
    """Let a broadcast go that no job needs any more."""
    _ended.append(broadcast)
    while len(_ended) > KEPT:
        _destroy(_ended.popleft())


def _destroy(broadcast: Broadcast[Any]) -> None:
    with contextlib.suppress(Py4JError, OSError):  # its JVM may be gone
        broadcast.destroy()
    with contextlib.suppress(OSError):
        os.unlink(broadcast._path)

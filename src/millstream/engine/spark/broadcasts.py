"""Broadcasts that end.

Promises: executors let go of the value; a JVM that is gone is no error.
Does not know: what was broadcast.

PySpark keeps the value of a broadcast in a file of the driver until its context ends. The file must stay: the JVM may
still have a block that refers to it, and when memory is short it moves that block to disk. If the file were gone, that
would fail, and with it every task that needs memory."""

from __future__ import annotations

import contextlib
from typing import Any

from py4j.protocol import Py4JError
from pyspark import Broadcast


def end(broadcast: Broadcast[Any]) -> None:
    """Let a broadcast go that no job needs any more."""
    with contextlib.suppress(Py4JError, OSError):
        broadcast.unpersist()

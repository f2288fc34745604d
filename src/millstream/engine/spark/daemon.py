"""PySpark's worker daemon, for workers that keep their tasks between epochs.

Promises: a worker whose socket Spark has closed, because it was idle or because Spark stops, ends without a traceback
on the user's terminal. A worker that replaces a dead one is forked with the engine's modules loaded: importing them
would take most of the time of a recovery. PySpark runs the cyclic garbage collector after every task (25 ms for the
modules alone, more with state); here it runs in a small share of the worker's time. Freed memory of columns is kept for
later columns: getting it from the system for every column took up to a quarter of the time of a query. Everything else
is PySpark's.
Does not know: tasks. PySpark's worker itself reports to Spark what a task raises."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import socket
import time

from pyspark import daemon

from millstream.engine.spark import epoch_job

_serve = daemon.worker
_SHARE = 100  # one part in this many of the time is spent on garbage collection
_PAUSE = 10.0  # seconds between two collections, at least
_next_collection = 0.0

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # numbers of parameters of mallopt
_LARGEST_COLUMN = 32 << 20  # bytes; the largest value that the C library accepts
_MAX_UNUSED = 256 << 20  # bytes that a worker keeps


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Serve one task; return a number other than zero if this worker must end."""
    gc.disable()
    try:
        code = _serve(sock, authenticated)
    except BrokenPipeError:  # Spark has closed the connection
        return 1
    _collect_cycles()
    gc.freeze()  # PySpark's own collection, which comes next, finds nothing to do
    return code


def _collect_cycles() -> None:
    """Collect cycles, which only user code creates; records and state are freed by reference counts."""
    global _next_collection
    started = time.monotonic()
    if started < _next_collection:
        return
    gc.unfreeze()
    gc.collect()
    ended = time.monotonic()
    _next_collection = ended + max(_PAUSE, _SHARE * (ended - started))


def _keep_memory() -> None:
    """Keep freed memory in the worker, within limits, if the C library supports it."""
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGEST_COLUMN)
        library.mallopt(_TRIM_THRESHOLD, _MAX_UNUSED)


if __name__ == "__main__":
    assert epoch_job  # imported for the workers
    _keep_memory()
    gc.freeze()
    daemon.worker = worker
    daemon.manager()

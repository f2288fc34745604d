"""PySpark's worker daemon, for workers that keep their tasks between epochs.

Promises: a worker whose socket Spark has closed, because it was idle or because Spark stops, ends without a traceback
on the user's terminal. A worker that takes the place of a dead one has the engine's modules from the moment it is
forked: importing them would be most of the time of a recovery. What lives on from task to task is not searched for
cycles after each of them, as PySpark does (25 ms a task for the modules alone, more with state), but in a small share
of the worker's time. Memory of columns that were let go of is kept for the next ones: getting it from the system again
for every column took up to a quarter of the time of a query. Everything else is PySpark's.
Does not know: tasks. What a task raises is told to Spark by PySpark's worker itself and never comes here."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import socket
import time

from pyspark import daemon

from millstream.engine.spark import epoch_job

_serve = daemon.worker
_SHARE = 100  # one part in so many of the time goes into looking for cycles
_PAUSE = 10.0  # seconds between two searches, at least
_next_search = 0.0

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # as the C library numbers what can be set
_LARGEST_COLUMN = 32 << 20  # bytes; the C library takes no more
_MOST_UNUSED = 256 << 20  # bytes that a worker keeps


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Serve one task; not zero when this worker is to end."""
    gc.disable()
    try:
        code = _serve(sock, authenticated)
    except BrokenPipeError:  # nobody is left to be told anything
        return 1
    _search_for_cycles()
    gc.freeze()  # PySpark's own collection, which comes next, finds nothing to do
    return code


def _search_for_cycles() -> None:
    """Records and state die by reference count; what cycles user code makes are collected now and then."""
    global _next_search
    started = time.monotonic()
    if started < _next_search:
        return
    gc.unfreeze()
    gc.collect()
    ended = time.monotonic()
    _next_search = ended + max(_PAUSE, _SHARE * (ended - started))


def _keep_memory() -> None:
    """What a worker lets go of stays with it, within limits; where the C library can be told so."""
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGEST_COLUMN)
        library.mallopt(_TRIM_THRESHOLD, _MOST_UNUSED)


if __name__ == "__main__":
    assert epoch_job  # imported for the workers
    _keep_memory()
    gc.freeze()
    daemon.worker = worker
    daemon.manager()

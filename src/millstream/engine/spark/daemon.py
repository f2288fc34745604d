"""PySpark's worker daemon, for workers that keep their tasks between epochs.

Promises: a worker whose socket Spark has closed, because it was idle or because Spark stops, ends without a traceback
on the user's terminal. A worker that replaces a dead one is forked with the engine's modules loaded: importing them
would take most of the time of a recovery. PySpark runs the cyclic garbage collector after every task (25 ms for the
modules alone, more with state); here it runs in a small share of the worker's time. Freed memory of columns is kept for
later columns: getting it from the system for every column took up to a quarter of the time of a query. The daemon of a
program of a session cluster ends when it has had no workers for a while; Spark starts another one if it needs it.
Everything else is PySpark's.
Does not know: tasks. PySpark's worker itself reports to Spark what a task raises."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket

from pyspark import daemon

from millstream.engine.cycles import collect_cycles
from millstream.engine.spark import epoch_job
from millstream.engine.spark.resident import slot
from millstream.engine.spark.shared import PROGRAM

_serve = daemon.worker
_IDLE_CHECK = 60.0  # seconds between two checks of the number of workers

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
    collect_cycles()
    gc.freeze()  # PySpark's own collection, which comes next, finds nothing to do
    return code


def _keep_memory() -> None:
    """Keep freed memory in the worker, within limits, if the C library supports it."""
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGEST_COLUMN)
        library.mallopt(_TRIM_THRESHOLD, _MAX_UNUSED)


def _end_when_idle() -> None:
    """End this process when it has had no workers for a while. Spark keeps daemons for as long as it runs, and each
    program of a session cluster has daemons of its own."""
    is_idle = False

    def check(*_: object) -> None:
        nonlocal is_idle
        try:
            os.waitpid(-1, os.WNOHANG)
            is_idle = False
        except ChildProcessError:
            if is_idle:
                os._exit(0)
            is_idle = True

    signal.signal(signal.SIGALRM, check)
    signal.setitimer(signal.ITIMER_REAL, _IDLE_CHECK, _IDLE_CHECK)  # workers do not inherit the timer


if __name__ == "__main__":
    assert epoch_job, slot  # imported for the workers
    if PROGRAM in os.environ:
        _end_when_idle()
    _keep_memory()
    gc.freeze()
    daemon.worker = worker
    daemon.manager()

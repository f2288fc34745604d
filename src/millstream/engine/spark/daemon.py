"""PySpark's worker daemon, for workers that Spark lets go.

Promises: a worker whose socket Spark has closed, because it was idle or because Spark stops, ends without a traceback
on the user's terminal. Everything else is PySpark's.
Does not know: tasks. What a task raises is told to Spark by PySpark's worker itself and never comes here."""

from __future__ import annotations

import socket

from pyspark import daemon

_serve = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Serve one task; not zero when this worker is to end."""
    try:
        return _serve(sock, authenticated)
    except BrokenPipeError:  # nobody is left to be told anything
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()

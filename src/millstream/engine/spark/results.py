"""Transfers results of Spark jobs from the JVM to this process.

Promises: the JVM keeps nothing of a result once it was fetched. Results are sent over TCP on the loopback interface,
with Spark's secret, which is Spark's default; Python workers continue to use Unix domain sockets.
Does not know: what results are.

With Unix domain sockets, Spark creates a socket for each result and has the JVM delete its file on exit: the JVM would
keep one more path with every epoch (`File.deleteOnExit`). A JVM decides once which type of socket serves results: when
it serves the first result, by the settings at that time. Before Spark 4.1 there is only TCP."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

_UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
_served_over_tcp: list[Any] = []  # the gateway of the JVM that serves results over TCP


def serve_over_tcp(context: SparkContext) -> None:
    """Make this JVM serve results over TCP, unless it has served one already."""
    gateway: Any = SparkContext._gateway
    if _served_over_tcp == [gateway]:
        return
    with suppress(AttributeError, Py4JError):  # the settings of a running Spark are not public
        settings = context._jsc.sc().conf()  # those in use, not a copy
        before = settings.get(_UNIX_SOCKETS, "false")
        settings.set(_UNIX_SOCKETS, "false")
        try:
            context.emptyRDD().collect()
        finally:
            settings.set(_UNIX_SOCKETS, before)
    _served_over_tcp[:] = [gateway]

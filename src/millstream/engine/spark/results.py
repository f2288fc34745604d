"""Transfers results of Spark jobs from the JVM to this process.

Promises: the JVM keeps nothing of a result once it was fetched. Results are sent over TCP on the loopback interface,
with Spark's secret, which is Spark's default; Python workers continue to use Unix domain sockets.
Does not know: what results are.

With Unix domain sockets, Spark creates a socket for each result and has the JVM delete its file on exit: the JVM would
keep one more path with every epoch (`File.deleteOnExit`). A JVM decides once which type of socket serves results: when
it serves the first result, by the settings at that time."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.serializers import NoOpSerializer
from pyspark.util import _load_from_socket

_UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
_frames: Any = NoOpSerializer
_served_over_tcp: list[Any] = []  # the gateway of the JVM that serves results over TCP


def serve_over_tcp(context: SparkContext) -> None:
    """Make this JVM serve results over TCP, unless it has served one already."""
    gateway: Any = SparkContext._gateway
    if _served_over_tcp == [gateway]:
        return
    jvm: Any = context._jvm
    settings = context._jsc.sc().conf()  # the settings of the running Spark, not a copy
    before = settings.get(_UNIX_SOCKETS, "false")
    nothing = getattr(getattr(jvm.scala.collection.immutable, "Set$"), "MODULE$").empty().iterator()
    settings.set(_UNIX_SOCKETS, "false")
    try:
        with _load_from_socket(jvm.PythonRDD.serveIterator(nothing, "first result"), _frames()) as stream:
            list(stream)
    finally:
        settings.set(_UNIX_SOCKETS, before)
    _served_over_tcp[:] = [gateway]

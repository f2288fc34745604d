"""How the results of Spark jobs come from the JVM to this process.

Promises: the JVM keeps nothing of a result once it was fetched. Results travel over TCP on the loopback interface, with
Spark's secret, as they do by default; Python workers go on using Unix domain sockets.
Does not know: what results are.

Spark makes a Unix domain socket for each result and has the JVM delete its file on exit: the JVM would remember one
more path with every epoch (`File.deleteOnExit`). Which kind of socket serves results is decided once in a JVM, when the
first result is served, by the settings of that moment."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.serializers import NoOpSerializer
from pyspark.util import _load_from_socket

_UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
_frames: Any = NoOpSerializer
_decided: list[Any] = []  # the gateway of the JVM in which it is decided


def serve_over_tcp(context: SparkContext) -> None:
    """Have results of this JVM served over TCP, unless it has served one already."""
    gateway: Any = SparkContext._gateway
    if _decided == [gateway]:
        return
    jvm: Any = context._jvm
    settings = context._jsc.sc().conf()  # those of the running Spark, not a copy
    before = settings.get(_UNIX_SOCKETS, "false")
    nothing = getattr(getattr(jvm.scala.collection.immutable, "Set$"), "MODULE$").empty().iterator()
    settings.set(_UNIX_SOCKETS, "false")
    try:
        with _load_from_socket(jvm.PythonRDD.serveIterator(nothing, "first result"), _frames()) as stream:
            list(stream)
    finally:
        settings.set(_UNIX_SOCKETS, before)
    _decided[:] = [gateway]

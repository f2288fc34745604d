"""One Spark for several Python processes: each attaches to the JVM of the process that started Spark.

Promises: an attached process has its own accumulators and Python workers, and a fair share of the cores; when it stops
its context, it detaches, and Spark runs on. Its end leaves nothing behind but idle workers, which end by themselves.
Does not know: why processes share a Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from pyspark import SparkConf, SparkContext

PROGRAM = "MILLSTREAM_PROGRAM"  # the environment variable that tells apart the processes, and their workers
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"  # read by PySpark


def list_gateway_variables(context: Any) -> dict[str, str]:
    """Return the environment variables with which another process attaches to the JVM of a context."""
    parameters = context._gateway.gateway_parameters
    return {_PORT: str(parameters.port), _SECRET: str(parameters.auth_token)}


def attach(module_paths: Iterable[str], python: str | None) -> SparkContext | None:
    """Return the Spark that runs in the JVM which the environment names; None if there is no such JVM or Spark.
    `python` is the interpreter of tasks; by default, that of Spark or of this process.

    `spark-submit` names a JVM in which no Spark runs yet."""
    if _PORT not in os.environ:
        return None
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    active = getattr(getattr(jvm.org.apache.spark, "SparkContext$"), "MODULE$").getActive()
    if active.isEmpty():
        return None
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(active.get())
    context = SparkContext(conf=SparkConf(_jconf=java.getConf()), jsc=java)
    context.pythonExec = python or java.getConf().get("spark.pyspark.python", sys.executable)
    # Spark reuses a Python worker for tasks with the same environment only.
    context.environment[PROGRAM] = os.environ.get(PROGRAM, str(os.getpid()))
    context.environment["PYTHONPATH"] = os.pathsep.join(module_paths)
    return context


def is_shared(context: Any) -> bool:
    """Whether this process is attached to a context that another process started."""
    return PROGRAM in context.environment


def use_own_pool(context: Any) -> None:
    """Run the jobs of this thread in the scheduler pool of an attached process; does nothing in other processes."""
    if is_shared(context):
        context.setLocalProperty("spark.scheduler.pool", context.environment[PROGRAM])

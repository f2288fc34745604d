"""Converts errors of Spark to errors of millstream.

Promises: a failure of Spark is one sentence, with the reason that its stack trace hides; a Python error of a query is
the query's own failure.
Does not know: which request to Spark failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from millstream.engine.spark.catalyst import create_query_failure
from millstream.errors import ExternalError

T = TypeVar("T")

_MEMORY_SYMPTOMS = (
    "Python worker exited unexpectedly",
    "OutOfMemoryError",
    "MemoryError",
    "ExecutorLostFailure",
    "exceeding memory limits",
    "spark.driver.maxResultSize",
)


_MAX_CAUSES = 20  # a chain of causes may be a cycle


class SparkFailed(ExternalError):
    """Spark could not finish an epoch."""

    hint = "see the Spark log; the job restarts from its last checkpoint if its restart strategy allows"

    @property
    def out_of_memory(self) -> bool:
        """Whether a lack of memory may be the reason: processes that the kernel killed for it only disappear."""
        return any(symptom in self.message for symptom in _MEMORY_SYMPTOMS)


def translate_errors(work: Callable[[], T]) -> T:
    """Call `work`; an error of PySpark is raised as an error of ours."""
    try:
        return work()
    except (Py4JError, PySparkException, OSError, EOFError) as problem:
        broken = f"the connection to Spark broke: {problem}"
        reason = _find_reason(problem) if isinstance(problem, Py4JJavaError) else broken
        raise (create_query_failure(problem) or SparkFailed(reason)) from None


def _find_reason(problem: Any) -> str:
    """Return the line of a Java stack trace that says what happened."""
    lines = [line.strip() for line in str(problem.java_exception).splitlines() if line.strip()]
    python = [
        line for line in lines if line.startswith(("Python worker exited", "org.apache.spark.SparkException: Python"))
    ]
    first = next((line for line in lines if "SparkException" in line or "Job" in line), lines[0] if lines else "")
    reason = (python[0] if python else first).removeprefix("org.apache.spark.SparkException: ")[:500]
    return f"{reason} {_find_root_cause(problem.java_exception)}".strip() if reason.endswith(":") else reason


def _find_root_cause(exception: Any) -> str:
    """Return the text of the last exception of a chain: the others say only that something went wrong."""
    try:
        for _ in range(_MAX_CAUSES):
            cause = exception.getCause()
            if cause is None:
                break
            exception = cause
        return str(exception.toString()).strip().splitlines()[0][:500]
    except (Py4JError, OSError):  # the JVM has ended meanwhile
        return "its cause is not known"

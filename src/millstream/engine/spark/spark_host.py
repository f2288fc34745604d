"""A Spark that this process starts for programs in other processes.

Promises: programs share the cores fairly; a Spark that is lost is replaced by `ensure`, which returns what a program
needs to attach to it.
Does not know: programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.engine.spark.health import SparkLost, find_context_problem
from millstream.engine.spark.placement import count_running_slots
from millstream.engine.spark.session import spark_context, stop
from millstream.engine.spark.shared import list_gateway_variables

_ANSWER_SECONDS = 50.0


class SparkHost:
    """The Spark of a session cluster."""

    def __init__(self, settings: Mapping[str, str], slots: int | None) -> None:
        """`slots` is how many the programs share; by default, as many as tasks can run at once."""
        self._settings = {"spark.scheduler.mode": "FAIR", **settings}
        self._wanted = slots
        self._context: Any = None

    def ensure(self) -> dict[str, str]:
        """Start Spark if it does not run; return the environment variables for a process that attaches to it."""
        self._context = spark_context(self._settings, self._wanted or 1, _ANSWER_SECONDS)
        return list_gateway_variables(self._context)

    def slots(self) -> int:
        """Return how many slots the programs share."""
        return self._wanted or max(1, count_running_slots(self._context))

    def find_problem(self) -> SparkLost | None:
        """Return why Spark cannot be used; None if it can."""
        return find_context_problem(self._context, self._context._gateway, _ANSWER_SECONDS)

    def stop(self) -> None:
        """Stop Spark and its JVM."""
        stop()

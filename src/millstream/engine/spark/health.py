"""Health checks of a Spark, with a time limit.

Promises: a JVM that has ended or does not answer, a stopped context, and a standalone master that does not know the
application any more are each reported in one sentence; a Spark that is only busy is not reported.
Does not know: who started the Spark, and what to do about a problem."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError

from millstream.engine.spark.calls import call_within
from millstream.engine.spark.settings import is_local
from millstream.errors import ExternalError


class SparkLost(ExternalError):
    """The Spark of an engine is gone, or does not answer. `jvm`: whether this is true of its JVM, or only of the
    context."""

    hint = "if its restart strategy allows, the job continues from its last checkpoint with a new Spark"

    def __init__(self, reason: str, *, jvm: bool) -> None:
        self.reason, self.jvm = reason, jvm
        super().__init__(f"spark is lost: {reason}")


def find_jvm_problem(gateway: Any, seconds: float) -> SparkLost | None:
    """Return why the JVM behind a gateway cannot be used; None if it answers within this time."""
    process = getattr(gateway, "proc", None)
    if process is not None and (code := process.poll()) is not None:
        return SparkLost(f"its JVM has ended ({_describe_exit(code)})", jvm=True)
    return _ask(lambda: gateway.jvm.System.currentTimeMillis(), seconds)[1]


def find_context_problem(context: Any, gateway: Any, seconds: float) -> SparkLost | None:
    """Return why a context cannot be used; None if it answers within this time and was not stopped."""
    problem = find_jvm_problem(gateway, seconds)
    if problem is not None:
        return problem
    java = context._jsc
    stopped, problem = (True, None) if java is None else _ask(lambda: java.sc().isStopped(), seconds)
    if problem is not None:
        return problem
    if stopped:
        return SparkLost("its context was stopped", jvm=False)
    return _block_problem(java, seconds) if is_local(str(context.master)) else None


def _block_problem(java: Any, seconds: float) -> SparkLost | None:
    """Return whether a local Spark has lost its block manager. In local mode, Spark that misses a shuffle file removes
    its only executor's block manager for good: from then on each task with a large result fails."""
    managers, problem = _ask(lambda: int(java.sc().getExecutorMemoryStatus().size()), seconds)
    if problem is None and not managers:
        return SparkLost("it has lost the blocks of its only executor, after shuffle files were missing", jvm=False)
    return problem


class Watch:
    """Checks one context repeatedly."""

    def __init__(self, context: Any, gateway: Any, seconds: float) -> None:
        self._context, self._gateway, self._seconds = context, gateway, seconds
        self._standalone = str(context.master).startswith("spark://")
        self._had_executors = False
        self._missing_since: float | None = None

    def find_problem(self) -> SparkLost | None:
        """Return why the context is lost; None if it is not."""
        problem = find_context_problem(self._context, self._gateway, self._seconds)
        return self._find_executor_problem() if problem is None and self._standalone else problem

    def note_success(self) -> None:
        """Note that an epoch has succeeded, so there were executors."""
        self._had_executors, self._missing_since = True, None

    def _find_executor_problem(self) -> SparkLost | None:
        """Return whether executors are missing: a restarted standalone master starts none for applications it lost."""
        java = self._context._jsc
        count, problem = _ask(lambda: int(java.sc().getExecutorMemoryStatus().size()) - 1, self._seconds)
        if problem is not None:
            return problem
        if count:
            self.note_success()
            return None
        now = time.monotonic()
        since = self._missing_since = self._missing_since or now
        if self._had_executors and now - since >= self._seconds:
            reason = f"it has had no executor for {self._seconds:g} s; its master may have been lost"
            return SparkLost(reason, jvm=False)
        return None


def _ask(question: Callable[[], Any], seconds: float) -> tuple[Any, SparkLost | None]:
    try:
        return call_within(question, seconds), None
    except TimeoutError:
        return None, SparkLost(f"its JVM has not answered for {seconds:g} s", jvm=True)
    except (Py4JError, OSError, AttributeError) as problem:  # AttributeError: another thread has closed the context
        return None, SparkLost(f"its JVM cannot be reached: {str(problem) or type(problem).__name__}", jvm=True)


def _describe_exit(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"

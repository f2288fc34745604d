"""Whether a Spark can still be used, found out without waiting for it for ever.

Promises: a JVM that has ended or does not answer, a context that was stopped, and a standalone master that has
forgotten the application are told apart from a Spark that is only busy, each in one sentence.
Does not know: who started the Spark, and what is to be done."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError

from millstream.engine.spark.calls import answer
from millstream.engine.spark.settings import is_local
from millstream.errors import ExternalError


class SparkLost(ExternalError):
    """The Spark that an engine used is gone, or does not answer. `jvm`: its JVM is; else only the context in it."""

    hint = "the job goes on from its last checkpoint, with a new Spark, if its restart strategy allows"

    def __init__(self, reason: str, *, jvm: bool) -> None:
        self.reason, self.jvm = reason, jvm
        super().__init__(f"spark is lost: {reason}")


def jvm_problem(gateway: Any, seconds: float) -> SparkLost | None:
    """Why the JVM behind a gateway cannot be used; None when it answers within this time."""
    process = getattr(gateway, "proc", None)
    if process is not None and (code := process.poll()) is not None:
        return SparkLost(f"its JVM has ended ({_told(code)})", jvm=True)
    return _asked(lambda: gateway.jvm.System.currentTimeMillis(), seconds)[1]


def context_problem(context: Any, gateway: Any, seconds: float) -> SparkLost | None:
    """Why a context cannot be used; None when it answers within this time and was not stopped."""
    problem = jvm_problem(gateway, seconds)
    if problem is not None:
        return problem
    java = context._jsc
    stopped, problem = (True, None) if java is None else _asked(lambda: java.sc().isStopped(), seconds)
    if problem is not None:
        return problem
    if stopped:
        return SparkLost("its context was stopped", jvm=False)
    return _block_problem(java, seconds) if is_local(str(context.master)) else None


def _block_problem(java: Any, seconds: float) -> SparkLost | None:
    """In local mode, Spark that lost a shuffle file forgets all blocks of its only executor, for good: each task with a
    large result fails from then on."""
    managers, problem = _asked(lambda: int(java.sc().getExecutorMemoryStatus().size()), seconds)
    if problem is None and not managers:
        return SparkLost("it has lost the blocks of its only executor, after shuffle files were missing", jvm=False)
    return problem


class Watch:
    """Looks at one context again and again."""

    def __init__(self, context: Any, gateway: Any, seconds: float) -> None:
        self._context, self._gateway, self._seconds = context, gateway, seconds
        self._standalone = str(context.master).startswith("spark://")
        self._had_executors = False
        self._missing_since: float | None = None

    def look(self) -> SparkLost | None:
        """Why the context is lost; None while it is not."""
        problem = context_problem(self._context, self._gateway, self._seconds)
        return self._executor_problem() if problem is None and self._standalone else problem

    def worked(self) -> None:
        """An epoch has ended well, so there were executors."""
        self._had_executors, self._missing_since = True, None

    def _executor_problem(self) -> SparkLost | None:
        """A standalone master that was restarted has executors for nobody it does not know, and says nothing."""
        java = self._context._jsc
        count, problem = _asked(lambda: int(java.sc().getExecutorMemoryStatus().size()) - 1, self._seconds)
        if problem is not None:
            return problem
        if count:
            self.worked()
            return None
        now = time.monotonic()
        since = self._missing_since = self._missing_since or now
        if self._had_executors and now - since >= self._seconds:
            reason = f"it has had no executor for {self._seconds:g} s; its master may have been lost"
            return SparkLost(reason, jvm=False)
        return None


def _asked(question: Callable[[], Any], seconds: float) -> tuple[Any, SparkLost | None]:
    try:
        return answer(question, seconds), None
    except TimeoutError:
        return None, SparkLost(f"its JVM has not answered for {seconds:g} s", jvm=True)
    except (Py4JError, OSError, AttributeError) as problem:  # an attribute: of what another thread has let go of
        return None, SparkLost(f"its JVM cannot be reached: {str(problem) or type(problem).__name__}", jvm=True)


def _told(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"

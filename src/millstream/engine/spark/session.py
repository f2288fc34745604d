"""The Spark of this process: found, or started with the settings the engine needs.

Promises: at most one Spark per process; one that is lost is replaced, unless the program made it itself; the
environment of the process is afterwards as it was, but for two settings that PySpark notes there for itself; nothing of
Spark's log reaches the terminal unless asked for; `stop` and `kill` end what was started here, JVM included, and
nothing else.
Does not know: epochs, blocks or jobs."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import PySparkRuntimeError

from millstream.config.secrets import shown
from millstream.engine.contract import EngineGone
from millstream.engine.spark.calls import attempt
from millstream.engine.spark.health import SparkLost, context_problem, jvm_problem
from millstream.engine.spark.java import find_java
from millstream.engine.spark.results import serve_over_tcp
from millstream.engine.spark.settings import ALONE, is_local, refuse_unusable, resolve
from millstream.errors import ExternalError
from millstream.options import SPARK_MASTER

_log = logging.getLogger("millstream.spark")

_STOP_SECONDS = 20
_CONNECT_SECONDS = 5
_LOCK_SECONDS = 30
_GATEWAY_SECONDS = 5
_ANSWER_SECONDS = 50.0


class SparkNotStarted(ExternalError):
    """Spark did not start; `reason` is what it said."""

    def __init__(self, master: str, reason: str) -> None:
        self.master, self.reason = master, reason
        super().__init__(
            f"spark did not start on {master}: {reason}",
            hint=f"is {SPARK_MASTER.key} right and reachable? spark.log.level=WARN shows Spark's own log",
        )


class SparkNotOurs(EngineGone):
    """The Spark of the program is lost, and the program made it itself."""

    hint = (
        f"let millstream start Spark instead of the program, or set {SPARK_MASTER.key}: then a lost Spark is replaced "
        "by one on that master"
    )

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the program's own Spark is lost and cannot be started again from here: {reason}")


@dataclass(frozen=True, slots=True)
class Started:
    """A Spark that this module started, and how long that took."""

    context: SparkContext
    gateway: Any
    seconds: float


class StopOnce:
    """Stops a context once, whichever thread is first; the others wait for it.

    With PySpark's own `stop`, one of two threads fails, and the slower one makes PySpark forget the context that was
    started after the first. A caller that has waited too long for a stop that hangs returns."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._stopped = False

    def __call__(self) -> None:
        """Stop the context, unless that is done."""
        if self._stopped:
            return
        if not self._lock.acquire(timeout=_STOP_SECONDS):
            _log.warning("Spark has not stopped within %s s; the program goes on without waiting for it", _STOP_SECONDS)
            return
        try:
            if not self._stopped:
                SparkContext.stop(self._context)
                self._stopped = True
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Have PySpark know nothing of a context whose JVM cannot be asked any more."""
        self._stopped = True
        self._context._jsc = None  # the JVM cannot be asked to stop the context
        SparkContext.stop(self._context)


_lock = threading.Lock()
_started: Started | None = None
_starting_jvm: subprocess.Popen[bytes] | None = None


def spark_context(
    configuration: Mapping[str, str],
    slots: int,
    answer_seconds: float = _ANSWER_SECONDS,
    lost: Mapping[SparkContext, SparkLost] = MappingProxyType({}),
) -> SparkContext:
    """The Spark that already runs in this process, else one started from `configuration`.

    A context that the program made itself is taken as it is, unless a setting of it cannot work here. One that was
    stopped, whose JVM is gone or has no answer within `answer_seconds`, or that is known to be `lost`, is replaced."""
    global _started
    with _locked(configuration):
        active = SparkContext._active_spark_context
        if active is not None:
            problem = context_problem(active, SparkContext._gateway, answer_seconds) or lost.get(active)
            if problem is None:
                refuse_unusable(dict(active.getConf().getAll()))
                _stop_once(active)
                serve_over_tcp(active)
                return active
            _let_go(active, problem, configuration)
        _forget_lost_gateway(answer_seconds)
        settings = resolve({**_submitted(), **configuration}, slots=slots, memory=_machine_memory())
        before = time.monotonic()
        context = _start(settings)
        _stop_once(context)
        serve_over_tcp(context)
        _started = Started(context, SparkContext._gateway, time.monotonic() - before)
        return context


def warm_up(configuration: Mapping[str, str]) -> None:
    """Have the JVM that `spark_context` will need, and in it the classes: most of the time of Spark's start is theirs.

    A Spark of this process alone is started in it and stopped again; where there is a JVM already, nothing is done."""
    with _locked(configuration):
        _forget_lost_gateway(_ANSWER_SECONDS)
        if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
            return
        settings = resolve(configuration, slots=1, memory=_machine_memory())
        with _starting(settings):
            _start_jvm(settings)
        with _starting({**settings, **ALONE}) as conf:
            SparkContext(conf=conf).stop()


def start_seconds() -> float | None:
    """How long Spark took to start; None when it was not started here."""
    return None if _started is None else _started.seconds


def stop() -> None:
    """End the Spark that `spark_context` started, and its JVM. One that the program made itself stays."""
    global _started
    with _lock:
        if _started is None:
            return
        context, gateway = _started.context, _started.gateway
        attempt("stop Spark", context.stop, _STOP_SECONDS)
        _started = None
        _forget(context, gateway)
        process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
        if process is not None:
            _end(process)


def kill(context: SparkContext | None) -> None:
    """Kill the JVM of a context that was started here: calls that wait for it fail then, and the next `spark_context`
    starts another one. From any thread."""
    started = _started
    if started is not None and started.context is context:
        _kill(started.gateway)


def _kill(gateway: Any) -> None:
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is not None:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GATEWAY_SECONDS)


def kill_starting() -> None:
    """Kill the JVM that is being started: whoever waits for it gets an error. From any thread."""
    if (starting := _starting_jvm) is not None:
        starting.kill()


def _end(process: subprocess.Popen[bytes]) -> None:
    """The JVM ends when its standard input does; one that does not is killed."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _let_go(context: SparkContext, problem: SparkLost, configuration: Mapping[str, str]) -> None:
    """Make room for another Spark in place of one that is lost; raise if it is not ours to replace."""
    global _started
    gateway = SparkContext._gateway
    ours = _started is not None and _started.context is context
    if (not ours and SPARK_MASTER.key not in configuration) or (problem.jvm and "PYSPARK_GATEWAY_PORT" in os.environ):
        raise SparkNotOurs(problem.reason)
    _log.warning("another Spark is started: %s", problem.reason)
    if problem.jvm or not attempt("stop Spark", context.stop, _STOP_SECONDS):
        kill(context)
        _forget(context, gateway if ours else None)
    if ours:
        _started = None


def _forget_lost_gateway(seconds: float) -> None:
    """A JVM without a context that is gone, or does not answer, is replaced."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    problem = jvm_problem(gateway, seconds)
    if problem is None:
        return
    _log.warning("another JVM is started: %s", problem.reason)
    _kill(gateway)
    _forget(None, gateway)


def _forget(context: SparkContext | None, gateway: Any) -> None:
    """Have PySpark know nothing of a Spark; a gateway of ours is shut down with it."""
    if context is not None:
        attempt("forget a lost Spark", _stop_once(context).forget, _GATEWAY_SECONDS)
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is not None:
        attempt("shut the gateway down", gateway.shutdown, _GATEWAY_SECONDS)


@contextmanager
def _locked(configuration: Mapping[str, str]) -> Iterator[None]:
    """Alone with the Spark of this process, or an error: a start that hangs may keep the others waiting."""
    if not _lock.acquire(timeout=_LOCK_SECONDS):
        master = configuration.get(SPARK_MASTER.key, "its master")
        raise SparkNotStarted(master, f"another start has been under way for more than {_LOCK_SECONDS} s")
    try:
        yield
    finally:
        _lock.release()


def _submitted() -> dict[str, str]:
    """What `spark-submit` was told, when it runs this program: its JVM is up already and knows."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf(loadDefaults=True, _jvm=SparkContext._jvm).getAll())


def _start(settings: Mapping[str, str]) -> SparkContext:
    _require_reachable(settings["spark.master"])
    with _starting(settings) as conf:
        _start_jvm(settings)
        context = SparkContext(conf=conf)
    server: Any = context._accumulatorServer
    server.handle_error = _note_error
    return context


def _stop_once(context: Any) -> StopOnce:
    """The program and the engine may both stop a context, at the same time."""
    if not isinstance(context.stop, StopOnce):
        context.stop = StopOnce(context)
    return cast(StopOnce, context.stop)


def _note_error(*_: object) -> None:
    """In place of a traceback on the terminal when the JVM is gone."""
    _log.debug("the connection for Spark's accumulators broke", exc_info=True)


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM, unless it runs, without secrets: its command line, which every user of the machine can read, has
    the settings it is started with. The context gives it the secrets over its own connection."""
    public = [(key, value) for key, value in settings.items() if shown(key, value) == value]
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(public))


@contextmanager
def _starting(settings: Mapping[str, str]) -> Iterator[SparkConf]:
    """The environment in which to start, and what goes wrong in one sentence."""
    with _environment(_variables(settings)), _noting_the_jvm():
        try:
            yield SparkConf(loadDefaults=False).setAll(list(settings.items()))
        except Py4JJavaError as error:
            reason = str(error.java_exception.getMessage())
        except (PySparkRuntimeError, Py4JError, OSError) as error:
            reason = str(error) or type(error).__name__
        else:
            return
    raise SparkNotStarted(settings["spark.master"], reason.strip().splitlines()[0])


@contextmanager
def _noting_the_jvm() -> Iterator[None]:
    """Know the JVM that PySpark starts from its first moment: it waits for it without a deadline."""
    global _starting_jvm
    gateways: Any = java_gateway
    popen = gateways.Popen

    def start(*arguments: Any, **settings: Any) -> subprocess.Popen[bytes]:
        global _starting_jvm
        _starting_jvm = popen(*arguments, **settings)
        return _starting_jvm

    gateways.Popen = start
    try:
        yield
    finally:
        gateways.Popen = popen
        _starting_jvm = None


def _require_reachable(master: str) -> None:
    """A standalone master that nobody answers for: Spark would wait a minute, and then start without executors."""
    if not master.startswith("spark://"):
        return
    refusals = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
        except (OSError, ValueError) as error:
            refusals.append(f"{address}: {error}")
        else:
            return
    raise SparkNotStarted(master, ", ".join(refusals))


def _variables(settings: Mapping[str, str]) -> dict[str, str]:
    """What the JVM and its Python workers must find in their environment."""
    variables = {
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON", sys.executable),
        # Another Spark's home would start that Spark's JVM under this PySpark.
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
    }
    if is_local(settings["spark.master"]):
        variables["SPARK_LOCAL_IP"] = settings["spark.driver.host"]
        variables["PYTHONPATH"] = os.pathsep.join(_program_paths())
    return variables


def _program_paths() -> list[str]:
    """Where this program finds modules beyond what every Python of this environment has; workers look there too."""
    own = [os.path.abspath(path) for path in sys.path]
    installed = tuple(os.path.join(os.path.abspath(prefix), "lib") for prefix in {sys.prefix, sys.base_prefix})
    return [path for path in dict.fromkeys(own) if os.path.exists(path) and not path.startswith(installed)]


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """The process environment with `variables`, and afterwards as it was: PySpark reads it only while it starts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

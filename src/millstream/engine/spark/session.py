"""The Spark context of this process: reuses the active one, attaches to that of a session cluster, or starts one with
the settings the engine needs.

Promises: there is at most one Spark per process. One that is lost is replaced, unless the program created it. The
environment variables of the process are restored after a start, except for two that PySpark keeps for itself. Spark's
log does not reach the terminal unless the user sets a log level. `stop` and `kill` end what was started here, including
the JVM, and nothing else.
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

from millstream.config.secrets import mask_secret
from millstream.engine.announcement import announce_start
from millstream.engine.contract import EngineGone
from millstream.engine.interpreter import use_own_interpreter
from millstream.engine.spark.calls import try_within
from millstream.engine.spark.class_archive import create_in_background
from millstream.engine.spark.health import SparkLost, find_context_problem, find_jvm_problem
from millstream.engine.spark.java import JavaHome, find_java
from millstream.engine.spark.results import serve_over_tcp
from millstream.engine.spark.settings import ONLY_THIS_PROCESS, is_local, refuse_connect, refuse_unusable, resolve
from millstream.engine.spark.shared import attach, is_shared
from millstream.engine.spark.versions import refuse_unsupported
from millstream.errors import ExternalError
from millstream.options import PYTHON_EXECUTABLE, SPARK_MASTER

_log = logging.getLogger("millstream.spark")

_STOP_SECONDS = 20
_CONNECT_SECONDS = 5
_LOCK_SECONDS = 30
_GATEWAY_SECONDS = 5
_ANSWER_SECONDS = 50.0


class SparkNotStarted(ExternalError):
    """Spark did not start; `reason` is its error message."""

    def __init__(self, master: str, reason: str) -> None:
        self.master, self.reason = master, reason
        super().__init__(
            f"spark did not start on {master}: {reason}",
            hint=f"is {SPARK_MASTER.key} right and reachable? spark.log.level=WARN shows Spark's own log",
        )


class SparkOfProgramLost(EngineGone):
    """The lost Spark was created by the program, so it cannot be replaced."""

    hint = (
        f"let millstream start Spark instead of the program, or set {SPARK_MASTER.key}: a lost Spark is then replaced "
        "by one on that master"
    )

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the program's own Spark is lost and cannot be started again from here: {reason}")


@dataclass(frozen=True, slots=True)
class Started:
    """A Spark that this module started, and how long the start took."""

    context: SparkContext
    gateway: Any
    seconds: float


class StopOnce:
    """Stops a context once, in the first thread that calls it; other threads wait.

    With PySpark's own `stop`, one of two threads fails, and the slower one makes PySpark forget a context that was
    started after the first. A caller returns when it has waited too long for a stop that hangs."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._stopped = False

    def __call__(self) -> None:
        """Stop the context, unless it is stopped."""
        if self._stopped:
            return
        if not self._lock.acquire(timeout=_STOP_SECONDS):
            _log.warning(
                "Spark has not stopped within %s s; the program continues without waiting for it", _STOP_SECONDS
            )
            return
        try:
            if not self._stopped:
                SparkContext.stop(self._context)
                self._stopped = True
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Make PySpark forget a context whose JVM does not answer."""
        self._stopped = True
        self._context._jsc = None  # so that PySpark does not call the JVM to stop it
        SparkContext.stop(self._context)


class Detach(StopOnce):
    """Leaves a context that other processes use, too, instead of stopping it."""

    def __call__(self) -> None:
        """Make PySpark forget the context."""
        self.forget()


_lock = threading.Lock()
_started: Started | None = None
_starting_jvm: subprocess.Popen[bytes] | None = None


def spark_context(
    configuration: Mapping[str, str],
    slots: int,
    answer_seconds: float = _ANSWER_SECONDS,
    lost: Mapping[SparkContext, SparkLost] = MappingProxyType({}),
) -> SparkContext:
    """Return the Spark that runs in this process, or start one from `configuration`.

    A context that the program created is used as it is, unless it has a setting with which no epoch can run. A context
    is replaced if it was stopped, if its JVM is gone or does not answer within `answer_seconds`, or if it is in
    `lost`."""
    global _started
    refuse_unsupported(pyspark.__version__)
    refuse_connect(os.environ)
    with _hold_lock(configuration):
        active = SparkContext._active_spark_context
        if active is not None:
            problem = find_context_problem(active, SparkContext._gateway, answer_seconds) or lost.get(active)
            if problem is None:
                if is_shared(active):
                    return active
                refuse_unusable(dict(active.getConf().getAll()))
                _stop_once(active)
                serve_over_tcp(active)
                use_own_interpreter(active)
                return active
            _discard_lost(active, problem, configuration)
        _forget_lost_gateway(answer_seconds)
        quiet_py4j()
        if (shared := attach(_list_program_paths(), configuration.get(PYTHON_EXECUTABLE.key))) is not None:
            cast(Any, shared).stop = Detach(shared)
            return shared
        settings = resolve(
            {**_read_submitted_settings(), **configuration}, slots=slots, memory=_measure_machine_memory()
        )
        before = time.monotonic()
        announce_start(f"Spark on {settings['spark.master']}")
        context = _start(settings)
        _stop_once(context)
        serve_over_tcp(context)
        _started = Started(context, SparkContext._gateway, time.monotonic() - before)
        return context


def warm_up(configuration: Mapping[str, str]) -> None:
    """Start the JVM for a later `spark_context` and load Spark's classes, which take most of the time of a start.

    A local Spark is started in the JVM and stopped again. If there is a JVM already, nothing is done."""
    with _hold_lock(configuration):
        _forget_lost_gateway(_ANSWER_SECONDS)
        if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
            return
        settings = resolve(configuration, slots=1, memory=_measure_machine_memory())
        java = find_java()
        with _prepare_start(settings, java):
            _start_jvm(settings)
        with _prepare_start({**settings, **ONLY_THIS_PROCESS}, java) as conf:
            SparkContext(conf=conf).stop()


def quiet_py4j() -> None:
    """Hide the messages of py4j about its connections, unless the program has set a level for them: with
    `logging.basicConfig(level=logging.INFO)` they would appear between the lines of printed tables."""
    logger = logging.getLogger("py4j")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


def start_seconds() -> float | None:
    """Return how many seconds Spark took to start; None if it was not started here."""
    return None if _started is None else _started.seconds


def stop() -> None:
    """Stop the Spark that `spark_context` started, and its JVM. A Spark that the program created stays."""
    global _started
    with _lock:
        if _started is None:
            return
        context, gateway = _started.context, _started.gateway
        try_within("stop Spark", context.stop, _STOP_SECONDS)
        _started = None
        _forget(context, gateway)
        process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
        if process is not None:
            _end(process)


def kill(context: SparkContext | None) -> None:
    """Kill the JVM of a context that was started here: waiting calls fail, and the next `spark_context` starts another
    one. May be called from any thread."""
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
    """Kill the JVM that is being started: the waiting caller gets an error. May be called from any thread."""
    if (starting := _starting_jvm) is not None:
        starting.kill()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the JVM's standard input, upon which it ends; kill it if it does not end in time."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _discard_lost(context: SparkContext, problem: SparkLost, configuration: Mapping[str, str]) -> None:
    """Discard a lost Spark, so that another one can start; raise if the program created it."""
    global _started
    gateway = SparkContext._gateway
    is_ours = _started is not None and _started.context is context
    if (not is_ours and SPARK_MASTER.key not in configuration) or (
        problem.jvm and "PYSPARK_GATEWAY_PORT" in os.environ
    ):
        raise SparkOfProgramLost(problem.reason)
    _log.warning("another Spark is started: %s", problem.reason)
    if problem.jvm or not try_within("stop Spark", context.stop, _STOP_SECONDS):
        kill(context)
        _forget(context, gateway if is_ours else None)
    if is_ours:
        _started = None


def _forget_lost_gateway(seconds: float) -> None:
    """Discard a JVM without a context that has ended or does not answer."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    problem = find_jvm_problem(gateway, seconds)
    if problem is None:
        return
    _log.warning("another JVM is started: %s", problem.reason)
    _kill(gateway)
    _forget(None, gateway)


def _forget(context: SparkContext | None, gateway: Any) -> None:
    """Make PySpark forget a Spark; a gateway that was started here is shut down with it."""
    if context is not None:
        try_within("forget a lost Spark", _stop_once(context).forget, _GATEWAY_SECONDS)
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is not None:
        try_within("shut the gateway down", gateway.shutdown, _GATEWAY_SECONDS)


@contextmanager
def _hold_lock(configuration: Mapping[str, str]) -> Iterator[None]:
    """Hold the lock on the Spark of this process, or raise: another start may hang while it holds the lock."""
    if not _lock.acquire(timeout=_LOCK_SECONDS):
        master = configuration.get(SPARK_MASTER.key, "its master")
        raise SparkNotStarted(master, f"another start has been under way for more than {_LOCK_SECONDS} s")
    try:
        yield
    finally:
        _lock.release()


def _read_submitted_settings() -> dict[str, str]:
    """Return the settings of `spark-submit`, if it runs this program: its JVM is already running and has them."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf(loadDefaults=True, _jvm=SparkContext._jvm).getAll())


def _start(settings: Mapping[str, str]) -> SparkContext:
    _require_reachable(settings["spark.master"])
    java = find_java()
    with _prepare_start(settings, java) as conf:
        _start_jvm(settings)
        context = SparkContext(conf=conf)
    if is_local(settings["spark.master"]) and "PYSPARK_GATEWAY_PORT" not in os.environ:  # it would attach to this Spark
        create_in_background(java, os.environ)
    server: Any = context._accumulatorServer
    server.handle_error = _log_error
    return context


def _stop_once(context: Any) -> StopOnce:
    """Make a context stop only once: the program and the engine may stop it at the same time."""
    if not isinstance(context.stop, StopOnce):
        context.stop = StopOnce(context)
    return cast(StopOnce, context.stop)


def _log_error(*_: object) -> None:
    """Log an error of the accumulator server, which would print a traceback when the JVM ends."""
    _log.debug("the connection for Spark's accumulators broke", exc_info=True)


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM, unless it runs, with the settings that are not secret: every user of the machine can read its
    command line. The context sends the secrets over its own connection."""
    public = [(key, value) for key, value in settings.items() if mask_secret(key, value) == value]
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(public))


@contextmanager
def _prepare_start(settings: Mapping[str, str], java: JavaHome) -> Iterator[SparkConf]:
    """Set the environment variables of a start, and translate its errors to one sentence."""
    with _set_environment(_list_variables(settings, java)), _record_started_jvm():
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
def _record_started_jvm() -> Iterator[None]:
    """Record the JVM that PySpark starts, so that it can be killed: PySpark waits for it without a deadline."""
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
    """Raise if no standalone master answers: Spark would wait a minute and then start without executors."""
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


def _list_variables(settings: Mapping[str, str], java: JavaHome) -> dict[str, str]:
    """Return the environment variables of the JVM and its Python workers."""
    variables = {
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON", sys.executable),
        "SPARK_HOME": str(_find_spark_home()),
    }
    if is_local(settings["spark.master"]):
        variables["SPARK_LOCAL_IP"] = settings["spark.driver.host"]
        variables["PYTHONPATH"] = os.pathsep.join(_list_program_paths())
    return variables


def _find_spark_home() -> Path:
    """Return the home of this PySpark: another Spark's home would start that Spark's JVM under it. The package of PyPI
    is a home; in a download or a vendor's installation, PySpark is in the directory `python` of it."""
    package = Path(pyspark.__file__).parent
    homes = (package, package.parent.parent)
    return next((home for home in homes if (home / "bin" / "spark-submit").exists()), package)


def _list_program_paths() -> list[str]:
    """Return the module paths of this program outside its Python environment; workers need them, too."""
    module_paths = [os.path.abspath(path) for path in sys.path]
    installed = tuple(os.path.join(os.path.abspath(prefix), "lib") for prefix in {sys.prefix, sys.base_prefix})
    return [path for path in dict.fromkeys(module_paths) if os.path.exists(path) and not path.startswith(installed)]


@contextmanager
def _set_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables and restore them afterwards: PySpark reads them only while it starts."""
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


def _measure_machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

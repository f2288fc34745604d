"""The settings to start Spark with: defaults, settings of the user, and settings that are refused.

Promises: the user's own `spark.*` keys override every default; a setting with which no epoch can run is refused by
name.
Does not know: a running Spark; these are functions from mappings to mappings."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from millstream.errors import UserError
from millstream.options import ENGINE, PYTHON_EXECUTABLE, SPARK_MASTER

TASK_FAILURES = "4"
#: How many cores a local Spark has that offers more task slots, of which resident stages hold some.
CORES = "spark.millstream.cores"
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_GIB = 1 << 30
_SPARE_TASK_SLOTS = 32  # of a local Spark, beside those for its cores and its first jobs


class SparkSettingRefused(UserError):
    """A Spark setting with which the engine cannot run."""

    def __init__(self, key: str, value: str, reason: str, hint: str) -> None:
        self.key, self.value, self.reason = key, value, reason
        super().__init__(f"{key}={value} cannot be used: {reason}", hint=hint)


_NO_RDDS = "Spark Connect has no RDDs, which carry the blocks of an epoch"
_REFUSED: tuple[tuple[str, Callable[[str], bool], str, str], ...] = (
    (
        "spark.master",
        lambda value: value.startswith("sc://"),
        _NO_RDDS,
        f"name a cluster in {SPARK_MASTER.key}, such as local[*], spark://host:7077, yarn or k8s://...",
    ),
    (
        "spark.remote",
        bool,
        _NO_RDDS,
        f"remove it and name a cluster in {SPARK_MASTER.key}",
    ),
    (
        "spark.api.mode",
        lambda value: value.lower() == "connect",
        _NO_RDDS,
        "remove it, or set it to classic",
    ),
    (
        "spark.submit.deployMode",
        lambda value: value.lower() == "cluster",
        "this process is the driver",
        "remove it, and submit this program itself with: spark-submit --deploy-mode cluster",
    ),
    (
        "spark.python.unix.domain.socket.dir",
        lambda value: len(value) > 60,
        "the path of a Unix domain socket may have about 100 characters",
        "use a shorter path, such as /tmp",
    ),
)

_CONNECT_VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")

_ALWAYS = {
    "spark.app.name": "millstream",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "millstream.engine.spark.daemon",
    # A worker that hangs when its epoch is cancelled keeps a slot from the next attempt for this long.
    "spark.python.task.killTimeout": "200ms",
    "spark.task.maxFailures": TASK_FAILURES,
    # An executor that dies takes the shuffle files of several stages with it; each costs one attempt.
    "spark.stage.maxConsecutiveAttempts": "8",
    # Otherwise Spark would prefer the host of a slot's input to the host of its state.
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.shuffle.compress": "true",
    "spark.io.compression.codec": "lz4",
    # An epoch's shuffle files are deleted when the JVM collects its RDDs; with the default of 30 min thousands stay.
    "spark.cleaner.periodicGC.interval": "1min",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "2000",
}

# The JVM only moves bytes and schedules: cores are better used for Python than for compilers and parallel GC.
_LOCAL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"

_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

#: A Spark in this process only, on the loopback interface.
ONLY_THIS_PROCESS = {"spark.master": "local[1]", **_LOOPBACK}

_LOCAL = {
    # Blocks go from one local process to another: compression and checksums would only cost time. So would one file for
    # each target that is then merged into one: without it, large blocks went through Spark in half of the time.
    "spark.shuffle.compress": "false",
    "spark.shuffle.checksum.enabled": "false",
    "spark.shuffle.sort.bypassMergeThreshold": "0",
    **_LOOPBACK,
}

_CLUSTER = {
    # A slot waits this long for the host of its state before it goes elsewhere.
    "spark.locality.wait": "1s",
    # A barrier stage that finds too few task slots, while an executor is replaced, looks again after this time.
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    # Output of a dead executor is computed again at once; retries would take longer.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
}

_SILENT = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"


def resolve(configuration: Mapping[str, str], *, slots: int, memory: int) -> dict[str, str]:
    """Return the settings to start Spark with, for a driver on a machine with `memory` bytes."""
    user_settings = {key: value for key, value in configuration.items() if key.startswith("spark.")}
    master = configuration.get(SPARK_MASTER.key) or user_settings.get("spark.master") or str(SPARK_MASTER.default)
    user_settings["spark.master"] = add_retries(master, user_settings.get("spark.task.maxFailures", TASK_FAILURES))
    refuse_unusable(user_settings)
    settings = {**_ALWAYS, "spark.default.parallelism": str(slots)}
    if PYTHON_EXECUTABLE.key in configuration:
        settings["spark.pyspark.python"] = configuration[PYTHON_EXECUTABLE.key]
    if is_local(master):
        settings |= _LOCAL
        if configuration.get(ENGINE.key, ENGINE.default) != "jobs":
            cores, user_settings["spark.master"] = add_task_slots(user_settings["spark.master"], slots)
            settings |= {} if cores is None else {CORES: str(cores)}
        if _JVM_OPTIONS not in user_settings:
            settings[_JVM_OPTIONS] = _LOCAL_JVM
        settings["spark.driver.memory"] = f"{max(1, min(4, memory // _GIB // 4))}g"
    else:
        settings |= _CLUSTER
    if "spark.log.level" not in user_settings:
        user_settings[_JVM_OPTIONS] = (
            f"{_SILENT} {user_settings.get(_JVM_OPTIONS, settings.get(_JVM_OPTIONS, ''))}".strip()
        )
    return {**settings, **user_settings}


def refuse_unusable(settings: Mapping[str, str]) -> None:
    """Raise for the first setting with which no epoch can run."""
    for key, is_unusable, reason, hint in _REFUSED:
        value = settings.get(key)
        if value is not None and is_unusable(value):
            raise SparkSettingRefused(key, value, reason, hint)


def refuse_connect(environment: Mapping[str, str]) -> None:
    """Raise if this process is a client of Spark Connect: PySpark notes it in the environment of the process.

    It does so for sessions of a remote server, of serverless offerings and of `spark.api.mode=connect`."""
    hint = f"run the program where the Spark driver can run, and name a cluster in {SPARK_MASTER.key}"
    for variable in _CONNECT_VARIABLES:
        if value := environment.get(variable):
            raise SparkSettingRefused(variable, value, _NO_RDDS, f"{hint}; or unset {variable}")


def is_local(master: str) -> bool:
    """Whether all of Spark runs on this machine, started by this program."""
    return master.startswith("local")


def add_retries(master: str, failures: str) -> str:
    """Add the allowed task failures to a local master, where Spark's default is 1: `local[2]` to `local[2,4]`."""
    match = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return f"local[{match[1] or 1},{failures}]" if match else master


def add_task_slots(master: str, slots: int) -> tuple[int | None, str]:
    """Return the cores of a local master, and the master with task slots beside those for its cores: resident stages
    hold theirs for as long as they run. There are enough for two jobs with this many slots."""
    match = re.fullmatch(r"local\[([0-9]+|\*)(,[0-9]+)?\]", master)
    if match is None:
        return None, master
    cores = count_available_cores() if match[1] == "*" else int(match[1])
    return cores, f"local[{cores + 2 * slots + _SPARE_TASK_SLOTS}{match[2] or ''}]"


def count_available_cores() -> int:
    """Return how many cores this process may use, as Java counts them: containers may have a share of a machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        if quota != "max":
            cores = min(cores, max(1, math.ceil(int(quota) / int(period))))
    return cores

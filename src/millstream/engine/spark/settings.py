"""The Spark settings an engine must have: defaults, what the user says, and what cannot be.

Promises: the user's own `spark.*` keys win over every default; a key with which no epoch could run is refused by name.
Does not know: a running Spark; these are functions from mappings to mappings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from millstream.errors import UserError
from millstream.options import PYTHON_EXECUTABLE, SPARK_MASTER

TASK_FAILURES = "4"
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_GIB = 1 << 30


class SparkSettingRefused(UserError):
    """A Spark setting with which the engine cannot run."""

    def __init__(self, key: str, value: str, reason: str, hint: str) -> None:
        self.key, self.value, self.reason = key, value, reason
        super().__init__(f"{key}={value} cannot be used: {reason}", hint=hint)


_REFUSED: tuple[tuple[str, Callable[[str], bool], str, str], ...] = (
    (
        "spark.master",
        lambda value: value.startswith("sc://"),
        "Spark Connect has no RDDs, which carry the blocks of an epoch",
        f"name a cluster in {SPARK_MASTER.key}, such as local[*], spark://host:7077, yarn or k8s://...",
    ),
    (
        "spark.remote",
        bool,
        "Spark Connect has no RDDs, which carry the blocks of an epoch",
        f"remove it and name a cluster in {SPARK_MASTER.key}",
    ),
    (
        "spark.api.mode",
        lambda value: value.lower() == "connect",
        "Spark Connect has no RDDs, which carry the blocks of an epoch",
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
    # The preference of a slot for the host of its state would lose to that for the host of its input.
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.shuffle.compress": "true",
    "spark.io.compression.codec": "lz4",
    # An epoch's shuffle files go when the JVM collects its RDDs; the default of 30 min would keep thousands.
    "spark.cleaner.periodicGC.interval": "1min",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "2000",
}

# The JVM moves bytes and schedules; two cores are better spent on Python than on compiling and collecting in parallel.
_LOCAL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"

_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

#: A Spark that nobody else is part of.
ALONE = {"spark.master": "local[1]", **_LOOPBACK}

_LOCAL = {
    # Blocks go from one local process to another: compressing them and adding them up would only cost time, and so
    # would a file for each target that is copied into one: large blocks went through Spark in half of the time.
    "spark.shuffle.compress": "false",
    "spark.shuffle.checksum.enabled": "false",
    "spark.shuffle.sort.bypassMergeThreshold": "0",
    **_LOOPBACK,
}

_CLUSTER = {
    # A slot waits this long for the host of its state before it goes elsewhere.
    "spark.locality.wait": "1s",
    # What a dead executor had is computed again at once; asking it again and again would take longer.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
}

_SILENT = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"


def resolve(configuration: Mapping[str, str], *, slots: int, memory: int) -> dict[str, str]:
    """The settings to start Spark with, for a driver on a machine with `memory` bytes."""
    own = {key: value for key, value in configuration.items() if key.startswith("spark.")}
    master = configuration.get(SPARK_MASTER.key) or own.get("spark.master") or str(SPARK_MASTER.default)
    own["spark.master"] = with_retries(master, own.get("spark.task.maxFailures", TASK_FAILURES))
    refuse_unusable(own)
    settings = {**_ALWAYS, "spark.default.parallelism": str(slots)}
    if PYTHON_EXECUTABLE.key in configuration:
        settings["spark.pyspark.python"] = configuration[PYTHON_EXECUTABLE.key]
    if is_local(master):
        settings |= _LOCAL
        if _JVM_OPTIONS not in own:
            settings[_JVM_OPTIONS] = _LOCAL_JVM
        settings["spark.driver.memory"] = f"{max(1, min(4, memory // _GIB // 4))}g"
    else:
        settings |= _CLUSTER
    if "spark.log.level" not in own:
        own[_JVM_OPTIONS] = f"{_SILENT} {own.get(_JVM_OPTIONS, settings.get(_JVM_OPTIONS, ''))}".strip()
    return {**settings, **own}


def refuse_unusable(settings: Mapping[str, str]) -> None:
    """Raise for the first setting with which no epoch could run."""
    for key, refused, reason, hint in _REFUSED:
        value = settings.get(key)
        if value is not None and refused(value):
            raise SparkSettingRefused(key, value, reason, hint)


def is_local(master: str) -> bool:
    """Whether all of Spark runs on this machine, started by this program."""
    return master.startswith("local")


def with_retries(master: str, failures: str) -> str:
    """A local master with a number of task failures, which Spark otherwise takes as one: `local[2]` to `local[2,4]`."""
    match = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return f"local[{match[1] or 1},{failures}]" if match else master

"""A job runs for a long time in small epochs, is rescaled every minute and loses a worker every two minutes.

Promises: every record is in the output once, in the order of its key, which is checked while the job runs; memory,
descriptors, threads, files, bytes on disk and the duration of checkpoints are sampled, and compared between the middle
and the end of the run.
Does not know: the cause of growth. Only Python workers are killed: a new driver or JVM would start with
fresh memory and hide what its predecessor accumulated."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from millstream.connectors.kafka.client import library
from millstream.errors import ExternalError, MillstreamError
from millstream.testing.kafka import KafkaBroker
from millstream.testing.spark_cluster import find_descendants, kill, python_workers
from millstream_chaos.jobs.engines import engine_options
from millstream_chaos.jobs.rescaling import offer_ports, rescale_running_job
from millstream_chaos.jobs.soak_job import INPUT, OUTPUT, Checker, SoakSpecification, compute_value
from millstream_chaos.machine.process_usage import directory_usage, process_usage, total_usage
from millstream_chaos.machine.python_path import child_environment
from millstream_chaos.trace import Report, Trace

_MINUTES = {"ci": 0.5, "normal": 10.0, "long": 120.0}
_PARTITIONS = 4
_RATE = 400  # records a second
_KEYS = 2_000
_SAMPLE_SECONDS = 2.0
_START_SECONDS = 120.0
_DRAIN_SECONDS = 120.0
_GROWTH = 0.02  # the allowed growth from the middle to the end, in runs that are long enough
_JUDGED_MINUTES = 60.0  # shorter runs are not judged
_REPORT_SECONDS = 60.0
_HEAP = "512m"
# A JVM touches more and more of its heap before it collects it. With all of it touched at the start, what grows later
# is not heap; the live objects of the heap are read from the log of the garbage collector.
_WHOLE_HEAP = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms{_HEAP} -XX:+AlwaysPreTouch"
_GC_LOG = "gc.log"
_AFTER_COLLECTION = re.compile(rb"->(\d+)M\(")
_LOG_TAIL = 4096  # bytes


def plan(seed: int, size: str, minutes: float | None = None) -> Trace:
    """Draw the times of rescales and kills: a rescale each minute, a kill every two; closer together in short runs."""
    minutes = _MINUTES[size] if minutes is None else minutes
    seconds, chance = minutes * 60, np.random.default_rng([seed, 29])
    between = min(60.0, seconds / 4)
    steps: list[dict[str, Any]] = []
    for number in range(1, int(seconds // between)):
        at = between * number
        steps.append({"at": round(at, 1), "kind": "rescale", "parallelism": 3 if number % 2 else 2})
        if number % 2:
            at += between * float(chance.uniform(0.2, 0.8))
            steps.append({"at": round(at, 1), "kind": "kill", "pick": int(chance.integers(0, 1000))})
    return Trace("soak", seed, size, {"minutes": minutes, "rate": _RATE, "keys": _KEYS}, steps)


def play(trace: Trace, directory: Path) -> Report:
    """Run the job for its time, and check output and growth."""
    report = Report(trace)
    with KafkaBroker() as broker:
        for name in (INPUT, OUTPUT):
            broker.create_topic(name, _PARTITIONS)
        options = _options(directory, trace)
        specification = SoakSpecification(str(directory), broker.bootstrap_servers, options=options)
        feeder = Feeder(broker.bootstrap_servers, trace.parameters["rate"], trace.parameters["keys"])
        reader = Reader(broker.bootstrap_servers)
        with _run_driver(specification) as driver, feeder, reader:
            soak = _Soak(driver, specification, report)
            soak.run(trace, reader)
            feeder.stop()
            _wait(
                lambda: reader.checker.lines >= feeder.sent or driver.poll() is not None, "all output", _DRAIN_SECONDS
            )
            report.check(driver.poll() is None, f"the job ended: {soak.log()[-1000:]}")
    for problem in reader.checker.problems:
        report.check(False, problem)
    report.check(reader.checker.lines == feeder.sent, f"{feeder.sent} records in, {reader.checker.lines} lines out")
    report.figures |= {"records": feeder.sent, "output lines": reader.checker.lines}
    soak.judge(trace)
    return report


def _options(directory: Path, trace: Trace) -> dict[str, str]:
    for name in ("checkpoints", "tmp"):
        (directory / name).mkdir(parents=True)
    return {
        **offer_ports(),
        **engine_options(trace),
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.interval": "1 s",
        "io.tmp.dirs": str(directory / "tmp"),
        "millstream.epoch.min-interval": "50 ms",
        "millstream.epoch.idle-interval": "10 ms",
        "millstream.spark.master": "local[3]",
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.initial-backoff": "100 ms",
        "restart-strategy.exponential-delay.max-backoff": "2 s",
        "spark.driver.extraJavaOptions": f"{_WHOLE_HEAP} -Xlog:gc:file={directory / _GC_LOG}",
        "spark.driver.memory": _HEAP,
        "spark.local.dir": str(directory / "tmp"),
        "state.backend.type": "rocksdb",
    }


@contextlib.contextmanager
def _run_driver(specification: SoakSpecification) -> Iterator[subprocess.Popen[bytes]]:
    """Run the driver of the job as a process; kill it with all its children at the end."""
    environment = child_environment() | {"TMPDIR": str(Path(specification.directory) / "tmp")}
    with (Path(specification.directory) / "log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", "millstream_chaos.jobs.soak_job", str(specification.save())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    try:
        yield driver
    finally:
        children = find_descendants(driver.pid)
        driver.kill()
        driver.wait()
        for pid in children:
            kill(pid)


class _Background(ABC):
    """Work in a thread of its own during a `with` block; an error of the thread is raised at the end of the block."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    def _run(self) -> None:
        try:
            self.work()
        except BaseException as problem:
            self._problem = problem

    @abstractmethod
    def work(self) -> None:
        """Work until `_stopped` is set."""

    def __enter__(self) -> _Background:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the work and wait for its end."""
        self._stopped.set()
        self._thread.join()
        if self._problem is not None:
            raise self._problem


class Feeder(_Background):
    """Produces records at a steady rate."""

    def __init__(self, servers: str, rate: int, keys: int) -> None:
        super().__init__()
        self._producer = library().Producer({"bootstrap.servers": servers, "linger.ms": 5})
        self._rate, self._keys = rate, keys
        self.sent = 0

    def work(self) -> None:
        """Send the records that are due, ten times a second."""
        numbers: dict[int, int] = {}
        started = time.monotonic()
        while not self._stopped.wait(0.1):
            due = int((time.monotonic() - started) * self._rate)
            while self.sent < due:
                key = self.sent * 7919 % self._keys
                number = numbers[key] = numbers.get(key, 0) + 1
                line = f"k{key} {number} {compute_value(key, number)}"
                self._producer.produce(INPUT, line, f"k{key}", key % _PARTITIONS)
                self.sent += 1
            self._producer.poll(0)
        unsent = self._producer.flush(30)
        if unsent:
            msg = f"{unsent} records could not be produced"
            raise ExternalError(msg)


class Reader(_Background):
    """Reads committed output and checks it."""

    def __init__(self, servers: str) -> None:
        super().__init__()
        self._consumer = library().Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "soak-reader",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self.checker = Checker()

    def work(self) -> None:
        """Check every line."""
        kafka = library()
        self._consumer.assign([kafka.TopicPartition(OUTPUT, partition, 0) for partition in range(_PARTITIONS)])
        try:
            while not self._stopped.is_set():
                for message in self._consumer.consume(1000, timeout=0.5):
                    if message.error() is None:
                        self.checker.check((message.value() or b"").decode())
        finally:
            self._consumer.close()


@dataclass
class _Soak:
    """The steps and samples of one run."""

    driver: subprocess.Popen[bytes]
    specification: SoakSpecification
    report: Report
    samples: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    rescales: int = 0
    kills: int = 0

    def run(self, trace: Trace, reader: Reader) -> None:
        """Carry out the steps at their times, and take samples in between."""
        _wait(lambda: reader.checker.lines > 0 or self.driver.poll() is not None, "the first output", _START_SECONDS)
        started, reported = time.monotonic(), 0.0
        steps, seconds = list(trace.steps), trace.parameters["minutes"] * 60
        while (now := time.monotonic() - started) < seconds and self.driver.poll() is None:
            while steps and steps[0]["at"] <= now:
                self._carry_out(steps.pop(0))
            self.samples.append((time.monotonic() - started, self._sample()))
            if now - reported > _REPORT_SECONDS:
                reported = now
                line = ", ".join(f"{name} {value:.4g}" for name, value in self.samples[-1][1].items())
                print(f"soak: {now:.0f} of {seconds:.0f} s: {line}", file=sys.stderr, flush=True)
            time.sleep(_SAMPLE_SECONDS)

    def _carry_out(self, step: Mapping[str, Any]) -> None:
        if step["kind"] == "kill":
            workers = python_workers(self.driver.pid)
            self.kills += bool(workers) and kill(workers[step["pick"] % len(workers)])
            return
        try:
            rescale_running_job(self.specification.options, step["parallelism"])
            self.rescales += 1
        except MillstreamError as problem:
            self.report.check(False, f"{step}: {problem}")

    def _sample(self) -> dict[str, float]:
        directory = Path(self.specification.directory)
        children = find_descendants(self.driver.pid)
        jvm = [pid for pid in children if _is_java(pid)]
        driver, machine = process_usage(self.driver.pid), total_usage(jvm)
        workers = total_usage(pid for pid in children if pid not in jvm)
        checkpoints, temporary = directory_usage(directory / "checkpoints"), directory_usage(directory / "tmp")
        return {
            "driver MB": driver.memory / 1e6,
            "driver descriptors": driver.descriptors,
            "driver threads": driver.threads,
            "JVM MB": machine.memory / 1e6,
            "JVM live heap MB": _read_live_heap(directory / _GC_LOG),
            "JVM descriptors": machine.descriptors,
            "JVM threads": machine.threads,
            "workers MB": workers.memory / 1e6,
            "workers descriptors": workers.descriptors,
            "checkpoint files": checkpoints.files,
            "checkpoint MB": checkpoints.bytes / 1e6,
            "temporary files": temporary.files,
            "temporary MB": temporary.bytes / 1e6,
        }

    def judge(self, trace: Trace) -> None:
        """Compare start, middle and end; long runs must not grow."""
        minutes = trace.parameters["minutes"]
        lines = self.progress()
        durations = [line["ms"] for line in lines if "checkpoint" in line]
        times = {"checkpoint ms": _levels(durations)} if len(durations) >= 3 else {}
        for name, (start, middle, end) in (self._growth() | times).items():
            self.report.figures[name] = f"{start:.4g} at the start, {middle:.4g} in the middle, {end:.4g} at the end"
            if minutes >= _JUDGED_MINUTES:
                self.report.check(end <= middle * (1 + _GROWTH), f"{name} grew from {middle:.4g} to {end:.4g}")
        self.report.figures |= {
            "epochs": max((line["epochs"] for line in lines if "epochs" in line), default=0),
            "checkpoints": len(durations),
            "restarts": max((line["restarts"] for line in lines if "restarts" in line), default=0),
            "rescales": self.rescales,
            "kills": self.kills,
        }
        planned = [step["kind"] for step in trace.steps]
        self.report.check(self.rescales == planned.count("rescale"), "a rescale was not carried out")
        self.report.check(self.kills >= planned.count("kill") // 2, "there was often no worker to kill")

    def _growth(self) -> dict[str, tuple[float, float, float]]:
        names = self.samples[0][1] if self.samples else {}
        return {name: _levels([values[name] for _, values in self.samples]) for name in names}

    def progress(self) -> list[dict[str, Any]]:
        """Return what the job has reported."""
        path = self.specification.progress
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def log(self) -> str:
        """Return what the driver printed."""
        return (Path(self.specification.directory) / "log").read_text(errors="replace")


def _levels(values: list[float]) -> tuple[float, float, float]:
    """Return the levels at the start, in the middle and at the end.

    Each is the value that nine of ten samples exceed in a sixth of the run: files, threads and the duration of
    checkpoints rise and fall from minute to minute, and a leak raises the lowest values as well."""
    width = max(1, len(values) // 6)
    middle = (len(values) - width) // 2
    windows = values[width : 2 * width] or values, values[middle : middle + width], values[-width:]
    start, centre, end = (float(np.quantile(window, 0.1)) for window in windows)  # the first sixth fills caches
    return start, centre, end


def _read_live_heap(log: Path) -> float:
    """Return the megabytes that the newest collection left; 0 before the first one."""
    with contextlib.suppress(FileNotFoundError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_TAIL))
        sizes = _AFTER_COLLECTION.findall(file.read())
        return float(sizes[-1]) if sizes else 0.0
    return 0.0


def _is_java(pid: int) -> bool:
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "java"
    except OSError:
        return False


def _wait(until: Any, what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        if time.monotonic() > deadline:
            msg = f"{what} did not arrive within {seconds:g} s"
            raise ExternalError(msg)
        time.sleep(0.1)

"""Everything at once on a cluster: processes are killed or stopped, one, two or three at a time and again while the job
recovers; the job is rescaled and savepoints are written in between.

Promises: a consumer that reads what is committed finds what plain Python computes from the input, for a DataStream job
and for a SQL job, with keyed state on disk and speculative execution on. Every savepoint that was reported is whole.
Does not know: how long recovery takes; `chaos_kafka` measures that."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from millstream.checkpoint.savepoint import open_snapshot
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.mailbox import request_rescale
from millstream.errors import MillstreamError
from millstream.testing.chaos import Report, Trace
from millstream.testing.chaos_driven import Drivers, options
from millstream.testing.chaos_job import BUCKET, WINDOW, Specification
from millstream.testing.chaos_kafka import committed, fill
from millstream.testing.chaos_output import differences, digest, lines_by_file
from millstream.testing.expected import chaos_lines, chaos_sql_lines
from millstream.testing.kafka import KafkaBroker
from millstream.testing.spark_cluster import SparkCluster, descendants, kill

_SIZES = {
    "ci": {"records": 10_000, "keys": 300, "epoch_records": 300, "steps": 4},
    "normal": {"records": 100_000, "keys": 5_000, "epoch_records": 800, "steps": 20},
    "long": {"records": 600_000, "keys": 50_000, "epoch_records": 800, "steps": 100},
}
PROCESSES = ("worker", "executor", "jvm", "driver")
_SETTINGS = {
    "state.backend.type": "rocksdb",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.5",
    "spark.network.timeout": "10s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "1s",
}


def plan(seed: int, size: str) -> Trace:
    """Draw the steps, for the DataStream job and for the SQL job in turn."""
    parameters = dict(_SIZES[size])
    chance = np.random.default_rng([seed, 41])
    gap = parameters["records"] / parameters["epoch_records"] / (parameters["steps"] + 1)
    steps: list[dict[str, Any]] = []
    for job in ("datastream", "sql"):
        for number in range(parameters["steps"]):
            kind = ("faults", "rescale", "faults", "savepoint")[number % 4]
            step: dict[str, Any] = {"job": job, "kind": kind, "epoch": int(gap * (number + 0.5 + chance.random() / 2))}
            if kind == "rescale":
                step["parallelism"] = int(chance.integers(1, 4))
            elif kind == "faults":
                step["faults"] = [_fault(chance) for _ in range(int(chance.integers(1, 4)))]
            steps.append(step)
    return Trace("mixed", seed, size, parameters, steps)


def _fault(chance: np.random.Generator) -> dict[str, Any]:
    """One process is killed, or stopped for a while; faults of a step follow each other within a second."""
    kind = str(chance.choice(PROCESSES, p=[0.35, 0.35, 0.15, 0.15]))
    stopped = bool(chance.random() < 0.4)
    return {
        "process": kind,
        "signal": "STOP" if stopped else "KILL",
        "seconds": round(float(chance.uniform(0.5, 6.0)), 1) if stopped else 0.0,
        "after_ms": int(chance.integers(0, 1_000)),
        "pick": int(chance.integers(0, 1_000)),
    }


def play(trace: Trace, directory: Path) -> Report:
    """Run both jobs through their steps."""
    report = Report(trace)
    for job in dict.fromkeys(step["job"] for step in trace.steps):
        where = directory / job
        where.mkdir()
        mine = replace(trace, steps=[step for step in trace.steps if step["job"] == job])
        with KafkaBroker() as broker, SparkCluster(workers=2) as cluster:
            settings = options(where, epoch_records=trace.parameters["epoch_records"])
            settings |= cluster.settings() | _SETTINGS
            specification = Specification(
                str(where), options=settings, kafka=broker.bootstrap_servers, sql=job == "sql"
            )
            fill(broker, specification, mine)
            _run(specification, cluster, mine, report)
            found = committed(broker)
        lines = [line for own in lines_by_file(specification.input).values() for line in own]
        expected = (
            chaos_sql_lines(lines, window=WINDOW)
            if specification.sql
            else chaos_lines(lines, bucket=BUCKET, window=WINDOW)
        )
        for problem in differences(found, {"computed": expected}):
            report.check(False, f"{job}: {problem}")
        output = [line for own in found.values() for line in own]
        report.figures[f"{job} lines"] = f"{len(output)} ({digest(output)[:16]})"
    return report


def _run(specification: Specification, cluster: SparkCluster, trace: Trace, report: Report) -> None:
    with Drivers(specification, standby=1) as drivers:
        for number, step in enumerate(trace.shown()):
            drivers.wait_for_epoch(step["epoch"], 300)
            if drivers.ended():
                _count(report, "too late")
                continue
            _do(specification, drivers, cluster, step, number, report)
            _count(report, step["kind"])
            drivers.wait_for_more_epochs(f"epochs after {step}", 300)
            drivers.fill()
        drivers.wait(drivers.ended, "the end of the job", 600)
    for request in Path(specification.directory).glob("savepoint-*.done"):
        path = request.read_text(encoding="utf-8")
        try:
            open_snapshot(path, CheckpointStorage(str(Path(path).parent))).verify()
        except MillstreamError as problem:
            report.check(False, f"the savepoint {path} is not whole: {problem}")
        _count(report, "savepoints verified")


def _do(
    specification: Specification, drivers: Drivers, cluster: SparkCluster, step: Any, number: int, report: Report
) -> None:
    if step["kind"] == "savepoint":
        (Path(specification.directory) / f"savepoint-{number}.request").touch()
    elif step["kind"] == "rescale":
        _rescale(specification, step["parallelism"], number, report)
    else:
        for fault in step["faults"]:
            time.sleep(fault["after_ms"] / 1000)
            living = _living(fault["process"], drivers, cluster)
            if living:
                _signal(living[fault["pick"] % len(living)], fault)
                _count(report, f"{fault['process']} {fault['signal']}")


def _signal(pid: int, fault: Any) -> None:
    """Kill a process, or stop it and let it go on later, while the next fault happens."""
    if fault["signal"] == "KILL":
        kill(pid)
        return
    kill(pid, signal.SIGSTOP)
    threading.Timer(fault["seconds"], kill, (pid, signal.SIGCONT)).start()


def _living(process: str, drivers: Drivers, cluster: SparkCluster) -> list[int]:
    if process == "worker":
        return cluster.python_workers()
    if process == "executor":
        return cluster.executors()
    leader = drivers.leader()
    if leader is None:
        return []
    return [leader] if process == "driver" else descendants(leader, where=lambda each: "java" in each.command)[:1]


def _rescale(specification: Specification, parallelism: int, number: int, report: Report) -> None:
    """Ask the job that leads; in the middle of a recovery nobody may answer, which is no fault of the job's output."""
    root = Path(specification.options["execution.checkpointing.dir"])
    storage = CheckpointStorage(str(root), next(root.iterdir()).name)
    try:
        request_rescale(
            storage,
            parallelism,
            ids=lambda: f"mixed-{number}-{time.monotonic_ns()}",
            seconds=30,
            now=time.monotonic,
            sleep=time.sleep,
        )
    except MillstreamError:
        _count(report, "rescales without an answer")


def _count(report: Report, name: str) -> None:
    report.figures[name] = report.figures.get(name, 0) + 1

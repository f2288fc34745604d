"""Many faults on a cluster: up to three processes are killed or stopped at the same time, also while the job recovers;
between the faults, the job is rescaled and savepoints are written.

Promises: the committed output is what plain Python computes from the input, for a DataStream job and for a SQL job,
with keyed state on disk and speculative execution. Every reported savepoint is complete.
Does not know: how long recovery takes; `kafka` measures that."""

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
from millstream.errors import MillstreamError
from millstream.testing.kafka import KafkaBroker
from millstream.testing.spark_cluster import SparkCluster, find_descendants, kill
from millstream_chaos.jobs.drivers import Drivers, create_options
from millstream_chaos.jobs.engines import engine_options
from millstream_chaos.jobs.keyed_job import BUCKET, WINDOW, Specification
from millstream_chaos.jobs.rescaling import offer_ports, rescale_running_job
from millstream_chaos.jobs.topics import fill_topics, read_committed
from millstream_chaos.machine.python_path import source_folders
from millstream_chaos.outputs.compare import find_differences, hash_lines, read_lines
from millstream_chaos.samples.expected import compute_lines, compute_sql_lines
from millstream_chaos.trace import Report, Trace, draw_epoch

_SIZES = {
    "ci": {"records": 10_000, "keys": 300, "epoch_records": 300, "steps": 3},
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
    epochs = parameters["records"] / parameters["epoch_records"]
    steps: list[dict[str, Any]] = []
    for job in ("datastream", "sql"):
        for number in range(parameters["steps"]):
            action = ("faults", "rescale", "faults", "savepoint")[number % 4]
            step: dict[str, Any] = {
                "job": job,
                "kind": action,
                "epoch": draw_epoch(chance, epochs, number, parameters["steps"]),
            }
            if action == "rescale":
                step["parallelism"] = int(chance.integers(1, 4))
            elif action == "faults":
                step["faults"] = [_fault(chance) for _ in range(int(chance.integers(1, 4)))]
            steps.append(step)
    return Trace("mixed", seed, size, parameters, steps)


def _fault(chance: np.random.Generator) -> dict[str, Any]:
    """Draw a fault: a process is killed, or stopped for a while; the faults of a step are at most a second apart."""
    process = str(chance.choice(PROCESSES, p=[0.35, 0.35, 0.15, 0.15]))
    stopped = bool(chance.random() < 0.4)
    return {
        "process": process,
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
        job_trace = replace(trace, steps=[step for step in trace.steps if step["job"] == job])
        with KafkaBroker() as broker, SparkCluster(workers=2, python_path=source_folders()) as cluster:
            settings = offer_ports() | create_options(where, epoch_records=trace.parameters["epoch_records"])
            settings |= engine_options(trace) | cluster.settings() | _SETTINGS
            specification = Specification(
                str(where), options=settings, kafka=broker.bootstrap_servers, sql=job == "sql"
            )
            fill_topics(broker, specification, job_trace)
            _run(specification, cluster, job_trace, report)
            output = read_committed(broker)
        lines = [line for file in read_lines(specification.input).values() for line in file]
        expected = (
            compute_sql_lines(lines, window=WINDOW)
            if specification.sql
            else compute_lines(lines, bucket=BUCKET, window=WINDOW)
        )
        for problem in find_differences(output, {"computed": expected}):
            report.check(False, f"{job}: {problem}")
        output_lines = [line for partition in output.values() for line in partition]
        report.figures[f"{job} lines"] = f"{len(output_lines)} ({hash_lines(output_lines)[:16]})"
    return report


def _run(specification: Specification, cluster: SparkCluster, trace: Trace, report: Report) -> None:
    with Drivers(specification, standby=1) as drivers:
        for number, step in enumerate(trace.iterate_steps()):
            drivers.wait_for_epoch(step["epoch"], 300)
            if drivers.has_ended():
                report.count("too late")
                continue
            _do(specification, drivers, cluster, step, number, report)
            report.count(step["kind"])
            drivers.wait_for_more_epochs(f"epochs after {step}", 300)
            drivers.start_missing()
        drivers.wait(drivers.has_ended, "the end of the job", 600)
    for request in Path(specification.directory).glob("savepoint-*.done"):
        path = request.read_text(encoding="utf-8")
        try:
            open_snapshot(path, CheckpointStorage(str(Path(path).parent))).verify()
        except MillstreamError as problem:
            report.check(False, f"the savepoint {path} is not complete: {problem}")
        report.count("savepoints verified")


def _do(
    specification: Specification, drivers: Drivers, cluster: SparkCluster, step: Any, number: int, report: Report
) -> None:
    if step["kind"] == "savepoint":
        (Path(specification.directory) / f"savepoint-{number}.request").touch()
    elif step["kind"] == "rescale":
        _rescale(specification, step["parallelism"], report)
    else:
        for fault in step["faults"]:
            time.sleep(fault["after_ms"] / 1000)
            pids = _running_pids(fault["process"], drivers, cluster)
            if pids:
                _signal(pids[fault["pick"] % len(pids)], fault)
                report.count(f"{fault['process']} {fault['signal']}")


def _signal(pid: int, fault: Any) -> None:
    """Kill a process, or stop it and continue it later, while other faults happen."""
    if fault["signal"] == "KILL":
        kill(pid)
        return
    kill(pid, signal.SIGSTOP)
    threading.Timer(fault["seconds"], kill, (pid, signal.SIGCONT)).start()


def _running_pids(process: str, drivers: Drivers, cluster: SparkCluster) -> list[int]:
    if process == "worker":
        return cluster.python_workers()
    if process == "executor":
        return cluster.executors()
    leader = drivers.leader()
    if leader is None:
        return []
    return (
        [leader] if process == "driver" else find_descendants(leader, where=lambda child: "java" in child.command)[:1]
    )


def _rescale(specification: Specification, parallelism: int, report: Report) -> None:
    """Send a request to the leader; during a recovery there may be no answer, which is not a problem."""
    try:
        rescale_running_job(specification.options, parallelism)
    except MillstreamError:
        report.count("rescales without an answer")

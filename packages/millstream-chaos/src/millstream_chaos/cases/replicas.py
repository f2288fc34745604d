"""An exactly-once job from Kafka to Kafka, while brokers of a cluster of three are killed, stopped and restarted.

Promises: the committed output is that of a run without faults. The leader of a partition is killed and another broker
takes over; a follower is stopped and the set of in-sync replicas shrinks; two brokers are killed at once, so that
nothing can be written until one of them runs again.
Does not know: killed workers and drivers, see `kafka`; a single broker, see `brokers`."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from millstream.cluster.job_events import EpochDone, JobEvent
from millstream.testing.kafka import KafkaBroker
from millstream.testing.kafka_cluster import KafkaCluster
from millstream.testing.spark_cluster import kill
from millstream_chaos.jobs.drivers import run_without_faults, use_inline_engine
from millstream_chaos.jobs.keyed_job import Specification, build
from millstream_chaos.jobs.topics import OUTPUTS, fill_topics, options_with_restarts, read_committed
from millstream_chaos.outputs.compare import find_differences, hash_lines
from millstream_chaos.trace import Report, Trace, draw_epoch

FAULTS = ("leader dies", "follower hangs", "two die")
_SIZES = {
    "ci": {"records": 9_000, "keys": 300, "epoch_records": 300, "faults": 3},
    "normal": {"records": 60_000, "keys": 2_000, "epoch_records": 500, "faults": 9},
    "long": {"records": 400_000, "keys": 20_000, "epoch_records": 800, "faults": 45},
}
_WAIT = 180.0


def plan(seed: int, size: str) -> Trace:
    """Draw the faults of brokers: after which epoch, of which partition, and for how long."""
    parameters = dict(_SIZES[size])
    chance = np.random.default_rng([seed, 37])
    epochs = parameters["records"] / parameters["epoch_records"]
    steps = [
        {
            "kind": FAULTS[number % len(FAULTS)],
            "epoch": 1 + draw_epoch(chance, epochs, number, parameters["faults"]),
            "topic": str(chance.choice(["input", *OUTPUTS])),
            "partition": int(chance.integers(0, 4)),
            "seconds": round(float(chance.uniform(0.5, 6.0)), 1),
        }
        for number in range(parameters["faults"])
    ]
    return Trace("replicas", seed, size, parameters, steps)


def play(trace: Trace, directory: Path) -> Report:
    """Run the job with the faults of the trace, and check the output."""
    report = Report(trace)
    (directory / "checkpoints").mkdir()
    with KafkaCluster() as cluster, use_inline_engine():
        specification = Specification(
            str(directory),
            options=options_with_restarts(directory, trace),
            kafka=cluster.bootstrap_servers,
        )
        fill_topics(cluster, specification, trace)
        job, gate = build(specification), Gate([step["epoch"] for step in trace.steps])
        job.register_listener(gate)
        client = job.execute_async("kills of replicas")
        for step in trace.iterate_steps():
            gate.wait(lambda: client.wait(0.0))
            if not client.wait(0.0):
                _inject(cluster, step, gate, report)
        client.get_job_execution_result().result(_WAIT)
        output = read_committed(cluster)
    for problem in find_differences(output, run_without_faults(specification, directory / "without-faults")):
        report.check(False, problem)
    lines = [line for partition in output.values() for line in partition]
    report.figures |= {
        "faults": gate.passed,
        "lines": len(lines),
        "digest": hash_lines(lines)[:16],
    }
    report.check(gate.passed == len(trace.steps), f"the job ended after {gate.passed} of {len(trace.steps)} faults")
    return report


class Gate:
    """A listener that pauses the job after chosen epochs until a fault has begun."""

    def __init__(self, epochs: Sequence[int]) -> None:
        self._epochs = sorted(epochs)
        self._changed = threading.Condition()
        self._is_paused = False
        self.passed = 0

    def __call__(self, event: JobEvent) -> None:
        """Pause the thread of the job at or after the next chosen epoch."""
        if not isinstance(event, EpochDone) or self.passed == len(self._epochs):
            return
        if event.epoch >= self._epochs[self.passed]:
            with self._changed:
                self._is_paused = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._is_paused)

    def wait(self, ended: Callable[[], bool]) -> None:
        """Wait until the job is paused, or has ended."""
        with self._changed:
            while not self._is_paused and not ended():
                self._changed.wait(0.2)

    def release(self) -> None:
        """Let the job run until the next chosen epoch."""
        with self._changed:
            self._is_paused = False
            self.passed += 1
            self._changed.notify_all()


def _inject(cluster: KafkaCluster, step: Any, gate: Gate, report: Report) -> None:
    """Kill or stop brokers for a while, and wait until all of them are in sync again."""
    topic, partition = step["topic"], step["partition"]
    leader = cluster.leader(topic, partition)
    others = [broker for broker in cluster.brokers if broker is not leader]
    if step["kind"] == "follower hangs":
        assert others[0].pid is not None
        kill(others[0].pid, signal.SIGSTOP)
        gate.release()
        try:
            _await_in_sync(cluster, topic, partition, 2, report)
            time.sleep(step["seconds"])
        finally:
            kill(others[0].pid, signal.SIGCONT)
    else:
        killed: list[KafkaBroker] = [leader, others[0]] if step["kind"] == "two die" else [leader]
        for broker in killed:
            broker.kill()
        gate.release()
        time.sleep(step["seconds"])
        for broker in killed:
            broker.launch()
        for broker in killed:
            broker.await_up()
    _await_in_sync(cluster, topic, partition, cluster.count, report)


def _await_in_sync(cluster: KafkaCluster, topic: str, partition: int, count: int, report: Report) -> None:
    deadline = time.monotonic() + _WAIT
    while cluster.in_sync(topic, partition) != count:
        if time.monotonic() > deadline:
            report.check(False, f"{topic}/{partition} never had {count} replicas in sync")
            return
        time.sleep(0.1)

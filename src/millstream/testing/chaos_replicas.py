"""A job goes from Kafka to Kafka, exactly once, while brokers of a cluster of three die, hang and come back.

Promises: a consumer that reads what is committed finds the output of a run without faults. A partition's leader dies
and another broker takes over; a follower hangs and the set of replicas in sync shrinks; two brokers are away at once,
so that nothing can be written until one of them is back.
Does not know: workers and drivers that die, see `chaos_kafka`; a single broker, see `chaos_brokers`."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from millstream.cluster.job_events import EpochDone, JobEvent
from millstream.testing.chaos import Report, Trace
from millstream.testing.chaos_driven import fault_free, inline
from millstream.testing.chaos_job import Specification, build
from millstream.testing.chaos_kafka import OUTPUTS, committed, fill
from millstream.testing.chaos_output import differences, digest
from millstream.testing.kafka import KafkaBroker
from millstream.testing.kafka_cluster import KafkaCluster
from millstream.testing.spark_cluster import kill

FAULTS = ("leader dies", "follower hangs", "two die")
_SIZES = {
    "ci": {"records": 12_000, "keys": 300, "epoch_records": 300, "faults": 3},
    "normal": {"records": 60_000, "keys": 2_000, "epoch_records": 500, "faults": 9},
    "long": {"records": 400_000, "keys": 20_000, "epoch_records": 800, "faults": 45},
}
_WAIT = 180.0


def plan(seed: int, size: str) -> Trace:
    """Draw what happens to which partition's brokers after which epoch, and for how long."""
    parameters = dict(_SIZES[size])
    chance = np.random.default_rng([seed, 37])
    gap = parameters["records"] / parameters["epoch_records"] / (parameters["faults"] + 1)
    steps = [
        {
            "kind": FAULTS[number % len(FAULTS)],
            "epoch": 1 + int(gap * (number + 0.5 + chance.random() / 2)),
            "topic": str(chance.choice(["input", *OUTPUTS])),
            "partition": int(chance.integers(0, 4)),
            "seconds": round(float(chance.uniform(0.5, 6.0)), 1),
        }
        for number in range(parameters["faults"])
    ]
    return Trace("replicas", seed, size, parameters, steps)


def play(trace: Trace, directory: Path) -> Report:
    """Run the job, do to the brokers what the trace says, and compare."""
    report = Report(trace)
    (directory / "checkpoints").mkdir()
    with KafkaCluster() as cluster, inline():
        specification = Specification(
            str(directory),
            options={
                "execution.checkpointing.dir": str(directory / "checkpoints"),
                "execution.checkpointing.interval": "100 ms",
                "millstream.epoch.max-records": str(trace.parameters["epoch_records"]),
                "restart-strategy.type": "exponential-delay",
                "restart-strategy.exponential-delay.initial-backoff": "100 ms",
                "restart-strategy.exponential-delay.max-backoff": "1 s",
            },
            kafka=cluster.bootstrap_servers,
        )
        fill(cluster, specification, trace)
        job, gate = build(specification), Gate([step["epoch"] for step in trace.steps])
        job.register_listener(gate)
        client = job.execute_async("outlives replicas")
        for step in trace.shown():
            gate.wait(lambda: client.wait(0.0))
            if not client.wait(0.0):
                _do(cluster, step, gate, report)
        client.get_job_execution_result().result(_WAIT)
        found = committed(cluster)
    for problem in differences(found, fault_free(specification, directory / "without-faults")):
        report.check(False, problem)
    lines = [line for file in found.values() for line in file]
    report.figures |= {
        "faults": gate.passed,
        "lines": len(lines),
        "digest": digest(lines)[:16],
    }
    report.check(gate.passed == len(trace.steps), f"the job ended after {gate.passed} of {len(trace.steps)} faults")
    return report


class Gate:
    """A listener that holds the job after chosen epochs until a fault has begun."""

    def __init__(self, epochs: Sequence[int]) -> None:
        self._epochs = sorted(epochs)
        self._changed = threading.Condition()
        self._holding = False
        self.passed = 0

    def __call__(self, event: JobEvent) -> None:
        """Hold the job's thread if the epoch is one of the chosen, or later."""
        if not isinstance(event, EpochDone) or self.passed == len(self._epochs):
            return
        if event.epoch >= self._epochs[self.passed]:
            with self._changed:
                self._holding = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._holding)

    def wait(self, ended: Callable[[], bool]) -> None:
        """Wait until the job is held, or has ended."""
        with self._changed:
            while not self._holding and not ended():
                self._changed.wait(0.2)

    def release(self) -> None:
        """Let the job go on until the next chosen epoch."""
        with self._changed:
            self._holding = False
            self.passed += 1
            self._changed.notify_all()


def _do(cluster: KafkaCluster, step: Any, gate: Gate, report: Report) -> None:
    """Let brokers be away for a while; afterwards all of them are in sync again."""
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
        dying: list[KafkaBroker] = [leader, others[0]] if step["kind"] == "two die" else [leader]
        for broker in dying:
            broker.kill()
        gate.release()
        time.sleep(step["seconds"])
        for broker in dying:
            broker.launch()
        for broker in dying:
            broker.await_up()
    _await_in_sync(cluster, topic, partition, cluster.count, report)


def _await_in_sync(cluster: KafkaCluster, topic: str, partition: int, count: int, report: Report) -> None:
    deadline = time.monotonic() + _WAIT
    while cluster.in_sync(topic, partition) != count:
        if time.monotonic() > deadline:
            report.check(False, f"{topic}/{partition} never had {count} replicas in sync")
            return
        time.sleep(0.1)

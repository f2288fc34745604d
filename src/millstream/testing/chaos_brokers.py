"""The broker dies and comes back, transactions expire, and topics lose records before they were read.

Promises: a consumer that reads what is committed finds the output of a run without faults: every line once, each key's
in the order of its partition. Records that a topic has lost are told by name; a job that was told to go on without
counts them, and loses no others.
Does not know: workers and drivers that die; see `chaos_kafka`."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from millstream.cluster.job_events import EpochDone, JobEvent
from millstream.connectors.kafka.messages import Messages
from millstream.connectors.kafka.staging import Staged, Staging
from millstream.testing.chaos import Report, Trace, percentile
from millstream.testing.chaos_driven import ChaosStuck, fault_free, inline
from millstream.testing.chaos_job import Specification, build
from millstream.testing.chaos_kafka import committed, fill
from millstream.testing.chaos_output import differences, digest
from millstream.testing.chaos_truncated import Copying, lines_of
from millstream.testing.kafka import KafkaBroker

_SIZES = {
    "ci": {"records": 12_000, "keys": 300, "epoch_records": 300, "kills": 3, "expiries": 1, "truncations": 1},
    "normal": {"records": 60_000, "keys": 2_000, "epoch_records": 500, "kills": 8, "expiries": 3, "truncations": 3},
    "long": {"records": 400_000, "keys": 20_000, "epoch_records": 800, "kills": 40, "expiries": 10, "truncations": 10},
}
_TIMEOUT = 2.0  # seconds that the broker lets a transaction last
_WAIT = 180.0


def plan(seed: int, size: str) -> Trace:
    """After which epochs the broker is killed, whose output waits too long, and what topics lose."""
    parameters = dict(_SIZES[size])
    chance = np.random.default_rng([seed, 29])
    faults = ["kill"] * parameters["kills"] + ["expire"] * parameters["expiries"]
    chance.shuffle(faults)
    gap = parameters["records"] / parameters["epoch_records"] / (len(faults) + 1)
    steps: list[dict[str, Any]] = []
    for number, kind in enumerate(faults):
        step: dict[str, Any] = {"kind": kind, "epoch": 1 + int(gap * (number + 0.5 + chance.random() / 2))}
        if kind == "kill":
            step |= {"wait_ms": int(chance.integers(0, 200)), "down_ms": int(chance.integers(0, 2_000))}
        steps.append(step)
    for _ in range(parameters["truncations"]):
        read, lost, rest = (int(chance.integers(1, 400)) for _ in range(3))
        steps.append({"kind": "truncate", "read": read, "lost": lost, "rest": rest})
    return Trace("brokers", seed, size, parameters, steps)


def play(trace: Trace, directory: Path) -> Report:
    """Do what the trace says to one broker."""
    report = Report(trace)
    cleaning = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "300"}
    with KafkaBroker(cleaning) as broker, inline():
        _outlive(broker, directory, report)
        for number, step in enumerate(step for step in trace.steps if step["kind"] == "truncate"):
            _truncate(broker, directory / f"truncated-{number}", step, report)
    return report


# --------------------------------------------------------------------------------- deaths and expired transactions


def _outlive(broker: KafkaBroker, directory: Path, report: Report) -> None:
    """One job, while the broker dies again and again, and some output is read too slowly for its transaction."""
    trace = report.trace
    (directory / "checkpoints").mkdir()
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
        kafka=broker.bootstrap_servers,
        producing={"transaction.timeout.ms": str(int(_TIMEOUT * 1000))},
    )
    fill(broker, specification, trace)
    slow = SlowStaging([step["epoch"] for step in trace.steps if step["kind"] == "expire"], _TIMEOUT + 1.5)
    job = build(specification)
    epochs = _Epochs()
    job.register_listener(epochs)
    began = time.monotonic()
    with slow.reading():
        client = job.execute_async("outlives brokers")
        for step in trace.shown():
            if step["kind"] == "kill":
                _kill(broker, step, epochs, client.wait, report)
        client.get_job_execution_result().result(_WAIT)
    times = report.figures.pop("went on after", [])
    report.figures |= {
        "broker kills": len(times),
        "seconds to go on": f"{percentile(times, 0.5)} (most: {max(times, default=0)})",
        "expired transactions": slow.repeated,
        "seconds": round(time.monotonic() - began, 1),
    }
    kills = sum(step["kind"] == "kill" for step in trace.steps)
    report.check(2 * len(times) >= kills, "the job ended before half of the kills")
    report.check(slow.repeated == slow.planned, f"{slow.repeated} of {slow.planned} expired transactions were repeated")
    found = committed(broker)
    for problem in differences(found, fault_free(specification, directory / "without-faults")):
        report.check(False, problem)
    lines = [line for each in found.values() for line in each]
    report.figures |= {"lines": len(lines), "digest": digest(lines)[:16]}


def _kill(broker: KafkaBroker, step: Any, epochs: _Epochs, ended: Callable[[float], bool], report: Report) -> None:
    while epochs.last < step["epoch"] and not ended(0.0):
        epochs.wait(step["epoch"])
    time.sleep(step["wait_ms"] / 1000)
    if ended(0.0):
        return
    broker.kill()
    time.sleep(step["down_ms"] / 1000)
    broker.start()
    up, before = time.monotonic(), epochs.last
    while epochs.last <= before and not ended(0.0):
        epochs.wait(before + 1)
        if time.monotonic() - up > _WAIT:
            raise ChaosStuck(waited_for="an epoch after a broker's death", seconds=_WAIT, last="")
    report.figures.setdefault("went on after", []).append(round(time.monotonic() - up, 2))


class _Epochs:
    """A listener that others can wait for."""

    def __init__(self) -> None:
        self.last = 0
        self._news = threading.Condition()

    def __call__(self, observation: JobEvent) -> None:
        """Tell those who wait."""
        if isinstance(observation, EpochDone):
            with self._news:
                self.last = observation.epoch
                self._news.notify_all()

    def wait(self, epoch: int) -> None:
        """Wait a moment for an epoch."""
        with self._news:
            self._news.wait_for(lambda: self.last >= epoch, 0.2)


class SlowStaging:
    """Staged output of some epochs is read so slowly, once each, that the broker ends the transaction."""

    def __init__(self, epochs: Sequence[int], seconds: float) -> None:
        self._due, self._seconds, self.planned = sorted(epochs), seconds, len(epochs)
        self._slowed: list[str] = []
        self.repeated = 0

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Be slow in here."""
        read, slow = Staging.read, self

        def slowly(staging: Staging, staged: Staged) -> Iterator[Messages]:
            yield from slow.stalled(read(staging, staged), staged)

        with mock.patch.object(Staging, "read", slowly):
            yield

    def stalled(self, messages: Iterator[Messages], staged: Staged) -> Iterator[Messages]:
        """The messages; the first has been sent when the wait begins."""
        if staged.name in self._slowed:
            self._slowed.remove(staged.name)
            self.repeated += 1
        stalls = bool(self._due) and staged.epoch >= self._due[0]
        if stalls:
            self._due.pop(0)
            self._slowed.append(staged.name)
        for each in messages:
            yield each
            if stalls:
                time.sleep(self._seconds)
                stalls = False


# ---------------------------------------------------------------------------------------------- lost records


def _truncate(broker: KafkaBroker, directory: Path, step: Any, report: Report) -> None:
    """A job reads some records and stops with a savepoint. Meanwhile others come, and some of those are deleted."""
    directory.mkdir()
    copying = Copying(broker, directory)
    read, lost, rest = step["read"], step["lost"], step["rest"]
    lines = lines_of(read + lost + rest)
    broker.produce(copying.source, lines[:read])
    savepoint, _ = copying.run(read)
    broker.produce(copying.source, lines[read:])
    broker.delete_records(copying.source, 0, read + lost)
    told = copying.refused(savepoint)
    report.check(f"offsets {read} to " in told, f"{step}: {told!r} does not say which records are gone")
    report.check(broker.values(copying.target) == lines[:read], f"{step}: a job that failed has written something")
    _, counted = copying.run(rest, savepoint, reset="earliest")
    report.check(counted == lost, f"{step}: {lost} records are gone, and {counted} were counted")
    expected = [*lines[:read], *lines[read + lost :]]
    report.check(broker.values(copying.target) == expected, f"{step}: the output is not what was left")
    report.figures["records lost and told"] = report.figures.get("records lost and told", 0) + lost

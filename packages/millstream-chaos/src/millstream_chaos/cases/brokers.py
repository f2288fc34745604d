"""The broker is killed and restarted, transactions expire, and topics lose records before they are read.

Promises: the committed output is that of a run without faults: every line once, in the order of its key. A job fails
with an error that names lost records; a job with another offset reset counts them and loses no others.
Does not know: killed workers and drivers; see `kafka`."""

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
from millstream.testing.kafka import KafkaBroker
from millstream_chaos.jobs.copy_job import CopyJob, create_lines
from millstream_chaos.jobs.drivers import ChaosStuck, run_without_faults, use_inline_engine
from millstream_chaos.jobs.keyed_job import Specification, build
from millstream_chaos.jobs.topics import fill_topics, options_with_restarts, read_committed
from millstream_chaos.outputs.compare import find_differences, hash_lines
from millstream_chaos.trace import Report, Trace, draw_epoch, percentile

_SIZES = {
    "ci": {"records": 9_000, "keys": 300, "epoch_records": 300, "kills": 3, "expiries": 1, "truncations": 1},
    "normal": {"records": 60_000, "keys": 2_000, "epoch_records": 500, "kills": 8, "expiries": 3, "truncations": 3},
    "long": {"records": 400_000, "keys": 20_000, "epoch_records": 800, "kills": 40, "expiries": 10, "truncations": 10},
}
_TIMEOUT = 2.0  # seconds after which the broker aborts a transaction
_WAIT = 180.0


def plan(seed: int, size: str) -> Trace:
    """Draw after which epochs the broker is killed, which output is committed too late, and which records topics
    lose."""
    parameters = dict(_SIZES[size])
    chance = np.random.default_rng([seed, 29])
    faults = ["kill"] * parameters["kills"] + ["expire"] * parameters["expiries"]
    chance.shuffle(faults)
    epochs = parameters["records"] / parameters["epoch_records"]
    steps: list[dict[str, Any]] = []
    for number, fault in enumerate(faults):
        step: dict[str, Any] = {"kind": fault, "epoch": 1 + draw_epoch(chance, epochs, number, len(faults))}
        if fault == "kill":
            step |= {"wait_ms": int(chance.integers(0, 200)), "down_ms": int(chance.integers(0, 2_000))}
        steps.append(step)
    for _ in range(parameters["truncations"]):
        read, lost, rest = (int(chance.integers(1, 400)) for _ in range(3))
        steps.append({"kind": "truncate", "read": read, "lost": lost, "rest": rest})
    return Trace("brokers", seed, size, parameters, steps)


def play(trace: Trace, directory: Path) -> Report:
    """Carry out the trace with one broker."""
    report = Report(trace)
    cleaning = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "300"}
    with KafkaBroker(cleaning) as broker, use_inline_engine():
        _kill_and_expire(broker, directory, report)
        for number, step in enumerate(step for step in trace.steps if step["kind"] == "truncate"):
            _truncate(broker, directory / f"truncated-{number}", step, report)
    return report


# ---------------------------------------------------------------------------------- kills and expired transactions


def _kill_and_expire(broker: KafkaBroker, directory: Path, report: Report) -> None:
    """Run a job while the broker is killed repeatedly and some output is written too slowly for its transaction."""
    trace = report.trace
    (directory / "checkpoints").mkdir()
    specification = Specification(
        str(directory),
        options=options_with_restarts(directory, trace),
        kafka=broker.bootstrap_servers,
        producing={"transaction.timeout.ms": str(int(_TIMEOUT * 1000))},
    )
    fill_topics(broker, specification, trace)
    slow = SlowStaging([step["epoch"] for step in trace.steps if step["kind"] == "expire"], _TIMEOUT + 1.5)
    job = build(specification)
    epochs = _Epochs()
    job.register_listener(epochs)
    started = time.monotonic()
    with slow.patch_reads():
        client = job.execute_async("kills of brokers")
        for step in trace.iterate_steps():
            if step["kind"] == "kill":
                _kill(broker, step, epochs, client.wait, report)
        client.get_job_execution_result().result(_WAIT)
    times = report.figures.pop("recovery seconds", [])
    report.figures |= {
        "broker kills": len(times),
        "seconds to continue": f"{percentile(times, 0.5)} (most: {max(times, default=0)})",
        "expired transactions": slow.repeated,
        "seconds": round(time.monotonic() - started, 1),
    }
    kills = sum(step["kind"] == "kill" for step in trace.steps)
    report.check(2 * len(times) >= kills, "the job ended before half of the kills")
    report.check(slow.repeated == slow.planned, f"{slow.repeated} of {slow.planned} expired transactions were repeated")
    output = read_committed(broker)
    for problem in find_differences(output, run_without_faults(specification, directory / "without-faults")):
        report.check(False, problem)
    lines = [line for partition in output.values() for line in partition]
    report.figures |= {"lines": len(lines), "digest": hash_lines(lines)[:16]}


def _kill(broker: KafkaBroker, step: Any, epochs: _Epochs, ended: Callable[[float], bool], report: Report) -> None:
    while epochs.last < step["epoch"] and not ended(0.0):
        epochs.wait(step["epoch"])
    time.sleep(step["wait_ms"] / 1000)
    if ended(0.0):
        return
    broker.kill()
    time.sleep(step["down_ms"] / 1000)
    broker.start()
    started, before = time.monotonic(), epochs.last
    while epochs.last <= before and not ended(0.0):
        epochs.wait(before + 1)
        if time.monotonic() - started > _WAIT:
            raise ChaosStuck(waited_for="an epoch after a kill of the broker", seconds=_WAIT, last="")
    report.figures.setdefault("recovery seconds", []).append(round(time.monotonic() - started, 2))


class _Epochs:
    """A listener with which other threads wait for an epoch."""

    def __init__(self) -> None:
        self.last = 0
        self._changed = threading.Condition()

    def __call__(self, event: JobEvent) -> None:
        """Notify the waiting threads."""
        if isinstance(event, EpochDone):
            with self._changed:
                self.last = event.epoch
                self._changed.notify_all()

    def wait(self, epoch: int) -> None:
        """Wait at most 0.2 s for an epoch."""
        with self._changed:
            self._changed.wait_for(lambda: self.last >= epoch, 0.2)


class SlowStaging:
    """Reads the staged output of some epochs once so slowly that the broker aborts the transaction."""

    def __init__(self, epochs: Sequence[int], seconds: float) -> None:
        self._due, self._seconds, self.planned = sorted(epochs), seconds, len(epochs)
        self._slowed: list[str] = []
        self.repeated = 0

    @contextlib.contextmanager
    def patch_reads(self) -> Iterator[None]:
        """Replace `Staging.read` in the `with` block."""
        read, slow = Staging.read, self

        def read_slowly(staging: Staging, staged: Staged) -> Iterator[Messages]:
            yield from slow.delay(read(staging, staged), staged)

        with mock.patch.object(Staging, "read", read_slowly):
            yield

    def delay(self, messages: Iterator[Messages], staged: Staged) -> Iterator[Messages]:
        """Yield the messages, with a delay after the first one."""
        if staged.name in self._slowed:
            self._slowed.remove(staged.name)
            self.repeated += 1
        stalls = bool(self._due) and staged.epoch >= self._due[0]
        if stalls:
            self._due.pop(0)
            self._slowed.append(staged.name)
        for message in messages:
            yield message
            if stalls:
                time.sleep(self._seconds)
                stalls = False


# ---------------------------------------------------------------------------------------------- lost records


def _truncate(broker: KafkaBroker, directory: Path, step: Any, report: Report) -> None:
    """Delete records that arrive while a job is stopped with a savepoint, and start the job again."""
    directory.mkdir()
    job = CopyJob(broker, directory)
    read, lost, rest = step["read"], step["lost"], step["rest"]
    lines = create_lines(read + lost + rest)
    broker.produce(job.source, lines[:read])
    savepoint, _ = job.run(read)
    broker.produce(job.source, lines[read:])
    broker.delete_records(job.source, 0, read + lost)
    error = job.run_until_failure(savepoint)
    report.check(f"offsets {read} to " in error, f"{step}: {error!r} does not name the lost records")
    report.check(broker.values(job.target) == lines[:read], f"{step}: a job that failed has written something")
    _, counted = job.run(rest, savepoint, reset="earliest")
    report.check(counted == lost, f"{step}: {lost} records were lost, and {counted} were counted")
    expected = [*lines[:read], *lines[read + lost :]]
    report.check(broker.values(job.target) == expected, f"{step}: the output differs from the remaining records")
    report.figures["lost records that were reported"] = report.figures.get("lost records that were reported", 0) + lost

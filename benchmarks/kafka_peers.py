"""What the Kafka contestants share: a served broker, the check, and the answer.

Promises: standard library only; the broker runs in millstream's own environment, whatever the contestant's is.
Does not know: any engine."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import common

CHECKED = 5_000


class Served:
    """A broker in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        told = self._told()
        self.servers: str = told["servers"]
        self.jar: str | None = told["jar"]

    def _told(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            message = "the broker did not answer"
            raise SystemExit(message)
        return dict(json.loads(line))

    def check(self) -> dict[str, Any]:
        """The digest of what is in the topic `check`."""
        return self._ask("check")

    def latency(self, rate: int, seconds: int) -> dict[str, Any]:
        """The latencies of records that are sent to `in` now, until they are received from `out`."""
        return self._ask(f"latency {rate} {seconds}")

    def _ask(self, question: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{question}\n".encode())
        self._process.stdin.flush()
        return self._told()


@contextmanager
def served(records: int, partitions: int, jar: Path | None = None) -> Iterator[Served]:
    """A broker with `records` records in the topic `in`, and Flink's connector in a folder if that is asked for."""
    python = os.environ.get("MILLSTREAM_PYTHON", sys.executable)
    repository = Path(__file__).resolve().parent.parent
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(repository), str(repository / "src")])}
    command = [python, str(Path(__file__).with_name("kafka_server.py")), "--records", str(records)]
    command += ["--partitions", str(partitions)]
    command += [] if jar is None else ["--jar", str(jar)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables)
    try:
        yield Served(server)
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(60)


def ends(records: int, partitions: int) -> list[int]:
    """How many of the first records each partition has."""
    return [len(range(partition, records, partitions)) for partition in range(partitions)]


# What millstream's producer and reader set, for every contestant; Flink's client has names of its own for them.
PRODUCER: dict[str, Any] = {
    "linger.ms": 20,
    "batch.size": 1 << 20,
    "batch.num.messages": 50_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 256 * 1024,
    "acks": "all",
}
CONSUMER: dict[str, Any] = {"fetch.queue.backoff.ms": 5, "fetch.message.max.bytes": 4 << 20}
JAVA_PRODUCER = {"linger.ms": "20", "batch.size": str(1 << 20), "buffer.memory": str(256 << 20), "acks": "all"}
JAVA_CONSUMER = {"max.partition.fetch.bytes": str(4 << 20), "max.poll.records": "10000"}


def measure(server: Served, run: Callable[[str, int], None], args: argparse.Namespace) -> None:
    """Copy a few records and look at them, or measure; `run(topic, count)` copies the first records to a topic.

    The broker holds `records` records, so no more than these are copied, however short that is."""

    def check() -> dict[str, Any]:
        run("check", CHECKED)
        return server.check()

    fixed = argparse.Namespace(**{**vars(args), "timed": 0.0})
    common.contest(args, check, lambda: common.rate_of(lambda count: run("out", count), fixed))

"""Records that carry the time of their creation, from a socket to a sink function, and how long they took.

Promises: standard library only, so that it imports in every peer's environment. A record is a line with its number and
the nanoseconds at which it was created, by the machine's monotonic clock, which all processes share. Records are
created at their time, however slow the reader is, so that waiting counts.
Does not know: engines."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import common

KEYS = 100
WARM_UP_SECONDS = 5
_TICK = 0.005  # seconds; records of one tick are sent together
_SAMPLES_PER_SECOND = 1_000
_DEADLINE = 240.0

_files: dict[str, int] = {}


def parse(line: str) -> tuple[int, int]:
    """Return the number of a record, and when it was created."""
    number, _, created = line.partition(" ")
    return int(number), int(created)


def note_arrival(directory: str, rate: int, number: int, created: int) -> None:
    """Write how long a record took to a file of this process: of each record, or of some at a high rate."""
    if number % max(1, rate // _SAMPLES_PER_SECOND):
        return
    file = _files.get(directory)
    if file is None:
        path = os.path.join(directory, str(os.getpid()))
        file = _files[directory] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, b"%d %d\n" % (number, time.monotonic_ns() - created))


class Feed:
    """Sends records to the first reader that connects, or nothing if it does not start."""

    def __init__(self, rate: int, seconds: int, *, starts: bool = True) -> None:
        self.rate, self._starts = rate, starts
        self.connected = threading.Event()
        self._count = rate * (WARM_UP_SECONDS + seconds)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.directory = tempfile.mkdtemp(prefix="benchmark-arrivals-")
        self._hold = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        connection = self._server.accept()[0]
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connected.set()
        with connection:
            if not self._starts:
                self._hold.wait()
                return
            began, number = time.monotonic(), 0
            while number < self._count:
                due = min(self._count, int((time.monotonic() - began) * self.rate) + 1)
                created = time.monotonic_ns()
                lines = b"".join(b"%d %d\n" % (each, created) for each in range(number, due))
                if lines:
                    connection.sendall(lines)
                number = max(number, due)
                next_record = began + number / self.rate
                time.sleep(max(0.0, max(next_record, began + _TICK) - time.monotonic()))
            self._hold.wait()

    def wait(self) -> dict[str, Any]:
        """Wait until the last records have arrived; the percentiles of those after the warm-up."""
        step = max(1, self.rate // _SAMPLES_PER_SECOND)
        expected = len(range(0, self._count, step))
        deadline = time.monotonic() + _DEADLINE
        while len(arrivals := self._read()) < expected:
            if time.monotonic() > deadline:
                message = f"{len(arrivals)} of {expected} records have arrived in {_DEADLINE:g} s"
                raise SystemExit(message)
            time.sleep(0.2)
        first = self.rate * WARM_UP_SECONDS
        return common.latencies([nanos / 1e6 for number, nanos in arrivals if number >= first])

    def _read(self) -> list[tuple[int, int]]:
        lines = [line for path in Path(self.directory).iterdir() for line in path.read_text().split("\n")[:-1]]
        return [parse(line) for line in lines]

    def end(self) -> None:
        """End the stream: the reader's input is complete."""
        self._hold.set()
        self._server.close()


@contextmanager
def feed(rate: int, seconds: int, *, starts: bool = True) -> Iterator[Feed]:
    """A feed, which ends with the block."""
    made = Feed(rate, seconds, starts=starts)
    try:
        yield made
    finally:
        made.end()

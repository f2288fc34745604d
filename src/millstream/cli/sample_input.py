"""Sample input for `millstream dev --sample`: writes the lines of a file to a topic repeatedly.

Promises: the file is read again for every round, so that it can be changed meanwhile. Empty lines are left out.
Does not know: what the lines mean."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from millstream.testing.kafka import KafkaBroker

_BATCHES_PER_SECOND = 2


def repeat_lines(broker: KafkaBroker, topic: str, path: Path, rate: int) -> None:
    """Create a topic, and write `rate` lines per second to it in a thread of its own."""
    broker.create_topic(topic)

    def write() -> None:
        lines = read_rounds(path)
        written, started = 0, time.monotonic()
        while True:
            time.sleep(1 / _BATCHES_PER_SECOND)
            due = int((time.monotonic() - started) * rate) - written
            batch = [line for _, line in zip(range(due), lines, strict=False)]
            written += due
            try:
                broker.produce(topic, batch)
            except MillstreamError:  # the broker has ended, because the command ends
                return

    threading.Thread(target=write, name=f"sample-{topic}", daemon=True).start()


def read_rounds(path: Path) -> Iterator[str]:
    """Yield the lines of a file repeatedly; stop when the file has no lines."""
    while lines := [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]:
        yield from lines

"""The newest log lines of this process, and what its tasks print, for readers that follow them.

Promises: the number and length of lines is bounded; each line has a number, from which a reader continues.
Does not know: who reads them; where else logs go."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass

from millstream.cluster.job_events import EpochCut, JobEvent, RescaleDone, StatusChanged

_KEPT_LINES = 5_000
_LONGEST = 4_000
TASKS = "tasks"


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line. `time` is milliseconds since 1970; the source of what tasks print is `tasks`."""

    number: int
    time: int
    level: str
    source: str
    text: str


class LogLines(logging.Handler):
    """Keeps the newest lines of the loggers that it is added to."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._lines: deque[LogLine] = deque(maxlen=_KEPT_LINES)
        self._next = 1
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a log record, with its traceback. A program that has not configured logging still gets warnings on
        standard error."""
        if not logging.getLogger().handlers and logging.lastResort is not None and record.levelno >= logging.WARNING:
            logging.lastResort.handle(record)
        self.add(round(record.created * 1000), record.levelname, record.name, self.format(record))

    def add(self, time: int, level: str, source: str, text: str) -> None:
        """Keep a text, which may have several lines."""
        text = text.rstrip("\n")[:_LONGEST].encode("utf-8", "backslashreplace").decode()
        with self._guard:
            self._lines.append(LogLine(self._next, time, level, source, text))
            self._next += 1

    def after(self, number: int, limit: int) -> list[LogLine]:
        """Return the newest `limit` lines after the one of a number, oldest first."""
        with self._guard:
            newer = [line for line in self._lines if line.number > number]
        return newer[-limit:]


def describe_event(event: JobEvent) -> tuple[str, str] | None:
    """Return the level and the text of a job event that is logged; None for other events."""
    match event:
        case StatusChanged(status=status, restarts=restarts, cause=cause):
            text = f"the status is {status.name}" + (f", after {restarts} restarts" if restarts else "")
            return ("INFO", text) if cause is None else ("WARNING", f"{text}\n{cause}")
        case RescaleDone(slots=slots, pause_ms=pause):
            return "INFO", f"the job runs in {slots} slots, after a pause of {pause:.0f} ms"
        case EpochCut(epoch=epoch):
            return "WARNING", f"epoch {epoch} was too large, and is run again with less input"
    return None

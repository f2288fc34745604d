"""Progress of a running job: epoch, rows per second, watermark, lag, checkpoints, restarts.

Promises: the listener does not block the job for long, and keeps a bounded amount of data.
Does not know: jobs and clients, terminals and notebooks."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

from millstream.cluster.job_events import CheckpointDone, EpochDone, JobEvent, RoundDone, StatusChanged
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.job.job_status import JobStatus

_RATE_OVER = 5.0  # seconds over which rows per second are averaged
_NOTES = 6
_LATE = "numLateRecordsDropped"


class Progress:
    """The progress of a job so far: a listener for job events. `note` adds a line of the program."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.status = JobStatus.CREATED
        self.restarts = 0
        self.records = 0
        self.late = 0
        self.epoch: EpochDone | None = None
        self.checkpoint: CheckpointDone | None = None
        self.notes: deque[str] = deque(maxlen=_NOTES)
        self.on_change: Callable[[], None] = _nothing
        self.on_note: Callable[[str], None] = _nothing
        self._clock = clock
        self._began = clock()
        self._lock = threading.RLock()  # the threads of the job, the program and the display use it
        self._recent: deque[tuple[float, int]] = deque()

    def __call__(self, event: JobEvent) -> None:
        """Process one event of the job."""
        with self._lock:
            match event:
                case EpochDone():
                    self.epoch = event
                    self.records += event.records
                    self.late += sum(int(counts.get(_LATE, 0)) for counts in event.metrics.values())
                    self._recent.append((self._clock(), event.records))
                    self._forget_old()
                case CheckpointDone():
                    self.checkpoint = event
                case StatusChanged():
                    self._change_status(event)
        self.on_change()

    def note(self, text: str) -> None:
        """Show a line below the numbers."""
        line = f"{self._clock() - self._began:6.1f} s  {text}"
        with self._lock:
            self.notes.append(line)
        self.on_note(line)
        self.on_change()

    def _change_status(self, change: StatusChanged) -> None:
        self.status, self.restarts = change.status, change.restarts
        if change.status is JobStatus.RESTARTING:
            origin = "the beginning" if self.checkpoint is None else f"checkpoint {self.checkpoint.id}"
            self.note(f"restarting from {origin}: {_last_line(change.cause)}")
        elif change.status is JobStatus.FAILED:
            self.note(f"failed: {_last_line(change.cause)}")

    def recent_notes(self) -> list[str]:
        """Return the newest notes."""
        with self._lock:
            return list(self.notes)

    def rate(self) -> float:
        """Return the rows per second over the last seconds."""
        now = self._clock()
        span = min(_RATE_OVER, max(now - self._began, 0.001))
        with self._lock:
            self._forget_old()
            return sum(records for _, records in self._recent) / span

    def _forget_old(self) -> None:
        earliest = self._clock() - _RATE_OVER
        while self._recent and self._recent[0][0] < earliest:
            self._recent.popleft()

    def rows(self) -> list[tuple[str, str]]:
        """Return the facts to show, as (name, text)."""
        epoch, checkpoint = self.epoch, self.checkpoint
        rows = [("status", self.status.name), ("restarts", str(self.restarts))]
        if epoch is not None:
            rows += [
                ("epoch", f"{epoch.epoch}, took {epoch.duration_ms:.0f} ms"),
                ("rows", f"{self.records:,}, {self.rate():,.0f}/s" + (f", {self.late:,} late" if self.late else "")),
                ("watermark", format_watermark(epoch.watermark)),
                ("lag", "unknown" if epoch.lag is None else f"{epoch.lag:,} rows"),
            ]
            rows += [(f"iteration {name}", format_round(done)) for name, done in epoch.iterations.items()]
        if checkpoint is not None:
            size = f"{format_bytes(checkpoint.bytes)} new of {format_bytes(checkpoint.full_bytes)}"
            rows.append(("checkpoint", f"{checkpoint.id}, {size}, took {checkpoint.duration_ms:.0f} ms"))
        return rows

    def line(self) -> str:
        """Return the facts to show as one line."""
        return f"{self.name}: " + "; ".join(f"{name} {text}" for name, text in self.rows())


def _nothing(*_: str) -> None:
    """Do nothing: the default callback."""


def format_round(done: RoundDone) -> str:
    """Return the round of an iteration, the size of its workset and its aggregates; in words before and after it."""
    if done.phase in ("close", "ended"):
        return f"terminated after {done.round} rounds"
    aggregates = "".join(f", {name} = {value:g}" for name, value in done.aggregates.items())
    return f"round {done.round}, {done.feedback:,} records in the workset{aggregates}"


def format_watermark(watermark: int) -> str:
    """Return a watermark as date and time; the minimum and the maximum in words."""
    if watermark <= MIN_WATERMARK:
        return "none yet"
    if watermark >= MAX_WATERMARK:
        return "end of input"
    try:
        return datetime.fromtimestamp(watermark / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")[:-6]
    except (OverflowError, ValueError, OSError):
        return str(watermark)  # event time that is not in milliseconds since 1970


def format_bytes(size: int) -> str:
    """Return a number of bytes with a readable unit."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def _last_line(cause: str | None) -> str:
    """Return the line of an error message that names the error: the last one of a traceback, without the operator."""
    lines = [line.strip() for line in (cause or "unknown cause").splitlines() if line.strip()]
    named = [line for line in lines if not line.startswith(("in operator", "hint:", "Traceback", "File", "^", "~"))]
    return (named or lines)[-1]

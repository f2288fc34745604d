"""A running job on the terminal: epoch, rows per second, watermark, lag, checkpoints, restarts.

Promises: a listener that never blocks the job for long and never raises into it; on a terminal one panel that is
redrawn in place, elsewhere at most one line a second, and one for every restart and for the end.
Does not know: jobs or clients; it is told observations, and asked for nothing else."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from millstream.cluster.observations import CheckpointDone, EpochDone, Observation, StatusChanged
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.job.job_status import JobStatus

_RATE_OVER = 5.0  # seconds over which rows per second are averaged
_LINE_EVERY = 1.0
_NOTES = 6
_LATE = "numLateRecordsDropped"


class Progress:
    """What is known of a job so far. Call it with observations; `note` adds a line of the program's own."""

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
        self._lock = threading.RLock()  # the job tells, the program notes, the display reads: three threads
        self._recent: deque[tuple[float, int]] = deque()

    def __call__(self, observation: Observation) -> None:
        """Take one observation in."""
        with self._lock:
            match observation:
                case EpochDone():
                    self.epoch = observation
                    self.records += observation.records
                    self.late += sum(int(counts.get(_LATE, 0)) for counts in observation.metrics.values())
                    self._recent.append((self._clock(), observation.records))
                case CheckpointDone():
                    self.checkpoint = observation
                case StatusChanged():
                    self._status(observation)
        self.on_change()

    def note(self, text: str) -> None:
        """Show a line below the numbers."""
        line = f"{self._clock() - self._began:6.1f} s  {text}"
        with self._lock:
            self.notes.append(line)
        self.on_note(line)
        self.on_change()

    def _status(self, change: StatusChanged) -> None:
        self.status, self.restarts = change.status, change.restarts
        if change.status is JobStatus.RESTARTING:
            origin = "the beginning" if self.checkpoint is None else f"checkpoint {self.checkpoint.id}"
            self.note(f"restarting from {origin}: {_last_line(change.cause)}")
        elif change.status is JobStatus.FAILED:
            self.note(f"failed: {_last_line(change.cause)}")

    def rate(self) -> float:
        """Rows per second over the last seconds."""
        now = self._clock()
        span = min(_RATE_OVER, max(now - self._began, 0.001))
        with self._lock:
            while self._recent and self._recent[0][0] < now - _RATE_OVER:
                self._recent.popleft()
            return sum(records for _, records in self._recent) / span

    def rows(self) -> list[tuple[str, str]]:
        """Everything there is to show, as (name, text)."""
        epoch, checkpoint = self.epoch, self.checkpoint
        shown = [("status", self.status.name), ("restarts", str(self.restarts))]
        if epoch is not None:
            shown += [
                ("epoch", f"{epoch.epoch}, took {epoch.duration_ms:.0f} ms"),
                ("rows", f"{self.records:,}, {self.rate():,.0f}/s" + (f", {self.late:,} late" if self.late else "")),
                ("watermark", watermark_text(epoch.watermark)),
                ("lag", "unknown" if epoch.lag is None else f"{epoch.lag:,} rows"),
            ]
        if checkpoint is not None:
            size = f"{bytes_text(checkpoint.bytes)} new of {bytes_text(checkpoint.full_bytes)}"
            shown.append(("checkpoint", f"{checkpoint.id}, {size}, took {checkpoint.duration_ms:.0f} ms"))
        return shown

    def line(self) -> str:
        """Everything there is to show, as one line."""
        return f"{self.name}: " + "; ".join(f"{name} {text}" for name, text in self.rows())

    def panel(self) -> RenderableType:
        """Everything there is to show, as a panel."""
        table = Table.grid(padding=(0, 2))
        for name, text in self.rows():
            table.add_row(Text(name, style="dim"), Text(text))
        parts: list[RenderableType] = [table]
        with self._lock:
            notes = list(self.notes)
        if notes:
            parts += [Text(""), *(Text(note, style="yellow") for note in notes)]
        return Panel(Group(*parts), title=Text(self.name), title_align="left", expand=False)


@contextmanager
def progress(
    name: str, *, console: Console | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Show a job while a block runs; what the block is given is the listener to register with its environment."""
    where = console or Console(stderr=True)
    shown = Progress(name, clock)
    if where.is_terminal:
        live = Live(console=where, get_renderable=shown.panel, refresh_per_second=5)
    else:
        live = nullcontext()  # type: ignore[assignment]
        shown.on_note = lambda text: _print(where, text)
        shown.on_change = _at_most_once_a_second(shown, where, clock)
    with live:
        try:
            yield shown
        finally:
            if not where.is_terminal and shown.epoch is not None:
                _print(where, shown.line())


def _at_most_once_a_second(shown: Progress, where: Console, clock: Callable[[], float]) -> Callable[[], None]:
    last = clock()

    def change() -> None:
        nonlocal last
        if clock() - last >= _LINE_EVERY and shown.epoch is not None:
            last = clock()
            _print(where, shown.line())

    return change


def _print(where: Console, text: str) -> None:
    with suppress(OSError):  # a reader that has gone is no reason for the job to fail
        where.print(text, markup=False, highlight=False, soft_wrap=True)


def _nothing(*_: str) -> None:
    """Nobody looks."""


def watermark_text(watermark: int) -> str:
    """A watermark as a time of day; its two ends in words."""
    if watermark <= MIN_WATERMARK:
        return "none yet"
    if watermark >= MAX_WATERMARK:
        return "end of input"
    try:
        return datetime.fromtimestamp(watermark / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")[:-6]
    except (OverflowError, ValueError, OSError):
        return str(watermark)  # event time that counts something else than milliseconds since 1970


def bytes_text(size: int) -> str:
    """A number of bytes for people."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def _last_line(cause: str | None) -> str:
    """The line of an error message that names the error: a traceback ends with it, before millstream says where."""
    lines = [line.strip() for line in (cause or "unknown cause").splitlines() if line.strip()]
    named = [line for line in lines if not line.startswith(("in operator", "Traceback", "File", "^", "~"))]
    return (named or lines)[-1]

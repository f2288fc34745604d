"""Progress of a running job on the terminal.

Promises: on a terminal one panel is drawn in place; elsewhere at most one line a second is printed, and one for every
restart and for the end.
Does not know: jobs or clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from millstream.client.job_progress import Progress
from millstream.engine.announcement import hide_announcements

_LINE_EVERY = 1.0


@contextmanager
def progress(
    name: str, *, console: Console | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Show a job while a block runs; the block gets the listener to register with its environment."""
    where = console or Console(stderr=True)
    listener = Progress(name, clock)
    if where.is_terminal:
        hide_announcements()
        live = Live(console=where, get_renderable=lambda: _panel(listener), refresh_per_second=5)
    else:
        live = nullcontext()  # type: ignore[assignment]
        listener.on_note = lambda text: _print(where, text)
        listener.on_change = _print_at_most_once_a_second(listener, where, clock)
    with live:
        try:
            yield listener
        finally:
            if not where.is_terminal and listener.epoch is not None:
                _print(where, listener.line())


def _panel(progress: Progress) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for name, text in progress.rows():
        table.add_row(Text(name, style="dim"), Text(text))
    parts: list[RenderableType] = [table]
    notes = progress.recent_notes()
    if notes:
        parts += [Text(""), *(Text(note, style="yellow") for note in notes)]
    return Panel(Group(*parts), title=Text(progress.name), title_align="left", expand=False)


def _print_at_most_once_a_second(progress: Progress, where: Console, clock: Callable[[], float]) -> Callable[[], None]:
    last = clock()

    def change() -> None:
        nonlocal last
        if clock() - last >= _LINE_EVERY and progress.epoch is not None:
            last = clock()
            _print(where, progress.line())

    return change


def _print(where: Console, text: str) -> None:
    with suppress(OSError):  # a closed terminal must not fail the job
        where.print(text, markup=False, highlight=False, soft_wrap=True)

"""One line about a running job, at the bottom of what is printed.

Promises: nothing but what is written goes to the output unless it is a terminal; the line never stays behind and is
never mixed with a line of output. Any thread may call.
Does not know: jobs; it is given texts."""

from __future__ import annotations

import shutil
import threading
from types import TracebackType
from typing import TextIO

from millstream.cli.shell.screen import write
from millstream.graph.explain import printable

_ERASE = "\r\x1b[2K"


class StatusLine:
    """Lines of `out` with a line below them on `bar` that comes and goes. Use it as a context manager."""

    def __init__(self, out: TextIO, bar: TextIO) -> None:
        self._out, self._bar, self._shown = out, bar, bar.isatty()
        self._drawn = False
        self._closed = False
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        """Write a line of output; the line below it comes back with its next text."""
        with self._lock:
            self._draw("")
            write(self._out, f"{line}\n")

    def show(self, text: str) -> None:
        """Put a text into the line."""
        with self._lock:
            if not self._shown or self._closed:
                return
            self._draw(printable(text)[: shutil.get_terminal_size().columns - 1])

    def _draw(self, text: str) -> None:
        if text or self._drawn:
            write(self._bar, f"{_ERASE}\x1b[2m{text}\x1b[0m" if text else _ERASE)
        self._drawn = bool(text)

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
            self._draw("")

"""The output of the shell: results, messages, errors, and a status line below them.

Promises: results go to standard output, and messages of scripts do not; control characters in data are replaced, so
that they cannot move the cursor. The status line is drawn on terminals only, and never mixes with a line of output.
Does not know: statements, jobs."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import traceback
from types import TracebackType
from typing import TextIO

from millstream.errors import MillstreamError
from millstream.graph.explain import printable
from millstream.sql.errors import SqlError

_COLOURS = {"ERROR": "31", "WARNING": "33", "INFO": "2"}


class Screen:
    """The output streams of the shell: one for results, one for errors and messages.

    They are determined when the object is created, because threads of jobs may later redirect the streams of the
    process."""

    def __init__(self, *, interactive: bool, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.interactive = interactive
        self.out = out or sys.stdout
        self.err = err or (self.out if interactive else sys.stderr)

    def line(self, text: str = "") -> None:
        """Write a line of a result."""
        write(self.out, f"{_replace_control_characters(text)}\n")

    def message(self, text: str, level: str = "INFO") -> None:
        """Write a message, which is not part of a result."""
        stream = self.err
        has_colours = stream.isatty() and not os.environ.get("NO_COLOR")
        label = f"\x1b[{_COLOURS[level]}m[{level}]\x1b[0m" if has_colours else f"[{level}]"
        write(stream, f"{label} {_replace_control_characters(text)}\n")

    def error(self, error: BaseException, *, verbose: bool, prefix: str = "") -> None:
        """Write an error with its hint, and if `verbose` with its traceback."""
        self.message(f"{prefix}{format_error(error)}", "ERROR")
        if verbose:
            write(self.err, _replace_control_characters("".join(traceback.format_exception(error))))

    def clear(self) -> None:
        """Clear the terminal."""
        if self.out.isatty():
            write(self.out, "\x1b[2J\x1b[H")


def _replace_control_characters(text: str) -> str:
    """Replace each control character by one visible character, so that a caret in the next line stays aligned."""
    return "".join(character if character.isprintable() or character in "\n\t" else "\ufffd" for character in text)


def write(stream: TextIO, text: str) -> None:
    """Write a text and flush; characters that the stream cannot encode are escaped."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def format_error(error: BaseException) -> str:
    """Return the message and the hint of an error."""
    if isinstance(error, MillstreamError):
        text, hint = error.message.rstrip("\n"), error.hint
    else:
        message = str(error).strip()
        text = f"{type(error).__name__}: {message}" if message else type(error).__name__
        hint = "this is a bug in millstream: please report it with its traceback (SET 'sql-client.verbose' = 'true')"
    return f"{text}\n  hint: {hint}" if hint else text


def relocate(error: SqlError, statement: str, start: int, script: str) -> SqlError:
    """Change the position of an error in a statement to the position in the script, if it has one."""
    if error.text != statement or error.at is None:
        return error
    error.text, error.at = None, error.at + start
    return error.with_text(script).with_traceback(error.__traceback__)


_ERASE = "\r\x1b[2K"


class StatusLine:
    """Writes lines to `out`, with a status line below them on `bar` while the context manager is active.

    Thread-safe."""

    def __init__(self, out: TextIO, bar: TextIO) -> None:
        self._out, self._bar, self._is_terminal = out, bar, bar.isatty()
        self._is_drawn = False
        self._closed = False
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        """Write a line of output; the status line is removed until its next text."""
        with self._lock:
            self._draw("")
            write(self._out, f"{line}\n")

    def show(self, text: str) -> None:
        """Show a text in the status line."""
        with self._lock:
            if not self._is_terminal or self._closed:
                return
            self._draw(printable(text)[: shutil.get_terminal_size().columns - 1])

    def _draw(self, text: str) -> None:
        if text or self._is_drawn:
            write(self._bar, f"{_ERASE}\x1b[2m{text}\x1b[0m" if text else _ERASE)
        self._is_drawn = bool(text)

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
            self._draw("")

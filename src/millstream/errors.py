"""The three domains of errors. The domain says whether a restart of the job can help.

Promises: every error of millstream is a `MillstreamError` in exactly one domain; its text says what happened, with
which values, and after "hint:" what the reader can do.
Does not know: the errors themselves; each error class is in the module that raises it."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Callable, Iterator, Sequence


class MillstreamError(Exception):
    """The base class of all errors; `hint` says what the reader can do. It is a class attribute or an argument."""

    hint: str | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        if hint is not None:
            self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        if not self.hint:
            return self.message
        return f"{self.message}\nhint: {self.hint}" if "\n" in self.message else f"{self.message}; hint: {self.hint}"

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints for the error: none of millstream's own frames."""
        return _add_source_lines(format_for_author(self, _is_cell).splitlines())


class UserError(MillstreamError):
    """The program is wrong: a function raised an exception, or types or options are not valid."""


class InvalidArgument(UserError, ValueError):
    """An argument has a value that is not possible. Programs written for PyFlink can catch it as `ValueError`."""


class InvalidArgumentType(UserError, TypeError):
    """An argument has the wrong type. Programs written for PyFlink can catch it as `TypeError`."""


class ExternalError(MillstreamError):
    """Something outside of the program failed, such as a disk, a broker or an executor. A restart may help."""


class InternalError(MillstreamError):
    """A bug in millstream: an invariant does not hold. Please report it."""

    def _render_traceback_(self) -> list[str]:
        return "".join(traceback.format_exception(self)).splitlines()


def format_for_author(problem: MillstreamError, is_program: Callable[[traceback.FrameSummary], bool]) -> str:
    """Format an error for the author of a program: its text, and the last line of the program before it was raised.

    Args:
        problem: The error.
        is_program: Returns whether a frame is a line of the program.

    """
    has_traceback = problem.message.startswith("Traceback")  # of a user function
    lines = [problem.message if has_traceback else f"millstream: {problem.message}"]
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if is_program(frame)]
    if frames and not has_traceback:
        location = "line" if _is_cell(frames[-1]) else f"{frames[-1].filename}, line"
        lines.append(f"  at {location} {frames[-1].lineno}: {frames[-1].line}")
    if problem.hint:
        lines.append(f"  hint: {problem.hint}")
    return "\n".join(lines)


def _add_source_lines(lines: Sequence[str]) -> list[str]:
    """Add the lines of cells to the traceback of a user function: tasks do not have the text of cells."""
    return [line for pair in zip(lines, [*lines[1:], ""], strict=True) for line in _with_source_line(*pair)]


def _with_source_line(line: str, next_line: str) -> Iterator[str]:
    yield line
    frame = re.match(r'  File "(.+)", line (\d+), in ', line)
    if frame and not next_line.startswith("    ") and (source := linecache.getline(frame[1], int(frame[2])).strip()):
        yield f"    {source}"


def _is_cell(frame: traceback.FrameSummary) -> bool:
    """Return whether a frame is a line of a notebook cell."""
    return "ipykernel_" in frame.filename or frame.filename.startswith("<ipython-input")

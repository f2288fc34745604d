"""Where the shell writes: results, messages and errors.

Promises: results go to standard output; messages of scripts do not mix with them; no text of a user's moves the cursor.
Does not know: statements."""

from __future__ import annotations

import os
import sys
import traceback
from typing import TextIO

from millstream.errors import MillstreamError
from millstream.sql.errors import SqlError

_COLOURS = {"ERROR": "31", "WARNING": "33", "INFO": "2"}


class Screen:
    """Where results go, and where errors and what scripts are told.

    They are those of the moment it is made: threads of jobs may redirect the process's own later."""

    def __init__(self, *, interactive: bool, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.interactive = interactive
        self.out = out or sys.stdout
        self.err = err or (self.out if interactive else sys.stderr)

    def line(self, text: str = "") -> None:
        """Write a line of a result."""
        write(self.out, f"{_visible(text)}\n")

    def tell(self, text: str, level: str = "INFO") -> None:
        """Tell something that is no result."""
        where = self.err
        coloured = where.isatty() and not os.environ.get("NO_COLOR")
        mark = f"\x1b[{_COLOURS[level]}m[{level}]\x1b[0m" if coloured else f"[{level}]"
        write(where, f"{mark} {_visible(text)}\n")

    def problem(self, error: BaseException, *, verbose: bool, about: str = "") -> None:
        """Tell an error: one that is the user's by its sentence, its place and its hint."""
        self.tell(f"{about}{described(error)}", "ERROR")
        if verbose:
            write(self.err, _visible("".join(traceback.format_exception(error))))

    def clear(self) -> None:
        """Empty the screen."""
        if self.out.isatty():
            write(self.out, "\x1b[2J\x1b[H")


def _visible(text: str) -> str:
    """The text with a mark in place of characters that move the cursor; a caret below it stays in its place."""
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)


def write(where: TextIO, text: str) -> None:
    """Write a text at once; characters that the stream cannot encode are escaped."""
    try:
        where.write(text)
    except UnicodeEncodeError:
        encoding = where.encoding or "utf-8"
        where.write(text.encode(encoding, "backslashreplace").decode(encoding))
    where.flush()


def described(error: BaseException) -> str:
    """An error in words."""
    if isinstance(error, MillstreamError):
        text, hint = error.message.rstrip("\n"), error.hint
    else:
        said = str(error).strip()
        text = f"{type(error).__name__}: {said}" if said else type(error).__name__
        hint = "this should not happen: please report it, with what SET 'sql-client.verbose' = 'true' shows"
    return f"{text}\n  hint: {hint}" if hint else text


def relocated(error: SqlError, statement: str, start: int, script: str) -> SqlError:
    """The same error with its place in the script, where it has one in the statement."""
    if error.text != statement or error.at is None:
        return error
    error.text, error.at = None, error.at + start
    return error.placed(script).with_traceback(error.__traceback__)

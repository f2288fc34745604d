"""Warns when a process ends although a program with sinks was never executed.

Promises: one warning for the process; none if an error ended it, or if the program was built by a test of pytest.
Does not know: programs, which are identified by a number."""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import sys

_log = logging.getLogger("millstream")
_numbers = itertools.count()
_unexecuted: dict[int, int] = {}  # the number of sinks, by program


def next_program_number() -> int:
    """Return the number of a new program."""
    return next(_numbers)


def note_sink(program: int) -> None:
    """Note that a program has one more sink."""
    if "PYTEST_CURRENT_TEST" in os.environ:  # tests build programs that they do not run
        return
    _unexecuted[program] = _unexecuted.get(program, 0) + 1


def note_execution(program: int) -> None:
    """Note that a program was executed or discarded."""
    _unexecuted.pop(program, None)


def forget_all() -> None:
    """Forget all programs, because an error has ended the process."""
    _unexecuted.clear()


@atexit.register
def warn_at_exit() -> None:
    """Log the warning."""
    if _unexecuted and not hasattr(sys, "last_value"):
        count = sum(_unexecuted.values())
        sinks = "1 sink was defined" if count == 1 else f"{count} sinks were defined"
        _log.warning("the program ended without execute(): %s, but not run; call env.execute()", sinks)

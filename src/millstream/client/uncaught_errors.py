"""Prints the error that ends a program.

Promises: a traceback begins in the file of the program. An error of millstream has no traceback of millstream's own
frames, but the line of the program that caused it. `python job.py` and `millstream run job.py` print the same.
Does not know: how programs are started."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from millstream.errors import InternalError, MillstreamError, format_for_author

CANCELLED_TEXT = "millstream: cancelled"
_PACKAGE = str(Path(__file__).parent.parent)


def install_excepthook() -> None:
    """Print errors of millstream in short form when they end a program; other errors are printed as before.

    Only for scripts, and only if nobody else has set `sys.excepthook`."""
    is_script = hasattr(sys.modules.get("__main__"), "__file__") and not hasattr(sys, "ps1")
    if is_script and sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_uncaught


def _print_uncaught(error_class: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    path = str(getattr(sys.modules["__main__"], "__file__", ""))
    if isinstance(error, MillstreamError) and not isinstance(error, InternalError):
        print(format_error(path, error), file=sys.stderr)
    elif isinstance(error, KeyboardInterrupt) and _passes_millstream(trace):
        print(CANCELLED_TEXT, file=sys.stderr)
    else:
        sys.__excepthook__(error_class, error, trace)


def _passes_millstream(trace: TracebackType | None) -> bool:
    return any(frame.f_code.co_filename.startswith(_PACKAGE) for frame, _ in traceback.walk_tb(trace))


def format_error(path: str, problem: Exception) -> str:
    """Format an error for the author of the program in the file `path`."""
    if isinstance(problem, MillstreamError):
        return format_for_author(problem, lambda frame: _is_program(path, frame))
    trace = traceback.TracebackException.from_exception(problem)
    for link in _chain_of_causes(trace):
        link.stack[:] = _frames_from_program(path, link.stack)
    return "".join(trace.format()).rstrip()


def _chain_of_causes(trace: traceback.TracebackException) -> list[traceback.TracebackException]:
    chain = [trace]
    for link in chain:
        chain += [cause for cause in (link.__cause__, link.__context__) if cause is not None]
    return chain


def _frames_from_program(path: str, stack: Sequence[traceback.FrameSummary]) -> Sequence[traceback.FrameSummary]:
    first = next((index for index, frame in enumerate(stack) if _is_program(path, frame)), None)
    if first is not None:
        return stack[first:]
    # a syntax error in the program, or a cause that was raised elsewhere: no frame is in the file of the program
    return [frame for frame in stack if "runpy" not in frame.filename and not frame.filename.startswith(_PACKAGE)]


def _is_program(path: str, frame: traceback.FrameSummary) -> bool:
    return frame.filename == path or Path(frame.filename) == Path(path)

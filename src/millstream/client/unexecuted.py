"""Warns when a process ends although a program with sinks was never executed, or a job of it still runs.

Promises: one warning for sinks and one for jobs; none if an error ended the process, or if the program was built by a
test of pytest. Jobs of interactive sessions and of commands of millstream are left out.
Does not know: programs, which are identified by a number."""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import sys
from pathlib import Path
from typing import Protocol

from millstream.job.job_status import JobStatus


class Job(Protocol):
    """A submitted job."""

    name: str

    def status(self) -> JobStatus:
        """Return the current status."""


_log = logging.getLogger("millstream")
_numbers = itertools.count()
_unexecuted: dict[int, int] = {}  # the number of sinks, by program
_jobs: list[Job] = []
_PACKAGE = Path(__file__).parent.parent


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


def note_job(job: Job) -> None:
    """Note that a script has started a job, whose output nobody reads in this process."""
    _jobs[:] = [known for known in _jobs if _runs(known)]
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is None or hasattr(sys, "ps1") or "PYTEST_CURRENT_TEST" in os.environ:
        return
    if Path(file).name != "millstream" and _PACKAGE not in Path(file).parents:
        _jobs.append(job)


def _runs(job: Job) -> bool:
    return not job.status().is_terminal_state() and job.status() is not JobStatus.CANCELLING


def forget_all() -> None:
    """Forget all programs and jobs, because an error has ended the process."""
    _unexecuted.clear()
    _jobs.clear()


@atexit.register
def warn_at_exit() -> None:
    """Log the warnings."""
    if hasattr(sys, "last_value"):
        return
    for job in filter(_runs, _jobs):
        _log.warning(
            "the program ended before its job '%s', which ends with it; call wait() on the result of execute_sql() or "
            "execute_insert(), or use execute() instead of execute_async()",
            job.name,
        )
    if _unexecuted:
        count = sum(_unexecuted.values())
        sinks = "1 sink was defined" if count == 1 else f"{count} sinks were defined"
        _log.warning("the program ended without execute(): %s, but not run; call env.execute()", sinks)

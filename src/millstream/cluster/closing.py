"""The end of a job: what becomes of output that is not committed, and steps that tidy up.

Promises: if a job ends before its input does, output that no checkpoint names is removed. Output that a published
checkpoint names is committed if the job was cancelled; otherwise, or if that fails, an error log names it, and its
checkpoint must be kept, because only a job that starts from it can complete the commit.
Does not know: epochs, engines, which checkpoints are kept anyway."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from millstream.cluster.sinks import Sinks
from millstream.job.job_status import JobStatus

_log = logging.getLogger("millstream.job")


def settle_output(
    sinks: Sinks, status: JobStatus, resolve: Callable[[], object], kept_path: Callable[[int], str | None]
) -> bool:
    """Remove or commit what the sinks hold; gives whether no checkpoint names output that may not be committed.

    `resolve` finds out which checkpoints exist, and `kept_path` is where a checkpoint is after the end of the job."""
    try:
        resolve()
        left = sinks.end(retry=status is JobStatus.CANCELED, is_kept=lambda number: kept_path(number) is not None)
    except Exception as problem:
        _log.warning("the job has ended, but something is left behind: %s", problem)
        return False
    for each in left:
        _log.error("the job is %s, but %s", status.name, each.report(kept_path(each.checkpoint)))
    return not left


def do_all(steps: Sequence[Callable[[], None]]) -> None:
    """Do every step of the end of a job. What cannot be tidied up is logged and changes no result."""
    for step in steps:
        try:
            step()
        except Exception as problem:
            _log.warning("the job has ended, but something is left behind: %s", problem)

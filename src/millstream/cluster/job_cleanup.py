"""Clean-up at the end of a job: uncommitted output, and resources to release.

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


def clean_up_output(
    sinks: Sinks, status: JobStatus, resolve: Callable[[], object], kept_path: Callable[[int], str | None]
) -> bool:
    """Remove or commit the output that the sinks have staged.

    `resolve` finds out which checkpoints exist; `kept_path` is where a checkpoint is after the end of the job.

    Returns:
        Whether all output that a checkpoint names is committed.

    """
    try:
        resolve()
        uncommitted = sinks.end(
            retry=status is JobStatus.CANCELED, is_kept=lambda number: kept_path(number) is not None
        )
    except Exception as problem:
        _log.warning("the job has ended, but its clean-up is incomplete: %s", problem)
        return False
    for output in uncommitted:
        _log.error("the job is %s, but %s", status.name, output.report(kept_path(output.checkpoint)))
    return not uncommitted


def run_steps(steps: Sequence[Callable[[], None]]) -> None:
    """Run every step, even if others fail. A failure is logged and does not change the status of the job."""
    for step in steps:
        try:
            step()
        except Exception as problem:
            _log.warning("the job has ended, but its clean-up is incomplete: %s", problem)

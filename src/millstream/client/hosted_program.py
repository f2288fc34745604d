"""The process of a program in a session cluster: `python -m millstream.client.hosted_program PIPE`.

Promises: the program runs as `__main__`, with the options of its submission as defaults; its jobs are served over REST
on this machine; the process reports how the program ended, when all of its jobs have ended, and runs until the cluster
has fetched the results.
Does not know: other programs, the cluster's store."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from millstream.client.job_client import JobCancelled
from millstream.client.program import run_module, run_program
from millstream.client.uncaught_errors import format_error
from millstream.cluster import entrypoint
from millstream.cluster.hosting import Host
from millstream.job.job_status import JobStatus

if TYPE_CHECKING:
    from io import TextIOWrapper


def main(pipe: int) -> None:
    """Run the program that standard input describes."""
    host(pipe, _run)


def host(
    pipe: int, run: Callable[[dict[str, Any]], dict[str, Any]], prepare: Callable[[dict[str, Any]], None] | None = None
) -> None:
    """Serve the jobs of this process over REST, call `run` with the description from standard input, and report what
    it returns; `prepare` is called with the description before the REST server starts."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    # users follow its log file, so lines must not be buffered
    cast("TextIOWrapper", sys.stdout).reconfigure(line_buffering=True)
    answers = _take_standard_input()
    description = json.loads(answers.readline())
    cluster = Host(os.fdopen(pipe, "w", encoding="utf-8"), answers)
    cluster.listen()
    entrypoint.join_cluster(cluster)
    if prepare is not None:
        prepare(description)
    cluster.send(type="serving", address=entrypoint.start_server("127.0.0.1", "0", description["token"]))
    cluster.send(type="ended", **run(description))
    cluster.wait_for_exit()
    sys.stdout.flush()
    os._exit(0)  # threads of the program may still run


def _take_standard_input() -> TextIO:
    """Return the standard input, to which the cluster writes, and replace it: a program that reads standard input finds
    it empty."""
    answers = os.fdopen(os.dup(0), encoding="utf-8")
    with Path(os.devnull).open() as empty:
        os.dup2(empty.fileno(), 0)
    return answers


def _run(description: dict[str, Any]) -> dict[str, Any]:
    """Run the program and its jobs to their end; return how they ended."""
    file, arguments, settings = description["file"], description["arguments"], description["settings"]
    end: dict[str, Any] = {"error": None, "is_cancelled": False}
    try:
        if file is not None:
            run_program(file, arguments, configuration=settings)
        else:
            run_module(description["module"], arguments, configuration=settings)
    except SystemExit as exit_request:
        if exit_request.code not in (None, 0):
            end["error"] = f"the program ended with exit code {exit_request.code}"
    except JobCancelled:
        end["is_cancelled"] = True
    except Exception as problem:
        traceback.print_exc()
        end["error"] = format_error(file or "", problem)
    jobs = entrypoint.wait_for_jobs()
    statuses = [job.statistics().status for job in jobs]
    if JobStatus.SUSPENDED in statuses:
        return {**end, "is_suspended": True}
    if end["error"] is None and JobStatus.FAILED in statuses:
        failed = next(job for job in jobs if job.statistics().status is JobStatus.FAILED)
        end["error"] = failed.statistics().failures[-1].event.cause
    end["is_cancelled"] |= end["error"] is None and JobStatus.CANCELED in statuses
    return {**end, "is_suspended": False}


if __name__ == "__main__":
    main(int(sys.argv[1]))

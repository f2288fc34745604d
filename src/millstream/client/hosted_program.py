"""The process of a program in a session cluster: `python -m millstream.client.hosted_program PIPE`.

Promises: the program runs as `__main__`, with the options of its submission as defaults; its jobs are served over REST
on this machine; the process reports how the program ended, when all of its jobs have ended, and stays until the
cluster has asked what it wants to know.
Does not know: other programs, the cluster's store."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from typing import Any

from millstream.client.job_client import JobCancelled
from millstream.client.program import run_module, run_program
from millstream.client.uncaught_errors import format_error
from millstream.cluster import entrypoint
from millstream.cluster.hosting import Host
from millstream.job.job_status import JobStatus


def main(pipe: int) -> None:
    """Run the program that standard input describes."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    description = json.loads(sys.stdin.readline())
    host = Host(os.fdopen(pipe, "w", encoding="utf-8"), sys.stdin)
    host.listen()
    entrypoint.join_cluster(host)
    host.send(type="serving", address=entrypoint.start_server("127.0.0.1", "0", description["token"]))
    host.send(type="ended", **_run(description))
    host.wait_for_exit()
    sys.stdout.flush()
    os._exit(0)  # threads of the program may still run


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

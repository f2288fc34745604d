"""`millstream list`, `millstream cancel` and `millstream stop`: jobs of a running driver or cluster.

Promises: Flink's options and meanings; tables, or JSON with --json; a job is named by its id, by the beginning of its
id, or by its name.
Does not know: HTTP; `millstream.client.remote` does."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from millstream.cli.cluster_address import add_address, connect
from millstream.client.remote import RemoteCluster, RemoteJob
from millstream.errors import UserError
from millstream.graph.explain import align_columns, printable

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_RUNNING = ("RUNNING", "RESTARTING", "CANCELLING", "FAILING")
_SCHEDULED = ("CREATED", "INITIALIZING")
_FORMATS = ("canonical", "native")


class NoSuchJob(UserError):
    """The cluster has no job with this id or name."""

    def __init__(self, name: str, jobs: Sequence[RemoteJob]) -> None:
        known = ", ".join(f"{job.id} ({printable(job.name)})" for job in jobs)
        super().__init__(
            f"there is no job '{printable(name)}'", hint=f"the jobs are: {known}" if known else "no job runs"
        )


class SeveralJobs(UserError):
    """Several jobs of the cluster have this name or beginning of an id."""

    def __init__(self, name: str, jobs: Sequence[RemoteJob]) -> None:
        super().__init__(
            f"several jobs are named '{printable(name)}': {', '.join(job.id for job in jobs)}",
            hint="name one of them by its id",
        )


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the commands and their arguments."""
    listing = subparsers.add_parser("list", help="list the jobs of a driver or cluster")
    add = listing.add_argument
    add("-a", "--all", action="store_true", help="jobs that have ended too")
    add("-r", "--running", action="store_true", help="running jobs only")
    add("-s", "--scheduled", action="store_true", help="jobs that have not started only")
    add("--json", action="store_true", help="print JSON")
    add_address(listing)
    listing.set_defaults(run=run_list)
    cancelling = subparsers.add_parser("cancel", help="cancel a job")
    cancelling.add_argument("job", metavar="JOB", help="the id or name of the job")
    cancelling.add_argument(
        "-s", "--withSavepoint", metavar="DIR", help="write a savepoint to DIR first (millstream stop is safer)"
    )
    add_address(cancelling)
    cancelling.set_defaults(run=run_cancel)
    stopping = subparsers.add_parser("stop", help="stop a job with a savepoint, after its output is committed")
    stopping.add_argument("job", metavar="JOB", help="the id or name of the job")
    stopping.add_argument("-p", "--savepointPath", metavar="DIR", help="where to write the savepoint")
    stopping.add_argument("-d", "--drain", action="store_true", help="advance event time to its end first")
    stopping.add_argument("-type", "--type", choices=_FORMATS, help="the format of the savepoint")
    add_address(stopping)
    stopping.set_defaults(run=run_stop)


def find_job(cluster: RemoteCluster, name: str) -> RemoteJob:
    """Return the job with this id, beginning of an id, or name; a running one if several have ended."""
    jobs = cluster.list_jobs()
    matching = [job for job in jobs if job.id == name] or [
        job for job in jobs if job.name == name or (len(name) >= 4 and job.id.startswith(name))
    ]
    alive = [job for job in matching if job.end < 0] or matching
    if not alive:
        raise NoSuchJob(name, jobs)
    if len(alive) > 1:
        raise SeveralJobs(name, alive)
    return alive[0]


def run_list(args: argparse.Namespace) -> int:
    """List the jobs."""
    jobs = connect(args).list_jobs()
    if not args.all:
        states = (_RUNNING if args.running or not args.scheduled else ()) + (
            _SCHEDULED if args.scheduled or not args.running else ()
        )
        jobs = [job for job in jobs if job.state in states]
    if args.json:
        print(json.dumps([asdict(job) for job in jobs], indent=2))
        return 0
    if not jobs:
        print("no jobs")
        return 0
    rows = [("id", "name", "state", "started", "tasks")]
    rows += [
        (job.id, printable(job.name), job.state, format_time(job.start), str(job.tasks.get("total", "")))
        for job in jobs
    ]
    lines = align_columns(rows)
    waiting = [f"  {printable(job.waiting)}" if job.waiting else "" for job in jobs]
    print("\n".join(line + reason for line, reason in zip(lines, ["", *waiting], strict=True)))
    return 0


def run_cancel(args: argparse.Namespace) -> int:
    """Cancel a job."""
    cluster = connect(args)
    job = find_job(cluster, args.job)
    if args.withSavepoint is not None:
        print(f"savepoint: {printable(cluster.savepoint(job.id, args.withSavepoint, cancel=True))}")
    else:
        cluster.cancel(job.id)
    print(f"cancelled {job.id}")
    return 0


def run_stop(args: argparse.Namespace) -> int:
    """Stop a job with a savepoint."""
    cluster = connect(args)
    job = find_job(cluster, args.job)
    form = None if args.type is None else args.type.upper()
    path = cluster.stop(job.id, args.savepointPath, form=form, drain=args.drain)
    print(f"stopped {job.id}\nsavepoint: {printable(path)}")
    return 0


def format_time(milliseconds: int) -> str:
    """Return a time, in milliseconds since 1970, in the zone of this machine."""
    return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")

"""`millstream checkpoint`, `exceptions`, `metrics`, `logs` and `history`: inspect running and ended jobs of a cluster.

Promises: tables, or JSON with --json. `logs -f` follows a log until Ctrl-C. `history` reads the files that a session
cluster, or Flink, has archived, and needs no cluster.
Does not know: HTTP; `millstream.client.remote` does."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from millstream.cli.cluster_address import add_address, connect
from millstream.cli.jobs import find_job, format_time
from millstream.cluster.session import archive
from millstream.errors import UserError
from millstream.files.locations import absolute_location, join_path
from millstream.files.remote import get_file_system
from millstream.graph.explain import align_columns, printable

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_FOLLOW_SECONDS = 0.5


class NoLog(UserError):
    """The job has no log file at its server."""

    def __init__(self, job: str) -> None:
        super().__init__(
            f"the server of job {job} keeps no log",
            hint="only a session cluster keeps logs; another program writes its log where it is configured to",
        )


class NoHistory(UserError):
    """The directory has no archived jobs."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"there are no archived jobs in '{directory}'", hint="name the jobmanager.archive.fs.dir of the cluster"
        )


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the commands and their arguments."""
    taking = _add_command(subparsers, "checkpoint", "take a checkpoint of a running job now", run_checkpoint)
    taking.add_argument("--full", action="store_true", help="accepted: every checkpoint is complete in itself")
    failing = _add_command(subparsers, "exceptions", "show the failures of a job, newest first", run_exceptions)
    failing.add_argument("--json", action="store_true", help="print JSON")
    measuring = _add_command(subparsers, "metrics", "show the metrics of a job or of one vertex", run_metrics)
    measuring.add_argument("--vertex", metavar="ID", help="the metrics of the subtasks of this vertex")
    measuring.add_argument("--json", action="store_true", help="print JSON")
    logging = _add_command(subparsers, "logs", "print the log of the program of a job", run_logs)
    logging.add_argument("-f", "--follow", action="store_true", help="go on until Ctrl-C")
    history = subparsers.add_parser("history", help="list jobs that have ended, from an archive directory")
    history.add_argument("directory", metavar="DIR", help="the jobmanager.archive.fs.dir of a cluster")
    history.add_argument("job", nargs="?", metavar="JOB", help="print all that is kept of the job with this id")
    history.add_argument("--json", action="store_true", help="print JSON")
    history.set_defaults(run=run_history)


def _add_command(
    subparsers: _SubParsersAction[argparse.ArgumentParser], name: str, about: str, run: Any
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(name, help=about)
    parser.add_argument("job", metavar="JOB", help="the id or name of the job")
    add_address(parser)
    parser.set_defaults(run=run)
    return parser


def run_checkpoint(args: argparse.Namespace) -> int:
    """Take a checkpoint."""
    cluster = connect(args)
    job = find_job(cluster, args.job)
    print(f"checkpoint: {cluster.checkpoint(job.id, full=args.full)}")
    return 0


def run_exceptions(args: argparse.Namespace) -> int:
    """Show failures."""
    cluster = connect(args)
    entries = cluster.get(f"/jobs/{find_job(cluster, args.job).id}/exceptions")["exceptionHistory"]["entries"]
    if args.json:
        print(json.dumps(entries, indent=2))
        return 0
    texts = [f"{format_time(entry['timestamp'])}\n{_printable_lines(entry['stacktrace'])}" for entry in entries]
    print("\n\n".join(texts) or "no failures")
    return 0


def run_metrics(args: argparse.Namespace) -> int:
    """Show metrics."""
    cluster = connect(args)
    job = find_job(cluster, args.job)
    path = f"/jobs/{job.id}/metrics" if args.vertex is None else f"/jobs/{job.id}/vertices/{args.vertex}/metrics"
    names = [metric["id"] for metric in cluster.get(path)]
    metrics = cluster.get(f"{path}?get={','.join(names)}") if names else []
    if args.json:
        print(json.dumps({metric["id"]: metric["value"] for metric in metrics}, indent=2))
    else:
        print("\n".join(align_columns([(metric["id"], printable(metric["value"])) for metric in metrics])))
    return 0


def run_logs(args: argparse.Namespace) -> int:
    """Print a log."""
    cluster = connect(args)
    job = find_job(cluster, args.job)
    program = next(entry for entry in cluster.get("/jobs/overview")["jobs"] if entry["jid"] == job.id)
    if "application-id" not in program:
        raise NoLog(job.id)
    path, offset = f"/jobmanager/logs/{program['application-id']}.log", 0
    while True:
        for part in cluster.read_text(path, offset):
            offset += len(part)
            sys.stdout.write(part.decode("utf-8", "replace"))
        sys.stdout.flush()
        if not args.follow:
            return 0
        try:
            time.sleep(_FOLLOW_SECONDS)
        except KeyboardInterrupt:
            return 0


def run_history(args: argparse.Namespace) -> int:
    """List archived jobs, or print one."""
    directory = absolute_location(args.directory)
    fs = get_file_system(directory)
    names = [name for name in fs.list_if_exists(directory) if len(name) == 32]
    if not names or (args.job is not None and args.job not in names):
        raise NoHistory(directory if args.job is None else join_path(directory, args.job))
    if args.job is not None:
        kept = json.loads(fs.read_bytes(join_path(directory, args.job)))
        print(json.dumps({entry["path"]: json.loads(entry["json"]) for entry in kept["archive"]}, indent=2))
        return 0
    jobs = [
        job for name in names for job in archive.job_overviews(json.loads(fs.read_bytes(join_path(directory, name))))
    ]
    jobs.sort(key=lambda job: job["start-time"])
    if args.json:
        print(json.dumps(jobs, indent=2))
        return 0
    rows = [("id", "name", "state", "started", "ended")]
    rows += [
        (job["jid"], printable(job["name"]), job["state"], format_time(job["start-time"]), format_time(job["end-time"]))
        for job in jobs
    ]
    print("\n".join(align_columns(rows)))
    return 0


def _printable_lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.splitlines())

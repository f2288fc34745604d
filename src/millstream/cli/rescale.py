"""`millstream rescale DIR N`: changes the parallelism of a job that runs in another process.

Promises: waits until the job runs at the new parallelism, or reports why it does not; if the job does not answer in
time, the request is withdrawn.
Does not know: how a job is rescaled, or where it runs. Requests go through the checkpoint directory of the job."""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.checkpoint.storage import CheckpointStorage
from millstream.cli import checkpoints
from millstream.cluster.mailbox import request_rescale
from millstream.cluster.rescale import RequestedParallelism
from millstream.errors import UserError
from millstream.graph.explain import printable

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_ABOUT = """\
Change the parallelism of a running job. The job is found by its directory below execution.checkpointing.dir, which must
be set for it. The change happens between two epochs. N applies to all operators for which the program sets no
parallelism, UID=N to one operator."""


class NoSuchJob(UserError):
    """The directory does not hold a job."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"there is no job in '{directory}'", hint="name the execution.checkpointing.dir of the job, and --job ID"
        )


class SeveralJobs(UserError):
    """The directory holds several jobs."""

    def __init__(self, directory: str, jobs: Sequence[str]) -> None:
        self.jobs = tuple(jobs)
        super().__init__(
            f"there are several jobs in '{directory}': {', '.join(jobs)}", hint="choose one with --job, by id or name"
        )


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("rescale", help="change the parallelism of a running job", description=_ABOUT)
    add = parser.add_argument
    add("directory", metavar="DIR", help="the checkpoint directory, or the directory of the job in it")
    add(
        "wanted",
        nargs="+",
        metavar="N|UID=N",
        type=_parse_parallelism,
        help="the parallelism, or that of single operators",
    )
    add("--job", metavar="ID", help="the id or name of the job, if there are several")
    add(
        "--timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds to wait for an answer of the job (default: 60)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Send the request, wait for the answer, and print it."""
    wanted = _combine(args.wanted)
    directory = Path(args.directory.removeprefix("file://")).absolute()
    job = _find_job(directory, args.job)
    storage = CheckpointStorage(str(job.parent), job.name)
    numbers = itertools.count()
    prefix = f"{os.uname().nodename}-{os.getpid()}-{time.monotonic_ns()}".translate(_TO_DASHES)
    slots = request_rescale(
        storage,
        wanted,
        ids=lambda: f"{prefix}-{next(numbers)}",
        seconds=args.timeout,
        now=time.monotonic,
        sleep=time.sleep,
    )
    print(f"the job {printable(job.name)} runs with {slots} slots")
    return 0


_TO_DASHES = {code: "-" for code in map(ord, "._ ")}


def _parse_parallelism(word: str) -> int | tuple[str, int]:
    name, equals, number = word.rpartition("=")
    if not (number.isdecimal() and int(number)) or bool(name) != bool(equals):
        message = f"{word!r} is neither a positive integer nor UID=N"
        raise argparse.ArgumentTypeError(message)
    return (name, int(number)) if name else int(number)


def _combine(words: Sequence[int | tuple[str, int]]) -> RequestedParallelism:
    named = dict(word for word in words if isinstance(word, tuple))
    numbers = [word for word in words if isinstance(word, int)]
    if (numbers and named) or len(numbers) > 1:
        message = "name one parallelism for all operators, or UID=N for each operator to change"
        raise UserError(message)
    return named or numbers[0]


def _find_job(directory: Path, name: str | None) -> Path:
    """The directory of the job with this id or name, or of the only job."""
    if name is None and _is_job(directory):
        return directory
    jobs = sorted(path for path in directory.iterdir() if _is_job(path)) if directory.is_dir() else []
    if name is not None:
        jobs = [job for job in jobs if job.name == name] or [job for job in jobs if _job_name(job) == name]
    if not jobs:
        raise NoSuchJob(str(directory))
    if len(jobs) > 1:
        descriptions = [f"{job.name} ({printable(_job_name(job) or 'no checkpoint')})" for job in jobs]
        raise SeveralJobs(str(directory), descriptions)
    return jobs[0]


def _is_job(directory: Path) -> bool:
    patterns = ("shared", "epochs*.log", "chk-*", "requests")
    return directory.is_dir() and any(next(directory.glob(pattern), None) is not None for pattern in patterns)


def _job_name(directory: Path) -> str | None:
    """The name of the job, from its newest checkpoint that can be read."""
    for path in reversed(checkpoints.find(directory)):
        snapshot = checkpoints.read(path)
        if snapshot is not None and snapshot.metadata is not None:
            return snapshot.metadata.job_name
    return None

"""`millstream rescale DIR N`: another parallelism for a job that runs in another process.

Promises: waits until the job runs at the new parallelism, and says so, or says why it does not; a job that does not
answer is left as it is.
Does not know: how a job is rescaled, or where it runs: it is asked through its checkpoint directory."""

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
from millstream.cluster.requests import ask
from millstream.cluster.rescale import Wanted
from millstream.errors import UserError
from millstream.graph.explain import printable

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_ABOUT = """\
Give a running job another parallelism. The job is found by its directory below execution.checkpointing.dir, which must
be set for it, and changes between two epochs; a number is for all operators whose parallelism the program left open,
UID=N for one operator."""


class NoSuchJob(UserError):
    """No job's directory is there."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"there is no job in '{directory}'", hint="give the job's execution.checkpointing.dir, and its --job ID"
        )


class SeveralJobs(UserError):
    """Which of them?"""

    def __init__(self, directory: str, jobs: Sequence[str]) -> None:
        self.jobs = tuple(jobs)
        super().__init__(
            f"there are several jobs in '{directory}': {', '.join(jobs)}", hint="choose one with --job, by id or name"
        )


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("rescale", help="give a running job another parallelism", description=_ABOUT)
    add = parser.add_argument
    add("directory", metavar="DIR", help="the job's checkpoint directory, or its own directory in there")
    add("wanted", nargs="+", metavar="N|UID=N", type=_wanted, help="a parallelism, or those of single operators")
    add("--job", metavar="ID", help="which job, by id or name, if there are several")
    add("--timeout", type=float, default=60.0, metavar="S", help="seconds to wait for the job (default: 60)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Ask, wait, and tell."""
    wanted = _combined(args.wanted)
    directory = Path(args.directory.removeprefix("file://")).absolute()
    found = _chosen(directory, args.job)
    storage = CheckpointStorage(str(found.parent), found.name)
    numbers = itertools.count()
    own = f"{os.uname().nodename}-{os.getpid()}-{time.monotonic_ns()}".translate(_ONLY_PLAIN)
    slots = ask(
        storage,
        wanted,
        ids=lambda: f"{own}-{next(numbers)}",
        seconds=args.timeout,
        now=time.monotonic,
        sleep=time.sleep,
    )
    print(f"the job {printable(found.name)} runs with {slots} slots")
    return 0


_ONLY_PLAIN = {code: "-" for code in map(ord, "._ ")}


def _wanted(word: str) -> int | tuple[str, int]:
    name, equals, number = word.rpartition("=")
    if not (number.isdecimal() and int(number)) or bool(name) != bool(equals):
        message = f"{word!r} is neither a whole number above 0 nor UID=N"
        raise argparse.ArgumentTypeError(message)
    return (name, int(number)) if name else int(number)


def _combined(words: Sequence[int | tuple[str, int]]) -> Wanted:
    named = dict(word for word in words if isinstance(word, tuple))
    numbers = [word for word in words if isinstance(word, int)]
    if (numbers and named) or len(numbers) > 1:
        message = "give one number for all operators, or UID=N for each that is to change"
        raise UserError(message)
    return named or numbers[0]


def _chosen(directory: Path, job: str | None) -> Path:
    """The directory of the job: the one that is named, or the only one that is there."""
    if job is None and _is_job(directory):
        return directory
    jobs = sorted(each for each in directory.iterdir() if _is_job(each)) if directory.is_dir() else []
    if job is not None:
        jobs = [each for each in jobs if each.name == job] or [each for each in jobs if _called(each) == job]
    if not jobs:
        raise NoSuchJob(str(directory))
    if len(jobs) > 1:
        found = [f"{each.name} ({printable(_called(each) or 'no checkpoint')})" for each in jobs]
        raise SeveralJobs(str(directory), found)
    return jobs[0]


def _is_job(directory: Path) -> bool:
    parts = ("shared", "epochs*.log", "chk-*", "requests")
    return directory.is_dir() and any(next(directory.glob(part), None) is not None for part in parts)


def _called(directory: Path) -> str | None:
    """The name of the job, from its newest checkpoint that can be read."""
    for path in reversed(checkpoints.find(directory)):
        found = checkpoints.read(path)
        if found is not None and found.metadata is not None:
            return found.metadata.job_name
    return None

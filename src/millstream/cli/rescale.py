"""`millstream rescale JOB N|UID=N ...`: changes the parallelism of a running job.

Promises: the command waits until the job runs at the new parallelism, or prints why it does not.
Does not know: HTTP; `millstream.client.remote` does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from millstream.cli.cluster_address import add_address, connect
from millstream.cli.jobs import find_job
from millstream.errors import UserError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_ABOUT = """\
Change the parallelism of a running job, between two epochs. N applies to all operators for which the program sets no
parallelism, UID=N to one operator."""


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("rescale", help="change the parallelism of a running job", description=_ABOUT)
    parser.add_argument("job", metavar="JOB", help="the id or name of the job")
    parser.add_argument(
        "wanted",
        nargs="+",
        metavar="N|UID=N",
        type=_parse_parallelism,
        help="the parallelism, or that of single operators",
    )
    add_address(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Send the request, wait for the answer, and print it."""
    wanted = _combine(args.wanted)
    cluster = connect(args)
    job = find_job(cluster, args.job)
    print(f"the job {job.id} runs with {cluster.rescale(job.id, wanted)} slots")
    return 0


def _parse_parallelism(word: str) -> int | tuple[str, int]:
    name, equals, number = word.rpartition("=")
    if not (number.isdecimal() and int(number)) or bool(name) != bool(equals):
        message = f"{word!r} is neither a positive integer nor UID=N"
        raise argparse.ArgumentTypeError(message)
    return (name, int(number)) if name else int(number)


def _combine(words: Sequence[int | tuple[str, int]]) -> int | dict[str, int]:
    named = dict(word for word in words if isinstance(word, tuple))
    numbers = [word for word in words if isinstance(word, int)]
    if (numbers and named) or len(numbers) > 1:
        message = "name one parallelism for all operators, or UID=N for each operator to change"
        raise UserError(message)
    return named or numbers[0]

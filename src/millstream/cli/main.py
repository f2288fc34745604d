"""The command line `millstream <command>`: parses the arguments and calls the module of the command.

Promises: a user error or external error is printed to standard error without a traceback, with exit code 1.
Does not know: what a command does. A command is a module with `add_parser(subparsers)` and `run(args) -> int`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from millstream import __version__
from millstream.cli import (
    cdc,
    checkpoints,
    cluster,
    completion,
    dev,
    doctor,
    gateway,
    info,
    installed_commands,
    jobs,
    observe,
    rescale,
    run,
    savepoint,
    sql,
    state,
    txn,
    ui,
)
from millstream.errors import InternalError, MillstreamError

COMMANDS = (
    run,
    dev,
    sql,
    cdc,
    gateway,
    info,
    cluster,
    jobs,
    observe,
    rescale,
    ui,
    checkpoints,
    savepoint,
    state,
    txn,
    doctor,
    completion,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="millstream", description="Stream processing in Python, on Spark.")
    parser.add_argument("--version", action="version", version=f"millstream {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="<command>", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not words or words[0] not in subparsers.choices:  # a command of this package needs no search for others
        installed_commands.add_parsers(subparsers)
    args = parser.parse_args(savepoint.with_action(words))
    try:
        code: int = args.run(args)
    except InternalError:
        raise
    except MillstreamError as error:
        print(f"millstream: {error}", file=sys.stderr)
        return 1
    return code

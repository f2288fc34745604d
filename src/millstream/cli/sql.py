"""`millstream sql`: the SQL shell, and SQL scripts.

Promises: with -f, with -e or without a terminal, only results are printed to standard output, and the first statement
that fails ends the run with exit code 1; Ctrl-C ends it with 130. An interactive shell ends only when the user leaves
it.
Does not know: statements."""

from __future__ import annotations

import argparse
import importlib
from typing import TYPE_CHECKING

from millstream.cli.run import positive_integer, setting

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments, with Flink's names."""
    parser = subparsers.add_parser(
        "sql", help="run SQL: an interactive shell, a script or statements", allow_abbrev=False
    )
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-f", "--file", metavar="FILE", help="run the statements of a file and exit")
    what.add_argument("-e", "--execute", metavar="SQL", help="run these statements and exit")
    add("-i", "--init", metavar="FILE", action="append", default=[], help="a file of statements to run first")
    add("-D", dest="define", type=setting, action="append", default=[], metavar="KEY=VALUE", help="set an option")
    add("-p", "--parallelism", type=positive_integer, metavar="N", help="the default parallelism of jobs")
    add("--master", metavar="URL", help="the Spark master (default: this machine)")
    add("--endpoint", metavar="HOST:PORT", help="a SQL gateway that executes the statements")
    add("--token-file", metavar="FILE", help="the file with the token of the gateway, if it has one")
    add("-hist", "--history", metavar="FILE", help="the file with the history of the shell")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run a script or the shell; returns the exit code."""
    # imported here, because other commands start in half the time without the Table API
    module = "start" if args.endpoint is None else "remote"
    code: int = importlib.import_module(f"millstream.cli.shell.{module}").start(args)
    return code

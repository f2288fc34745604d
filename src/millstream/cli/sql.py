"""`millstream sql`: the SQL shell, and scripts of SQL.

Promises: with -f, -e or input that is no terminal, results alone go to standard output, and the first statement that
fails ends the run with exit code 1; Ctrl-C exits with 130. With a person in front, nothing but leaving ends the shell.
Does not know: statements."""

from __future__ import annotations

import argparse
import importlib
from typing import TYPE_CHECKING

from millstream.cli.run import _parallelism, setting

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments, with Flink's names."""
    parser = subparsers.add_parser("sql", help="run SQL: a shell, a script or a statement", allow_abbrev=False)
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-f", "--file", metavar="FILE", help="run the statements of a file, then exit")
    what.add_argument("-e", "--execute", metavar="SQL", help="run these statements, then exit")
    add("-i", "--init", metavar="FILE", action="append", default=[], help="statements to run first")
    add("-D", dest="define", type=setting, action="append", default=[], metavar="KEY=VALUE", help="set an option")
    add("-p", "--parallelism", type=_parallelism, metavar="N", help="the parallelism of jobs")
    add("--master", metavar="URL", help="the Spark master (default: this machine)")
    add("-hist", "--history", metavar="FILE", help="where the shell remembers what was typed")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run a script, or the shell."""
    # Late: the other commands start without the table API, in half the time.
    code: int = importlib.import_module("millstream.cli.shell.start").start(args)
    return code

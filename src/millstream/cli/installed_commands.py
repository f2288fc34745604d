"""Commands of other distributions, such as `millstream chaos` of `millstream-chaos`.

A distribution declares a command as an entry point of the group `millstream.commands`. Its value is a module with
`add_parser(subparsers)`, like the modules of this package.

Promises: a command whose distribution is not installed is an error that says how to install it.
Does not know: what a command does."""

from __future__ import annotations

import argparse
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from millstream.errors import UserError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

GROUP = "millstream.commands"
EXTRAS = {"chaos": "chaos"}  # commands of this project that are distributed separately, and the extra for each


class CommandNotInstalled(UserError):
    """The distribution of a command is not installed."""

    def __init__(self, command: str) -> None:
        super().__init__(
            f"the command '{command}' is not installed", hint=f"pip install 'millstream[{EXTRAS[command]}]'"
        )


def add_parsers(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the installed commands, and for each known command that is missing one that says how to install it."""
    installed = entry_points(group=GROUP)
    for entry_point in installed:
        entry_point.load().add_parser(subparsers)
    for command in EXTRAS.keys() - installed.names:
        hint = f"not installed; pip install 'millstream[{EXTRAS[command]}]'"
        # Without prefix characters no argument is an option, so all of them are accepted.
        parser = subparsers.add_parser(command, help=hint, add_help=False, prefix_chars="\0")
        parser.add_argument("arguments", nargs=argparse.REMAINDER)
        parser.set_defaults(run=_refuse, command=command)


def _refuse(args: argparse.Namespace) -> int:
    raise CommandNotInstalled(args.command)

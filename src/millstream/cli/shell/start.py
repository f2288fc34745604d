"""A shell put together from the command line's words: its environment, its screen, and where statements come from.

Promises: statements come from -f, from -e, from a person at a terminal, or from standard input that is none.
Does not know: how words are declared, or what statements do."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from millstream import __version__, options
from millstream.cli.shell import settings
from millstream.cli.shell.interactive import interact
from millstream.cli.shell.names import names_of
from millstream.cli.shell.screen import Screen
from millstream.cli.shell.shell import Shell, read
from millstream.config.configuration import Configuration
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import UserError
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.table_environment import StreamTableEnvironment


class ShellNotInstalled(UserError):
    """The package that reads lines is missing."""

    def __init__(self) -> None:
        super().__init__(
            "the interactive shell needs the package 'prompt_toolkit'",
            hint="pip install 'millstream[sql]'; -f and -e work without it",
        )


def start(args: argparse.Namespace) -> int:
    """Run a script, or the shell."""
    env, tables = _environment(args)
    if args.file is None and args.execute is None and sys.stdin.isatty() and sys.stdout.isatty():
        return _interactive(args, env, tables)
    shell = Shell(env, tables, Screen(interactive=False))
    try:
        return _initialised(args, shell) or _script(args, shell)
    except BrokenPipeError:  # whoever read the results has gone; Python would complain when it flushes the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _script(args: argparse.Namespace, shell: Shell) -> int:
    if args.file is not None:
        return shell.script(read(args.file), args.file)
    if args.execute is not None:
        return shell.script(args.execute, "-e")
    return shell.script(sys.stdin.read(), "standard input")


def _environment(args: argparse.Namespace) -> tuple[StreamExecutionEnvironment, StreamTableEnvironment]:
    configuration = Configuration()
    for key, value in args.define:
        settings.check(key, value)
        configuration.set_string(key, value)
    if args.parallelism is not None:
        configuration.set(options.PARALLELISM, args.parallelism)
    if args.master is not None:
        configuration.set(options.SPARK_MASTER, args.master)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    chosen = EnvironmentSettings.new_instance().with_configuration(configuration).build()
    return env, StreamTableEnvironment.create(env, chosen)


def _initialised(args: argparse.Namespace, shell: Shell) -> int:
    for path in args.init:
        code = shell.script(read(path), path, wait=False)
        if code:
            return code
    return 0


def _interactive(args: argparse.Namespace, env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> int:
    try:
        from millstream.cli.shell.prompt import Prompt, history_file  # an extra: scripts run without it
        from millstream.cli.shell.view import LiveView
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in ("prompt_toolkit", "wcwidth"):
            raise
        raise ShellNotInstalled from None
    screen = Screen(interactive=True)
    shell = Shell(env, tables, screen, LiveView(screen))
    code = _initialised(args, shell)
    if code:
        return code
    history = Path(args.history).expanduser() if args.history else history_file(os.environ)
    prompt = Prompt(lambda: names_of(tables._catalogs), history)
    interact(shell, prompt, lambda: screen.line(f"millstream {__version__}: HELP; tells what there is, QUIT; leaves"))
    return 0

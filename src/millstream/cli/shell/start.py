"""Starts the shell from the arguments of `millstream sql`: a script, an interactive session, or the plans of a script.

Promises: statements come from -f, from -e, from a person at a terminal, or from standard input. An interactive session
ends with QUIT, EXIT or Ctrl-D, and asks first if jobs are running. `plan_jobs` starts no job and prints nothing to
standard output.
Does not know: how arguments are declared, what statements do."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from millstream import __version__, options
from millstream.cli.shell import settings
from millstream.cli.shell.editing import collect_names
from millstream.cli.shell.screen import Screen
from millstream.cli.shell.shell import Leave, Shell, read_script
from millstream.cli.shell.statements import Statement, StatementFailed, StatementLocation
from millstream.client import local
from millstream.config.configuration import Configuration
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.engine.announcement import hide_announcements
from millstream.errors import UserError
from millstream.graph.stream_graph import StreamGraph
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.table_environment import StreamTableEnvironment


class ShellNotInstalled(UserError):
    """The package for interactive input is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "the interactive shell needs the package 'prompt_toolkit'",
            hint="pip install 'millstream[sql]'; -f and -e work without it",
        )


def start(args: argparse.Namespace) -> int:
    """Run a script or an interactive session; returns the exit code."""
    env, tables = _create_environments(args)
    if args.file is None and args.execute is None and sys.stdin.isatty() and sys.stdout.isatty():
        return _interactive(args, env, tables)
    shell = Shell(env, tables, Screen(interactive=False))
    try:
        return _run_init_scripts(args, shell) or _run_script(args, shell)
    # the reader of the output has closed the pipe; Python must not fail when it flushes the rest
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run_script(args: argparse.Namespace, shell: Shell) -> int:
    if args.file is not None:
        return shell.run_script(read_script(args.file), args.file)
    if args.execute is not None:
        return shell.run_script(args.execute, "-e")
    return shell.run_script(sys.stdin.read(), "standard input")


def _create_environments(args: argparse.Namespace) -> tuple[StreamExecutionEnvironment, StreamTableEnvironment]:
    configuration = Configuration()
    for key, value in args.define:
        settings.check(key, value)
        configuration.set_string(key, value)
    if args.parallelism is not None:
        configuration.set(options.PARALLELISM, args.parallelism)
    if args.master is not None:
        configuration.set(options.SPARK_MASTER, args.master)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    environment_settings = EnvironmentSettings.new_instance().with_configuration(configuration).build()
    return env, StreamTableEnvironment.create(env, environment_settings)


def _run_init_scripts(args: argparse.Namespace, shell: Shell) -> int:
    for path in args.init:
        code = shell.run_script(read_script(path), path, wait=False)
        if code:
            return code
    return 0


def _interactive(args: argparse.Namespace, env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> int:
    try:
        # part of an extra, which scripts do not need
        from millstream.cli.shell.terminal import LiveView, Prompt, history_file
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in ("prompt_toolkit", "wcwidth"):
            raise
        raise ShellNotInstalled from None
    hide_announcements()  # the status line shows that Spark is started
    screen = Screen(interactive=True)
    shell = Shell(env, tables, screen, LiveView(screen))
    code = _run_init_scripts(args, shell)
    if code:
        return code
    history = Path(args.history).expanduser() if args.history else history_file(os.environ)
    prompt = Prompt(lambda: collect_names(tables._catalogs), history)
    interact(shell, prompt, lambda: screen.line(f"millstream {__version__}: HELP; shows help, QUIT; leaves the shell"))
    return 0


class Reader(Protocol):
    """The source of interactive input."""

    def read(self) -> str:
        """Return the next text; raises KeyboardInterrupt for Ctrl-C and EOFError for Ctrl-D."""

    def ask(self, question: str) -> bool:
        """Ask a yes-or-no question."""


def interact(shell: Shell, reader: Reader, greet: Callable[[], None]) -> None:
    """Read and run input until the user leaves the shell."""
    greet()
    while True:
        try:
            if not _wants_to_leave(shell, reader):
                continue
            running = shell.jobs.describe_running()
            if running is None or reader.ask(f"{running} will end with the shell. Leave?"):
                break
        except KeyboardInterrupt:
            continue  # no statement was running
    shell.jobs.end()


def _wants_to_leave(shell: Shell, reader: Reader) -> bool:
    shell.report_ended_jobs()
    try:
        shell.handle(reader.read())
    except (Leave, EOFError):
        return True
    return False


class _PlanningShell(Shell):
    """Continues after a statement whose job was planned but not started."""

    def _execute(self, statement: Statement, location: StatementLocation) -> None:
        with suppress(local.PlanOnly):
            super()._execute(statement, location)


def plan_jobs(path: str, init: Sequence[str], options: Mapping[str, str]) -> tuple[int, list[tuple[StreamGraph, str]]]:
    """Plan the jobs of a script without starting them.

    All other statements are executed, first those of the scripts `init`. Returns an exit code, and each job with its
    name."""
    configuration = Configuration()
    for key, value in options.items():
        settings.check(key, value)
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    environment_settings = EnvironmentSettings.new_instance().with_configuration(configuration).build()
    screen = Screen(interactive=False)
    shell = _PlanningShell(env, StreamTableEnvironment.create(env, environment_settings), screen)
    jobs: list[tuple[StreamGraph, str]] = []
    local._intercept.append(lambda graph, _configuration, name: jobs.append((graph, name)))
    try:
        for script in (*init, path):
            with suppress(Leave):
                shell.run(read_script(script), script)
    except StatementFailed as failed:
        screen.error(failed.error, verbose=False, prefix=failed.prefix)
        return 1, jobs
    finally:
        local._intercept.pop()
    return 0, jobs

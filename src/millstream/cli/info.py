"""`millstream info job.py`: shows the plan of a program without running its job.

Promises: no job is started; only the plan is printed to standard output, whatever the program prints.
Does not know: how a plan is computed or formatted."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.cli.run import add_program, run_guarded, split_program
from millstream.client.program import run_program
from millstream.config.configuration import Configuration
from millstream.engine.choice import describe_engine
from millstream.errors import ExternalError, UserError
from millstream.graph import explain
from millstream.graph.execution_plan import execution_plan
from millstream.graph.job_graph import job_graph
from millstream.graph.picture import svg
from millstream.graph.stream_graph import StreamGraph

if TYPE_CHECKING:
    from argparse import _SubParsersAction


class NothingPlanned(UserError):
    """The program ended without executing a job."""

    hint = "check that the program calls execute()"

    def __init__(self, path: str) -> None:
        super().__init__(f"the program '{path}' did not execute a job")


class SeveralFormats(UserError):
    """Several output formats are requested."""

    def __init__(self) -> None:
        super().__init__("--json, --mermaid and --svg cannot be combined", hint="run the command once for each")


class CannotWrite(ExternalError):
    """The diagram cannot be written to its file."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(f"cannot write {path}: {(error.strerror or str(error)).lower()}", hint="name another file")


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    usage = "millstream info [--json | --mermaid | --svg FILE] job.py [arguments]"
    description = "show the plan of a program without running it"
    parser = subparsers.add_parser("info", usage=usage, help=description, allow_abbrev=False)
    declare_options(parser)
    add_program(parser)
    parser.set_defaults(run=run)


def declare_options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Declare the options of the command."""
    add = parser.add_argument
    return [
        add("--json", action="store_true", help="print JSON in the format of Flink's plan visualizer"),
        add("--mermaid", action="store_true", help="print a Mermaid flowchart"),
        add("--svg", metavar="FILE", help="write an SVG diagram to FILE"),
    ]


def run(args: argparse.Namespace) -> int:
    """Run the program up to its job and show the plan."""
    path, arguments = split_program(args, declare_options)
    assert path is not None, "this command has no -pym"
    if args.json + args.mermaid + (args.svg is not None) > 1:
        raise SeveralFormats
    planned: list[tuple[StreamGraph, Configuration, str]] = []

    def keep(graph: StreamGraph, configuration: Configuration, name: str) -> None:
        planned.append((graph, configuration, name))

    with contextlib.redirect_stdout(sys.stderr):
        code = run_guarded(path, lambda: run_program(path, arguments, on_execute=keep))
    if code:
        return code
    if not planned:
        raise NothingPlanned(path)
    for graph, configuration, name in planned:
        _show(args, graph, configuration, name)
    return 0


def _show(args: argparse.Namespace, graph: StreamGraph, configuration: Configuration, name: str) -> None:
    plan = execution_plan(job_graph(graph, name))
    if args.json:
        print(explain.flink_json(graph))
    elif args.mermaid:
        print(explain.mermaid(plan), end="")
    elif args.svg is not None:
        try:
            Path(args.svg).write_text(svg(plan), encoding="utf-8")
        except OSError as error:
            raise CannotWrite(args.svg, error) from error
    else:
        print(explain.text(plan), end="")
        print(f"\nengine: {describe_engine(plan, configuration)}")

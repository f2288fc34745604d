"""`millstream savepoint check|show|dispose`: savepoints, before and after a job.

Promises: `check` says what a restore would keep, migrate, drop and refuse for a program or a script of SQL, starts no
job and changes nothing; exit code 1 if it would refuse. `dispose` deletes a savepoint, what it names and nothing else.
Does not know: how state is compared or stored."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.checkpoint.compatibility import Outcome, Verdict, compare
from millstream.checkpoint.savepoint import NotASavepoint, open_snapshot
from millstream.cli import checkpoints
from millstream.cli.info import NothingPlanned
from millstream.cli.run import guarded, setting
from millstream.client.program import run_program
from millstream.cluster.adoption import adopted
from millstream.cluster.probe import declared
from millstream.config.configuration import Configuration
from millstream.errors import UserError
from millstream.graph.execution_plan import execution_plan
from millstream.graph.explain import aligned, printable
from millstream.graph.job_graph import job_graph
from millstream.graph.stream_graph import StreamGraph

if TYPE_CHECKING:
    from argparse import _SubParsersAction


class OneJobOnly(UserError):
    """The program has several jobs, and the savepoint is of one."""

    def __init__(self, path: str, names: Sequence[str]) -> None:
        super().__init__(
            f"the program '{path}' executes several jobs: {', '.join(names)}", hint="choose one with --job NAME"
        )


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("savepoint", help="check, show and dispose of savepoints")
    actions = parser.add_subparsers(title="actions", metavar="<action>", required=True)
    check = actions.add_parser("check", help="what a program would keep of a savepoint, without running it")
    check.add_argument("program", metavar="job.py|job.sql", help="the program or script that is to start from it")
    check.add_argument("path", metavar="PATH", help="a savepoint's directory, or a chk-N")
    check.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="the program's own arguments, after --")
    check.add_argument("-n", "--allowNonRestoredState", action="store_true", help="state nobody claims is dropped")
    check.add_argument("--job", metavar="NAME", help="which job, if the program executes several")
    check.add_argument("-i", "--init", metavar="FILE", action="append", default=[], help="SQL to execute first")
    check.add_argument(
        "-D", dest="define", type=setting, action="append", default=[], metavar="KEY=VALUE", help="set an option"
    )
    check.add_argument("--no-open", action="store_true", help="do not open functions: compare operators only")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=run_check)
    show = actions.add_parser("show", help="what is in a savepoint")
    show.add_argument("directory", metavar="PATH", help="a savepoint's directory")
    show.add_argument("--verify", action="store_true", help="read every file and compare its checksum")
    show.add_argument("--json", action="store_true", help="print JSON")
    show.set_defaults(run=checkpoints.run, show=None)
    dispose = actions.add_parser("dispose", help="delete a savepoint")
    dispose.add_argument("path", metavar="PATH", help="a savepoint's directory")
    dispose.set_defaults(run=run_dispose)


def run_check(args: argparse.Namespace) -> int:
    """Compare a program with a savepoint."""
    snapshot = open_snapshot(args.path)
    snapshot.verify()
    verdicts: list[Verdict] = []
    with contextlib.redirect_stdout(sys.stderr):
        code, planned = _planned(args)
        if code:
            return code
        graph, name = _chosen(args, planned, snapshot.metadata.job_name)
        graph = adopted(graph, name, snapshot.metadata.operators)
        program = list(declared(execution_plan(job_graph(graph, name)), open_functions=not args.no_open))
        read = snapshot.reader().read
        verdicts = compare(snapshot.metadata, read, program, allow_unclaimed=args.allowNonRestoredState)
    refused = any(each.outcome is Outcome.REFUSED for each in verdicts)
    if args.json:
        print(json.dumps([_as_json(each) for each in verdicts], indent=2))
    else:
        sys.stdout.writelines(f"{line}\n" for line in aligned([_row(each) for each in verdicts]))
        print("refused: the job would not start from it" if refused else "the job can start from it")
    return 1 if refused else 0


def run_dispose(args: argparse.Namespace) -> int:
    """Delete a savepoint."""
    snapshot = open_snapshot(args.path)
    if snapshot.metadata.savepoint is None:
        raise NotASavepoint(args.path)
    snapshot.dispose()
    left = " (other files are left there)" if Path(snapshot.path).exists() else ""
    print(f"disposed of {printable(snapshot.path)}{left}")
    return 0


def _planned(args: argparse.Namespace) -> tuple[int, list[tuple[StreamGraph, str]]]:
    """The jobs of the program or script, and an exit code."""
    if Path(args.program).suffix.lower() == ".sql":
        # Late: programs are checked without the table API, in half the time.
        planned = importlib.import_module("millstream.cli.shell.planned")
        made: tuple[int, list[tuple[StreamGraph, str]]] = planned.planned_jobs(
            args.program, args.init, dict(args.define)
        )
        return made
    found: list[tuple[StreamGraph, str]] = []

    def keep(graph: StreamGraph, _: Configuration, name: str) -> None:
        found.append((graph, name))

    options = dict(args.define)
    run = guarded(
        args.program, lambda: run_program(args.program, args.arguments, configuration=options, on_execute=keep)
    )
    return run, found


def _chosen(
    args: argparse.Namespace, planned: Sequence[tuple[StreamGraph, str]], saved: str
) -> tuple[StreamGraph, str]:
    """The job that is meant: the one that --job names, else the only one, else the one with the savepoint's name."""
    found = [each for each in planned if args.job is None or each[1] == args.job]
    if not found:
        raise NothingPlanned(args.program)
    if len(found) > 1 and [name for _, name in found].count(saved) == 1:
        found = [each for each in found if each[1] == saved]
    if len(found) > 1:
        raise OneJobOnly(args.program, [name for _, name in found])
    return found[0]


def _row(verdict: Verdict) -> tuple[str, ...]:
    state = "" if verdict.state is None else f"  {printable(verdict.state)}"
    what = state or printable(verdict.operator)
    return what, verdict.outcome.value, printable("; ".join(verdict.notes))


def _as_json(verdict: Verdict) -> dict[str, object]:
    return {
        "operator": verdict.operator,
        "state": verdict.state,
        "fate": verdict.outcome.value,
        "notes": list(verdict.notes),
    }

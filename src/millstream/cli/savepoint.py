"""`millstream savepoint trigger|check|show|dispose`: writes, checks, shows and disposes savepoints.

Promises: `check` reports what a restore would keep, migrate, drop and refuse, for a program or a SQL script; it starts
no job and changes nothing, and its exit code is 1 if the restore would be refused. `dispose` deletes a savepoint, the
files it names and nothing else.
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
from millstream.checkpoint.savepoint import dispose_savepoint, open_snapshot
from millstream.cli import checkpoints, jobs
from millstream.cli.cluster_address import add_address, connect
from millstream.cli.info import NothingPlanned
from millstream.cli.run import run_guarded, setting
from millstream.client.program import run_program
from millstream.cluster.declared_state import find_declared_states
from millstream.cluster.max_parallelism import inherit_max_parallelism
from millstream.config.configuration import Configuration
from millstream.errors import UserError
from millstream.graph.execution_plan import execution_plan
from millstream.graph.explain import align_columns, printable
from millstream.graph.job_graph import job_graph
from millstream.graph.stream_graph import StreamGraph

if TYPE_CHECKING:
    from argparse import _SubParsersAction


_ACTIONS = ("trigger", "check", "show", "dispose")


class NoJobNamed(UserError):
    """The command line names no job."""

    def __init__(self) -> None:
        super().__init__("no job is named", hint="list the jobs and their ids: millstream list")


class SeveralProgramJobs(UserError):
    """The program has several jobs, but a savepoint belongs to one."""

    def __init__(self, path: str, names: Sequence[str]) -> None:
        super().__init__(
            f"the program '{path}' executes several jobs: {', '.join(names)}", hint="choose one with --job NAME"
        )


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("savepoint", help="trigger, check, show and dispose savepoints")
    actions = parser.add_subparsers(title="actions", metavar="<action>", required=True)
    trigger = actions.add_parser("trigger", help="write a savepoint of a running job (also without the word trigger)")
    trigger.add_argument("job", nargs="?", metavar="JOB", help="the id or name of the job")
    trigger.add_argument("directory", nargs="?", metavar="DIR", help="where to write the savepoint")
    trigger.add_argument("-type", "--type", choices=("canonical", "native"), help="the format of the savepoint")
    trigger.add_argument("-detached", "--detached", action="store_true", help="do not wait for the savepoint")
    trigger.add_argument("-d", "--dispose", metavar="PATH", help="let the cluster delete a savepoint instead")
    add_address(trigger)
    trigger.set_defaults(run=run_trigger)
    check = actions.add_parser("check", help="check whether a program can start from a savepoint, without running it")
    check.add_argument("program", metavar="job.py|job.sql", help="the program or SQL script")
    check.add_argument("path", metavar="PATH", help="the directory of a savepoint, or a chk-N")
    check.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="arguments of the program, after --")
    check.add_argument(
        "-n",
        "--allowNonRestoredState",
        action="store_true",
        help="drop state of operators that the program does not have",
    )
    check.add_argument("--job", metavar="NAME", help="the name of the job, if the program executes several")
    check.add_argument("-i", "--init", metavar="FILE", action="append", default=[], help="a SQL script to run first")
    check.add_argument(
        "-D", dest="define", type=setting, action="append", default=[], metavar="KEY=VALUE", help="set an option"
    )
    check.add_argument("--no-open", action="store_true", help="do not open functions; compare operators only")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=run_check)
    show = actions.add_parser("show", help="show the content of a savepoint")
    show.add_argument("directory", metavar="PATH", help="the directory of a savepoint")
    show.add_argument("--verify", action="store_true", help="read all files and check their checksums")
    show.add_argument("--json", action="store_true", help="print JSON")
    show.set_defaults(run=checkpoints.run, show=None)
    dispose = actions.add_parser("dispose", help="delete a savepoint")
    dispose.add_argument("path", metavar="PATH", help="the directory of a savepoint")
    dispose.set_defaults(run=run_dispose)


def with_action(words: Sequence[str]) -> list[str]:
    """Return the words of a command line; `savepoint JOB`, as in Flink, is `savepoint trigger JOB`."""
    if len(words) > 1 and words[0] == "savepoint" and words[1] not in (*_ACTIONS, "-h", "--help"):
        return ["savepoint", "trigger", *words[1:]]
    return list(words)


def run_trigger(args: argparse.Namespace) -> int:
    """Write a savepoint of a running job, or let the cluster delete one."""
    cluster = connect(args)
    if args.dispose is not None:
        cluster.dispose_savepoint(args.dispose)
        print(f"disposed {printable(args.dispose)}")
        return 0
    if args.job is None:
        raise NoJobNamed
    job = jobs.find_job(cluster, args.job)
    form = None if args.type is None else args.type.upper()
    if args.detached:
        operation = cluster.trigger_savepoint(job.id, args.directory, form=form)
        print(f"requested a savepoint of {job.id}; its result: GET {operation}")
        return 0
    print(f"savepoint: {printable(cluster.savepoint(job.id, args.directory, form=form))}")
    return 0


def run_check(args: argparse.Namespace) -> int:
    """Compare a program with a savepoint."""
    snapshot = open_snapshot(args.path)
    snapshot.verify()
    verdicts: list[Verdict] = []
    with contextlib.redirect_stdout(sys.stderr):
        code, jobs = _plan_jobs(args)
        if code:
            return code
        graph, name = _select_job(args, jobs, snapshot.metadata.job_name)
        graph = inherit_max_parallelism(graph, name, snapshot.metadata.operators)
        program = list(find_declared_states(execution_plan(job_graph(graph, name)), open_functions=not args.no_open))
        read = snapshot.reader().read
        verdicts = compare(snapshot.metadata, read, program, allow_unclaimed=args.allowNonRestoredState)
    is_refused = any(verdict.outcome is Outcome.REFUSED for verdict in verdicts)
    if args.json:
        print(json.dumps([_to_json(verdict) for verdict in verdicts], indent=2))
    else:
        sys.stdout.writelines(f"{line}\n" for line in align_columns([_to_row(verdict) for verdict in verdicts]))
        print("refused: the job cannot start from it" if is_refused else "the job can start from it")
    return 1 if is_refused else 0


def run_dispose(args: argparse.Namespace) -> int:
    """Delete a savepoint."""
    snapshot = dispose_savepoint(args.path)
    note = " (other files in the directory were kept)" if Path(snapshot.path).exists() else ""
    print(f"disposed {printable(snapshot.path)}{note}")
    return 0


def _plan_jobs(args: argparse.Namespace) -> tuple[int, list[tuple[StreamGraph, str]]]:
    """The exit code of the program or script, and its jobs."""
    if Path(args.program).suffix.lower() == ".sql":
        # imported here, because a program is checked in half the time without the Table API
        shell = importlib.import_module("millstream.cli.shell.start")
        planned: tuple[int, list[tuple[StreamGraph, str]]] = shell.plan_jobs(args.program, args.init, dict(args.define))
        return planned
    jobs: list[tuple[StreamGraph, str]] = []

    def add_job(graph: StreamGraph, _: Configuration, name: str) -> None:
        jobs.append((graph, name))

    options = dict(args.define)
    code = run_guarded(
        args.program, lambda: run_program(args.program, args.arguments, configuration=options, on_execute=add_job)
    )
    return code, jobs


def _select_job(
    args: argparse.Namespace, jobs: Sequence[tuple[StreamGraph, str]], savepoint_job: str
) -> tuple[StreamGraph, str]:
    """The job that --job names, else the only job, else the job with the name of the savepoint's job."""
    candidates = [job for job in jobs if args.job is None or job[1] == args.job]
    if not candidates:
        raise NothingPlanned(args.program)
    if len(candidates) > 1 and [name for _, name in candidates].count(savepoint_job) == 1:
        candidates = [job for job in candidates if job[1] == savepoint_job]
    if len(candidates) > 1:
        raise SeveralProgramJobs(args.program, [name for _, name in candidates])
    return candidates[0]


def _to_row(verdict: Verdict) -> tuple[str, ...]:
    state = "" if verdict.state is None else f"  {printable(verdict.state)}"
    name = state or printable(verdict.operator)
    return name, verdict.outcome.value, printable("; ".join(verdict.notes))


def _to_json(verdict: Verdict) -> dict[str, object]:
    return {
        "operator": verdict.operator,
        "state": verdict.state,
        "fate": verdict.outcome.value,
        "notes": list(verdict.notes),
    }

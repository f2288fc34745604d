"""`millstream chaos CASE --seed S`: injects faults into jobs and checks their results.

Promises: prints the faults and the measurements; the exit code is 0 if all checks passed; the trace of a failed run is
written to a file, and `--replay` repeats it.
Does not know: the cases."""

from __future__ import annotations

import argparse
import logging
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import UserError
from millstream.options import ENGINE
from millstream_chaos.registry import CASES, ON_ENGINES, plan, play
from millstream_chaos.trace import SIZES, Trace

if TYPE_CHECKING:
    from argparse import _SubParsersAction


class NoCase(UserError):
    """Neither a case nor a trace is named."""

    def __init__(self) -> None:
        known = "; ".join(f"{name} ({text})" for name, text in CASES.items())
        super().__init__("no chaos case is named", hint=f"name one of: {known}")


class NoEngine(UserError):
    """--engine is used with a case whose jobs do not run on Spark."""

    def __init__(self, case: str) -> None:
        super().__init__(
            f"the case '{case}' takes no --engine: its jobs run without Spark, or on two releases",
            hint=f"use one of {', '.join(ON_ENGINES)}",
        )


class MinutesForSoakOnly(UserError):
    """--minutes is used with a case that has no duration."""

    def __init__(self) -> None:
        super().__init__("--minutes is for the case soak", hint="the other cases take --size")


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("chaos", help="inject faults into jobs and check their results")
    add = parser.add_argument
    add("case", nargs="?", metavar="CASE", help=f"one of {', '.join(CASES)}, or all")
    add("--seed", type=int, default=1, metavar="S", help="seed of the random faults (default: 1)")
    add("--size", choices=SIZES, default="normal", help="amount of work (default: normal)")
    add("--minutes", type=float, metavar="N", help="duration of the case soak, instead of --size")
    add("--engine", choices=ENGINE.choices, help="what runs the jobs, for cases on Spark; `all` is these cases then")
    add("--steps", type=_parse_range, metavar="A:B", help="run only these steps of the trace, counted from 0")
    add("--replay", type=Path, metavar="TRACE", help="repeat the run of a trace file")
    add("--trace", type=Path, metavar="FILE", help="write the trace to this file, also if all checks pass")
    add("--keep", action="store_true", help="keep the working directory of the case")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the cases; returns the exit code."""
    if args.replay is not None:
        traces = [Trace.load(args.replay)]
    elif args.case is None:
        raise NoCase
    else:
        every = CASES if args.engine is None else ON_ENGINES
        names = list(every) if args.case == "all" else [args.case]
        if args.minutes is not None and names != ["soak"]:
            raise MinutesForSoakOnly
        parameters = {} if args.minutes is None else {"minutes": args.minutes}
        traces = [plan(name, args.seed, args.size, **parameters) for name in names]
    if args.engine is not None:
        traces = [_set_engine(trace, args.engine) for trace in traces]
    if args.steps is not None:
        traces = [trace.slice_steps(*args.steps) for trace in traces]
    return max(_run_trace(trace, args) for trace in traces)


def _set_engine(trace: Trace, engine: str) -> Trace:
    if trace.case not in ON_ENGINES:
        raise NoEngine(trace.case)
    return replace(trace, engine=engine)


def _parse_range(word: str) -> tuple[int, int | None]:
    first, colon, last = word.partition(":")
    if not (colon and (first.isdecimal() or not first) and (last.isdecimal() or not last)):
        message = f"{word!r} is not of the form A:B, A: or :B"
        raise argparse.ArgumentTypeError(message)
    return int(first or 0), int(last) if last else None


def _run_trace(trace: Trace, args: argparse.Namespace) -> int:
    directory = Path(tempfile.mkdtemp(prefix=f"millstream-chaos-{trace.case}-"))
    if args.trace is not None:
        trace.save(args.trace)
    logging.disable(logging.WARNING)  # the job logs every injected fault
    try:
        report = play(trace, directory)
    except BaseException:
        _save_trace(trace)
        raise
    finally:
        logging.disable(logging.NOTSET)
        if args.keep:
            print(f"  kept {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print("\n".join(report.format_lines()), flush=True)
    if report.ok:
        return 0
    _save_trace(trace)
    return 1


def _save_trace(trace: Trace) -> None:
    path = Path(f"chaos-{trace.case}-{trace.seed}.json")
    trace.save(path)
    print(f"  to repeat the run: millstream chaos --replay {path}", flush=True)

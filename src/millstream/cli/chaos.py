"""`millstream chaos CASE --seed S`: things go wrong on purpose, and everything must hold.

Promises: prints what was done and measured; the exit code is 0 when all held; the trace of a run that did not hold is
kept, and `--replay` plays it again.
Does not know: any case."""

from __future__ import annotations

import argparse
import logging
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import UserError
from millstream.testing import chaos

if TYPE_CHECKING:
    from argparse import _SubParsersAction


class NoCase(UserError):
    """Neither a case nor a trace was named."""

    def __init__(self) -> None:
        known = "; ".join(f"{name} ({text})" for name, (_, text) in chaos.CASES.items())
        super().__init__("no case was named", hint=f"there are: {known}")


class MinutesForSoakOnly(UserError):
    """A duration was given to a case that has none."""

    def __init__(self) -> None:
        super().__init__("--minutes is for the case soak", hint="the other cases take --size")


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("chaos", help="break things on purpose, and see that all holds")
    add = parser.add_argument
    add("case", nargs="?", metavar="CASE", help=f"one of {', '.join(chaos.CASES)}, or all")
    add("--seed", type=int, default=1, metavar="S", help="what goes wrong is drawn from it (default: 1)")
    add("--size", choices=chaos.SIZES, default="normal", help="how much is done (default: normal)")
    add("--minutes", type=float, metavar="N", help="how long the case soak runs, in place of --size")
    add("--steps", type=_slice, metavar="A:B", help="only these steps of the trace, counted from 0")
    add("--replay", type=Path, metavar="TRACE", help="do again what a trace says")
    add("--trace", type=Path, metavar="FILE", help="write the trace there, whether all held or not")
    add("--keep", action="store_true", help="keep the directory that the case worked in")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play cases; the exit code."""
    if args.replay is not None:
        traces = [chaos.Trace.load(args.replay)]
    elif args.case is None:
        raise NoCase
    else:
        names = list(chaos.CASES) if args.case == "all" else [args.case]
        if args.minutes is not None and names != ["soak"]:
            raise MinutesForSoakOnly
        parameters = {} if args.minutes is None else {"minutes": args.minutes}
        traces = [chaos.planned(name, args.seed, args.size, **parameters) for name in names]
    if args.steps is not None:
        traces = [trace.sliced(*args.steps) for trace in traces]
    return max(_play(trace, args) for trace in traces)


def _slice(word: str) -> tuple[int, int | None]:
    first, colon, last = word.partition(":")
    if not (colon and (first.isdecimal() or not first) and (last.isdecimal() or not last)):
        message = f"{word!r} is not of the form A:B, A: or :B"
        raise argparse.ArgumentTypeError(message)
    return int(first or 0), int(last) if last else None


def _play(trace: chaos.Trace, args: argparse.Namespace) -> int:
    directory = Path(tempfile.mkdtemp(prefix=f"millstream-chaos-{trace.case}-"))
    if args.trace is not None:
        trace.save(args.trace)
    logging.disable(logging.WARNING)  # things go wrong on purpose, and the job says so every time
    try:
        report = chaos.played(trace, directory)
    except BaseException:
        _keep(trace)
        raise
    finally:
        logging.disable(logging.NOTSET)
        if args.keep:
            print(f"  kept {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print("\n".join(report.lines()), flush=True)
    if report.ok:
        return 0
    _keep(trace)
    return 1


def _keep(trace: chaos.Trace) -> None:
    path = Path(f"chaos-{trace.case}-{trace.seed}.json")
    trace.save(path)
    print(f"  play it again: millstream chaos --replay {path}", flush=True)

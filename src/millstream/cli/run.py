"""`millstream run job.py`: a program with options from the command line.

Promises: what the command line sets is the default of every environment the program makes; an error begins in the
program's own file, never in ours; Ctrl-C cancels the job and exits with 130.
Does not know: what the program does.

Options stand before the program's file or right behind it; the first word that is none of them, or `--`, begins the
program's own arguments. `millstream info` reads its command line by the same rule."""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from millstream import options
from millstream.client.program import run_program
from millstream.errors import InternalError, MillstreamError, UserError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

CANCELLED = 130

Declare = Callable[[argparse.ArgumentParser], list[argparse.Action]]


class NoProgram(UserError):
    """A command that needs a program was given none."""

    def __init__(self) -> None:
        super().__init__("no program was named", hint="give the path of a Python file: millstream run job.py")


class NotDetached(UserError):
    """A job lives in the process of its program, so the program cannot be left behind."""

    def __init__(self) -> None:
        super().__init__(
            "-d is not possible: the job runs in the process of its program",
            hint="start the command in the background, with nohup or a service manager",
        )


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "run", usage="millstream run [options] job.py [arguments]", help="run a program", allow_abbrev=False
    )
    declare(parser)
    add_program(parser)
    parser.set_defaults(run=run)


def declare(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Declare the options, with Flink's names."""
    add = parser.add_argument
    return [
        add("-p", "--parallelism", type=_parallelism, metavar="N", help="the parallelism, unless the program sets one"),
        add("-s", "--fromSavepoint", metavar="PATH", help="the checkpoint or savepoint to start from"),
        add("-n", "--allowNonRestoredState", action="store_true", help="drop state that no operator claims"),
        add("--ha", metavar="DIR", help="stand by for other drivers of this job; leases are kept in DIR"),
        add("--savepointOnStop", metavar="DIR", help="Ctrl-C and SIGTERM stop the job with a savepoint in DIR"),
        add("--master", metavar="URL", help="the Spark master (default: this machine)"),
        add("-D", dest="define", type=setting, action="append", metavar="KEY=VALUE", help="set an option"),
        add("-d", "--detached", action="store_true", help=argparse.SUPPRESS),
    ]


def run(args: argparse.Namespace) -> int:
    """Run the program to its end."""
    path, arguments = take_program(args, declare)
    if args.detached:
        raise NotDetached
    if args.savepointOnStop is not None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    return guarded(path, lambda: run_program(path, arguments, configuration=configuration(args)))


def configuration(args: argparse.Namespace) -> dict[str, str]:
    """What the command line sets, by option; a flag beats a -D of the same option."""
    settings = dict(args.define or ())
    if args.parallelism is not None:
        settings[options.PARALLELISM.key] = str(args.parallelism)
    if args.fromSavepoint is not None:
        settings[options.RECOVERY_PATH.key] = args.fromSavepoint
    if args.allowNonRestoredState:
        settings[options.RECOVERY_IGNORE_UNCLAIMED.key] = "true"
    if args.ha is not None:
        settings[options.HA_TYPE.key] = "lease"
        settings[options.HA_STORAGE_DIR.key] = args.ha
    if args.savepointOnStop is not None:
        settings[options.SAVEPOINT_DIR.key] = args.savepointOnStop
        settings[options.ON_INTERRUPT.key] = "savepoint"
    if args.master is not None:
        settings[options.SPARK_MASTER.key] = args.master
    return settings


def _parallelism(word: str) -> int:
    if not (word.isdecimal() and int(word)):
        message = f"{word!r} is not a whole number above 0"
        raise argparse.ArgumentTypeError(message)
    return int(word)


def setting(word: str) -> tuple[str, str]:
    """An option as the command line gives it, KEY=VALUE."""
    key, equals, value = word.partition("=")
    if not (key and equals):
        message = f"{word!r} is not of the form key=value"
        raise argparse.ArgumentTypeError(message)
    return key, value


# ------------------------------------------------------------------------ the program and its words on the command line


def add_program(parser: argparse.ArgumentParser) -> None:
    """Declare the program's file and all that follows it, in our spelling and in Flink's."""
    rest = argparse.REMAINDER
    parser.add_argument("program", nargs=rest, metavar="job.py ...", help="the program, then its own arguments")
    parser.add_argument("-py", "--python", nargs=rest, help=argparse.SUPPRESS)


def take_program(args: argparse.Namespace, declare: Declare) -> tuple[str, list[str]]:
    """The program's file and its own arguments; options that stand between the two are put into `args`."""
    words: list[str] = args.python or args.program
    if not words:
        raise NoProgram
    parser = argparse.ArgumentParser(prog="millstream", add_help=False, allow_abbrev=False)
    ours = 1 + _leading(words[1:], declare(parser))
    parser.parse_args(words[1:ours], args)
    theirs = words[ours:]
    return words[0], theirs[1:] if theirs[:1] == ["--"] else theirs


def _leading(words: Sequence[str], actions: Sequence[argparse.Action]) -> int:
    """How many of the first words are options and their values."""
    place = 0
    while place < len(words):
        word = words[place]
        name = word.partition("=")[0] if word.startswith("--") else word
        exact = next((action for action in actions if name in action.option_strings), None)
        if exact is not None:
            place += 1 if exact.nargs == 0 or name != word else 2
        elif any(word[:2] in action.option_strings and action.nargs != 0 for action in actions) and word[:2] != "--":
            place += 1  # -p4, -Dkey=value
        else:
            break
    return min(place, len(words))


# -------------------------------------------------------------------------------------------------------------- errors


def guarded(path: str, work: Callable[[], None]) -> int:
    """Do something with a program; the exit code. What it raises is told from the program's own first line on."""
    try:
        work()
    except InternalError:
        raise
    except KeyboardInterrupt:
        print("millstream: cancelled", file=sys.stderr)
        return CANCELLED
    except Exception as problem:
        print(told(path, problem), file=sys.stderr)
        return 1
    return 0


def told(path: str, problem: Exception) -> str:
    """An error for the program's author: without frames before their file and, if it is ours, without any of ours."""
    trace = traceback.TracebackException.from_exception(problem)
    if not isinstance(problem, MillstreamError):
        for each in _chained(trace):
            each.stack[:] = _from_program(path, each.stack)
        return "".join(trace.format()).rstrip()
    has_own_place = "\n" in problem.message  # it begins with the traceback of a user function
    lines = [problem.message if has_own_place else f"millstream: {problem.message}"]
    places = [frame for frame in trace.stack if _is_program(path, frame)]
    if places and not has_own_place:
        lines.append(f"  at {places[-1].filename}, line {places[-1].lineno}: {places[-1].line}")
    if problem.hint:
        lines.append(f"  hint: {problem.hint}")
    return "\n".join(lines)


def _chained(trace: traceback.TracebackException) -> list[traceback.TracebackException]:
    found = [trace]
    for each in found:
        found += [other for other in (each.__cause__, each.__context__) if other is not None]
    return found


def _from_program(path: str, stack: Sequence[traceback.FrameSummary]) -> Sequence[traceback.FrameSummary]:
    first = next((place for place, frame in enumerate(stack) if _is_program(path, frame)), None)
    if first is not None:
        return stack[first:]
    # The file could not be read as Python, or the error is a cause raised below it: nothing before it is theirs.
    return [frame for frame in stack if "runpy" not in frame.filename and not frame.filename.startswith(_OURS)]


def _is_program(path: str, frame: traceback.FrameSummary) -> bool:
    return frame.filename == path or Path(frame.filename) == Path(path)


_OURS = str(Path(__file__).parent.parent)

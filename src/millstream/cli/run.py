"""`millstream run job.py`: runs a program with options from the command line.

Promises: options of the command line are the defaults of every environment that the program creates; a traceback begins
in the file of the program; Ctrl-C cancels the job, with exit code 130.
Does not know: what the program does.

Options can be before the file of the program or directly after it; the first word that is not an option, or `--`,
begins the arguments of the program. `millstream info` follows the same rule."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from millstream import options
from millstream.cli import submission
from millstream.cli.cluster_address import add_address
from millstream.cli.workspace import add_workspace
from millstream.client import local, unexecuted
from millstream.client.program import run_module, run_program
from millstream.client.uncaught_errors import CANCELLED_TEXT, format_error
from millstream.errors import InternalError, UserError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

CANCELLED = 130
UI_PORTS = "8081-8180"
_DEPENDENCIES = {
    "pyFiles": options.PYTHON_FILES,
    "pyRequirements": options.PYTHON_REQUIREMENTS,
    "pyArchives": options.PYTHON_ARCHIVES,
    "pyExecutable": options.PYTHON_EXECUTABLE,
}

DeclareOptions = Callable[[argparse.ArgumentParser], list[argparse.Action]]


class NoProgram(UserError):
    """The command line names no program."""

    def __init__(self) -> None:
        super().__init__("no program is named", hint="add the path of a Python file: millstream run job.py")


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "run",
        usage="millstream run [options] job.py [arguments]",
        help="run a program, here or in a session cluster",
        allow_abbrev=False,
    )
    declare_options(parser)
    rest = argparse.REMAINDER
    parser.add_argument("-pym", "--pyModule", nargs=rest, metavar="MODULE", help="run a module instead of a file")
    add_program(parser)
    parser.set_defaults(run=run)


def declare_options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Declare the options of the command, with Flink's names."""
    add = parser.add_argument
    return [
        add(
            "-p",
            "--parallelism",
            type=positive_integer,
            metavar="N",
            help="the default parallelism; the program can override it",
        ),
        add("-s", "--fromSavepoint", metavar="PATH", help="the checkpoint or savepoint to start from"),
        add(
            "-n",
            "--allowNonRestoredState",
            action="store_true",
            help="drop state of operators that the program does not have",
        ),
        add(
            "--ha",
            metavar="DIR",
            help="enable high availability: drivers of the same job elect a leader with leases in DIR",
        ),
        add("--savepointOnStop", metavar="DIR", help="on Ctrl-C and SIGTERM, stop the job with a savepoint in DIR"),
        add("--master", metavar="URL", help="the Spark master (default: this machine)"),
        add("-D", dest="define", type=setting, action="append", metavar="KEY=VALUE", help="set an option"),
        add("--claimMode", choices=("claim", "no_claim"), type=str.lower, help="who owns the checkpoint to start from"),
        add("-pyfs", "--pyFiles", metavar="PATHS", help="files that the program and its tasks import, by commas"),
        add("-pyreq", "--pyRequirements", metavar="FILE", help="a requirements file whose packages tasks import"),
        add("-pyarch", "--pyArchives", metavar="PATHS", help="archives that are extracted for every task, by commas"),
        add("-pyexec", "--pyExecutable", metavar="PYTHON", help="the Python interpreter of tasks"),
        add("--ui", action="store_true", help="serve the web UI while the program runs, and print its address"),
        add("-d", "--detached", action="store_true", help="submit to a session cluster and return"),
        *add_address(parser),
    ]


def run(args: argparse.Namespace) -> int:
    """Run the program; returns the exit code."""
    path, arguments = split_program(args, declare_options)
    if args.detached or args.jobmanager is not None:
        return submission.submit(args, path, arguments, configuration(args))
    if args.savepointOnStop is not None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = configuration(args)
    if args.ui:
        settings.setdefault(options.REST_BIND_PORT.key, UI_PORTS)
        add_workspace(settings)
        print(f"web UI: {local.serve(settings)}", file=sys.stderr, flush=True)
    if path is None:
        return run_guarded("", lambda: run_module(args.pyModule, arguments, configuration=settings))
    return run_guarded(path, lambda: run_program(path, arguments, configuration=settings))


def configuration(args: argparse.Namespace) -> dict[str, str]:
    """Return the options that the command line sets; a flag takes precedence over -D with the same option."""
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
    for name, option in _DEPENDENCIES.items():
        if getattr(args, name) is not None:
            settings[option.key] = getattr(args, name)
    if args.claimMode is not None:
        settings[options.RECOVERY_CLAIM_MODE.key] = args.claimMode.upper()
    return settings


def positive_integer(word: str) -> int:
    """Parse a positive integer of the command line."""
    if not (word.isdecimal() and int(word)):
        message = f"{word!r} is not a positive integer"
        raise argparse.ArgumentTypeError(message)
    return int(word)


def setting(word: str) -> tuple[str, str]:
    """Parse an option of the command line, KEY=VALUE."""
    key, equals, value = word.partition("=")
    if not (key and equals):
        message = f"{word!r} is not of the form key=value"
        raise argparse.ArgumentTypeError(message)
    return key, value


# ------------------------------------------------------------------------ the program and its words on the command line


def add_program(parser: argparse.ArgumentParser) -> None:
    """Declare the file of the program and the words after it; Flink's option -py is accepted too."""
    rest = argparse.REMAINDER
    parser.add_argument("program", nargs=rest, metavar="job.py ...", help="the program and its arguments")
    parser.add_argument("-py", "--python", nargs=rest, help=argparse.SUPPRESS)


def split_program(args: argparse.Namespace, declare: DeclareOptions) -> tuple[str | None, list[str]]:
    """Return the file of the program and its arguments; options between the two are added to `args`. The file is None
    if -pym names a module, and `args.pyModule` is then its name."""
    module: list[str] | None = getattr(args, "pyModule", None)
    words: list[str] = module or args.python or args.program
    if not words:
        raise NoProgram
    parser = argparse.ArgumentParser(prog="millstream", add_help=False, allow_abbrev=False)
    end = 1 + _count_options(words[1:], declare(parser))
    parser.parse_args(words[1:end], args)
    arguments = words[end:]
    if module:
        args.pyModule = words[0]
    return None if module else words[0], arguments[1:] if arguments[:1] == ["--"] else arguments


def _count_options(words: Sequence[str], actions: Sequence[argparse.Action]) -> int:
    """The number of leading words that are options or their values."""
    index = 0
    while index < len(words):
        word = words[index]
        name = word.partition("=")[0] if word.startswith("--") else word
        exact = next((action for action in actions if name in action.option_strings), None)
        if exact is not None:
            index += 1 if exact.nargs == 0 or name != word else 2
        elif any(word[:2] in action.option_strings and action.nargs != 0 for action in actions) and word[:2] != "--":
            index += 1  # -p4, -Dkey=value
        else:
            break
    return min(index, len(words))


# -------------------------------------------------------------------------------------------------------------- errors


def run_guarded(path: str, run: Callable[[], None]) -> int:
    """Run a program and print its error; returns the exit code.

    A traceback begins with the first line of the program."""
    try:
        run()
    except InternalError:
        raise
    except KeyboardInterrupt:
        unexecuted.forget_all()
        print(CANCELLED_TEXT, file=sys.stderr)
        return CANCELLED
    except Exception as problem:
        unexecuted.forget_all()
        print(format_error(path, problem), file=sys.stderr)
        return 1
    return 0

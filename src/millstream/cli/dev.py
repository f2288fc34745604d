"""`millstream dev job.py`: runs a program again whenever one of its files is saved.

Promises: Spark, the web UI and the Kafka broker stay while the program is replaced. With --keep-state, its job
continues from a savepoint. The command ends with Ctrl-C or SIGTERM.
Does not know: how files are watched and programs replaced; `reloading` does it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream import options
from millstream.cli import run as run_command
from millstream.cli.sample_input import repeat_lines
from millstream.cli.submission import MissingFile
from millstream.client import local
from millstream.config.configuration import Configuration
from millstream.errors import UserError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

BROKER_VARIABLE = "KAFKA_BOOTSTRAP_SERVERS"


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "dev",
        usage="millstream dev [options] job.py [arguments]",
        help="run a program, and run it again when one of its files is saved",
        allow_abbrev=False,
    )
    declare_options(parser)
    run_command.add_program(parser)
    parser.set_defaults(run=run)


def declare_options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Declare the options of the command."""
    add = parser.add_argument
    number, sample = run_command.positive_integer, run_command.setting
    return [
        add("-p", "--parallelism", type=number, metavar="N", help="the default parallelism"),
        add("-D", dest="define", type=sample, action="append", default=[], metavar="KEY=VALUE", help="set an option"),
        add("--master", metavar="URL", help="the Spark master (default: this machine)"),
        add("--keep-state", action="store_true", help="continue from a savepoint, not from the beginning of the input"),
        add("--kafka", action="store_true", help=f"start a Kafka broker, whose address is in {BROKER_VARIABLE}"),
        add(
            "--sample",
            type=sample,
            action="append",
            default=[],
            metavar="TOPIC=FILE",
            help="write the lines of a file to a topic of the broker, again and again",
        ),
        add("--rate", type=number, default=10, metavar="N", help="lines per second of each sample (default: 10)"),
    ]


def run(args: argparse.Namespace) -> int:
    """Run the program until a signal ends the command."""
    path, arguments = run_command.split_program(args, declare_options)
    for file in (path, *(name for _, name in args.sample)):
        if file is None or not Path(file).is_file():
            raise MissingFile(str(file))
    settings = read_settings(args)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from millstream.cli.reloading import Reloader  # imported here, because it imports Spark
    from millstream.cluster.session.start import run_session

    with ExitStack() as stack:
        if args.kafka or args.sample:
            broker = stack.enter_context(_start_broker())
            os.environ[BROKER_VARIABLE] = broker.bootstrap_servers
            _show(f"Kafka broker: {broker.bootstrap_servers}, in the environment variable {BROKER_VARIABLE}")
            for topic, file in args.sample:
                repeat_lines(broker, topic, Path(file), args.rate)
        savepoints = stack.enter_context(tempfile.TemporaryDirectory(prefix="millstream-dev-"))

        def start(address: str, driver: Any) -> None:
            _show(f"web UI: {address}")
            reloader = Reloader(driver, Path(str(path)), arguments, savepoints if args.keep_state else None, _show)
            threading.Thread(target=reloader.run, name="dev", daemon=True).start()

        try:
            run_session(Configuration.from_dict(settings), start)
        except KeyboardInterrupt:
            return 0
    return 0


def read_settings(args: argparse.Namespace) -> dict[str, str]:
    """Return the options of the cluster and of the program."""
    settings = {**local.defaults(), **dict(args.define)}
    settings.setdefault(options.REST_BIND_PORT.key, run_command.UI_PORTS)
    if args.parallelism is not None:
        settings[options.PARALLELISM.key] = str(args.parallelism)
    if args.master is not None:
        settings[options.SPARK_MASTER.key] = args.master
    return settings


def _start_broker() -> Any:
    try:
        from millstream.testing.kafka import KafkaBroker
    except ModuleNotFoundError as missing:
        msg = f"the Kafka broker needs the package '{missing.name}'"
        raise UserError(msg, hint="install it: pip install 'millstream[kafka]'") from missing
    return KafkaBroker()


def _show(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()

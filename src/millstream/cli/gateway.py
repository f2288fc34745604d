"""`millstream gateway start`: a SQL gateway for Flink's SQL client, its JDBC driver and `millstream sql --gateway`.

Promises: the gateway runs until Ctrl-C or SIGTERM; its address is printed when it listens.
Does not know: statements, requests."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from millstream import options
from millstream.cli.run import setting
from millstream.config.configuration import Configuration
from millstream.errors import UserError

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("gateway", help="serve SQL sessions over REST", allow_abbrev=False)
    actions = parser.add_subparsers(title="actions", metavar="<action>", required=True)
    start = actions.add_parser("start", help="start a gateway in this process", allow_abbrev=False)
    add = start.add_argument
    add("-D", dest="define", type=setting, action="append", default=[], metavar="KEY=VALUE", help="set an option")
    add("--master", metavar="URL", help="the Spark master (default: this machine)")
    start.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal ends the process."""
    configuration = Configuration.from_dict(dict(args.define))
    if args.master is not None:
        configuration.set(options.SPARK_MASTER, args.master)
    gateway = start_gateway(configuration)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    sys.stdout.write(f"the SQL gateway listens on {gateway.address}\n")
    sys.stdout.flush()
    ended.wait()
    gateway.stop()
    return 0


def start_gateway(configuration: Configuration) -> Any:
    """Start a gateway in this process.

    Raises:
        UserError: The packages of the server are not installed.

    """
    from millstream.cli.shell.editing import collect_names, complete  # late: other commands start without the table API
    from millstream.cluster import entrypoint
    from millstream.sql.catalog.catalog import Catalogs

    try:
        from millstream.gateway.server import Gateway
    except ModuleNotFoundError as missing:
        msg = f"the SQL gateway needs the package '{missing.name}'"
        raise UserError(msg, hint="install it: pip install 'millstream[rest]'") from missing

    def complete_at(statement: str, position: int, catalogs: Catalogs) -> list[str]:
        candidates = complete(statement[:position], statement[position:], collect_names(catalogs))
        return [candidate.text for candidate in candidates]

    token = entrypoint.read_token(configuration, create=True)
    return Gateway.start(configuration, entrypoint.SystemClock(), entrypoint.new_uuid, complete_at, token)

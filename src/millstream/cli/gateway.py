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
from millstream.cli.run import UI_PORTS, setting
from millstream.client import local
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
    add("--ui", action="store_true", help="serve the web UI with a SQL workspace, too, and print its address")
    start.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal ends the process."""
    configuration = read_configuration(args)
    if args.ui:
        sys.stdout.write(f"web UI: {serve_ui(configuration)}\n")
    gateway = start_gateway(configuration)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    sys.stdout.write(f"the SQL gateway listens on {gateway.address}\n")
    sys.stdout.flush()
    ended.wait()
    gateway.stop()
    return 0


def read_configuration(args: argparse.Namespace) -> Configuration:
    """Return the options of the configuration file, overridden by those of the command line."""
    configuration = Configuration.from_dict({**local.defaults(), **dict(args.define)})
    if args.master is not None:
        configuration.set(options.SPARK_MASTER, args.master)
    return configuration


def serve_ui(configuration: Configuration) -> str | None:
    """Serve the web UI with a SQL workspace; return its address."""
    from millstream.cli.workspace import add_workspace

    settings = configuration.to_dict()
    settings.setdefault(options.REST_BIND_PORT.key, UI_PORTS)
    add_workspace(settings)
    return local.serve(settings)


def complete_at(statement: str, position: int, catalogs: Any) -> list[str]:
    """Return the texts that can replace the word before a position of a statement."""
    from millstream.cli.shell.editing import collect_names, complete

    candidates = complete(statement[:position], statement[position:], collect_names(catalogs))
    return [candidate.text for candidate in candidates]


def start_gateway(configuration: Configuration) -> Any:
    """Start a gateway in this process.

    Raises:
        UserError: The packages of the server are not installed.

    """
    from millstream.cluster import entrypoint  # imported here, so that other commands start without the Table API

    try:
        from millstream.gateway.server import Gateway
    except ModuleNotFoundError as missing:
        msg = f"the SQL gateway needs the package '{missing.name}'"
        raise UserError(msg, hint="install it: pip install 'millstream[rest]'") from missing

    security = entrypoint.read_security(configuration)
    return Gateway.start(configuration, entrypoint.SystemClock(), entrypoint.new_uuid, complete_at, security)

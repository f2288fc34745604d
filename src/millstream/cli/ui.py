"""`millstream ui`: opens the web UI of a job or cluster, or serves Flink's dashboard for it.

Promises: the address is printed, and opened in a browser unless --no-browser is given. Flink's dashboard is served
until Ctrl-C, from the user's own Flink.
Does not know: what the pages show."""

from __future__ import annotations

import argparse
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING

from millstream.cli.cluster_address import add_address, connect
from millstream.client.flink_web import FlinkWeb, find_jar

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("ui", help="open the web UI of a job or cluster, or Flink's dashboard for it")
    add = parser.add_argument
    add("--flink-web", action="store_true", help="serve Flink's dashboard, from the Flink that is installed here")
    add("--port", type=int, default=0, metavar="N", help="the port of Flink's dashboard (default: any)")
    add("--no-browser", action="store_true", help="print the address only")
    add_address(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Open the page; Flink's dashboard is served until Ctrl-C."""
    cluster = connect(args)
    cluster.overview()  # fail here if there is no cluster at the address, instead of showing an empty page
    if not args.flink_web:
        _show(cluster.url, args)
        return 0
    dashboard = FlinkWeb(find_jar(), cluster, args.port)
    try:
        _show(dashboard.address, args)
        threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    finally:
        dashboard.stop()
    return 0


def _show(address: str, args: argparse.Namespace) -> None:
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    if not args.no_browser:
        webbrowser.open(address)

"""`millstream cluster start|status|stop`: a session cluster, which runs several programs on one Spark.

Promises: `start` runs the cluster in the foreground until Ctrl-C or SIGTERM; `start --detached` returns when it accepts
programs, and prints its address and process id.
Does not know: how the cluster works."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from millstream import options
from millstream.cli.cluster_address import add_address, connect
from millstream.cli.run import positive_integer, setting
from millstream.client import local
from millstream.client.remote import Unreachable
from millstream.config.configuration import Configuration
from millstream.errors import ExternalError
from millstream.graph.explain import align_columns

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_LISTENS = "the cluster listens on "
_STOP_SECONDS = 60.0


class NotStarted(ExternalError):
    """The cluster ended before it accepted programs."""

    def __init__(self, log: Path, code: int) -> None:
        super().__init__(f"the cluster ended with exit code {code} while it started", hint=f"see its log: {log}")


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("cluster", help="start, show and stop a session cluster")
    actions = parser.add_subparsers(title="actions", metavar="<action>", required=True)
    starting = actions.add_parser("start", help="start a session cluster, which runs programs of `millstream run -d`")
    add = starting.add_argument
    add("-d", "--detached", action="store_true", help="return when the cluster accepts programs")
    add("--slots", type=positive_integer, metavar="N", help="how many slots the jobs share (default: those of Spark)")
    add("--master", metavar="URL", help="the Spark master (default: this machine)")
    add("--ha", metavar="DIR", help="keep programs in DIR, and stand by if another cluster with the same DIR leads")
    add("--log", metavar="FILE", default="millstream-cluster.log", help="the log file with --detached")
    add("-D", dest="define", type=setting, action="append", metavar="KEY=VALUE", help="set an option")
    starting.set_defaults(run=run_start)
    showing = actions.add_parser("status", help="show slots and numbers of jobs")
    showing.add_argument("--json", action="store_true", help="print JSON")
    add_address(showing)
    showing.set_defaults(run=run_status)
    stopping = actions.add_parser("stop", help="stop the cluster; with --ha its programs continue at the next start")
    add_address(stopping)
    stopping.set_defaults(run=run_stop)


def run_start(args: argparse.Namespace) -> int:
    """Run the cluster, here or in a process of its own."""
    if args.detached:
        return _start_detached(args)
    from millstream.cluster.session.start import run_session  # imported here, because it imports Spark

    settings = {**local.defaults(), **dict(args.define or ())}
    if args.slots is not None:
        settings[options.TASK_SLOTS.key] = str(args.slots)
    if args.master is not None:
        settings[options.SPARK_MASTER.key] = args.master
    if args.ha is not None:
        settings |= {options.HA_TYPE.key: "lease", options.HA_STORAGE_DIR.key: args.ha}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run_session(Configuration.from_dict(settings), lambda address, _: print(f"{_LISTENS}{address}", flush=True))
    except KeyboardInterrupt:
        print("millstream: the cluster is stopped", file=sys.stderr)
    return 0


def _start_detached(args: argparse.Namespace) -> int:
    words = ["cluster", "start"]
    for name in ("slots", "master", "ha"):
        if getattr(args, name) is not None:
            words += [f"--{name}", str(getattr(args, name))]
    words += [word for key, value in args.define or () for word in ("-D", f"{key}={value}")]
    log = Path(args.log).absolute()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", "import sys; from millstream.cli.main import main; sys.exit(main())", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(_LISTENS):
            print(f"{line.rstrip()}\nprocess {process.pid}, log {log}")
            return 0
    raise NotStarted(log, process.wait())


def run_status(args: argparse.Namespace) -> int:
    """Show the cluster."""
    overview = connect(args).overview()
    if args.json:
        print(json.dumps(overview, indent=2))
    else:
        print("\n".join(align_columns([(name, str(value)) for name, value in overview.items()])))
    return 0


def run_stop(args: argparse.Namespace) -> int:
    """Stop the cluster, and wait until it does not answer any more."""
    cluster = connect(args)
    cluster.shut_down()
    until = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < until:
        try:
            cluster.overview()
        except Unreachable:
            print("the cluster is stopped")
            return 0
        time.sleep(0.2)
    msg = f"the cluster still answers after {_STOP_SECONDS:g} s"
    raise ExternalError(msg, hint="see its log")

"""`millstream cdc pipeline.yaml`: copies the tables of a database to a sink, with their changes.

Promises: the options of `millstream run` that concern jobs; Ctrl-C cancels the job, with exit code 130.
Does not know: pipelines."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from millstream import options
from millstream.cli.run import positive_integer, run_guarded, setting

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "cdc",
        help="copy tables of a database to a sink, with their changes, as a YAML file describes it",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-p", "--parallelism", type=positive_integer, metavar="N", help="the parallelism of the sinks")
    add("-s", "--fromSavepoint", metavar="PATH", help="the checkpoint or savepoint to start from")
    add("--master", metavar="URL", help="the Spark master (default: this machine)")
    add("-D", dest="define", type=setting, action="append", metavar="KEY=VALUE", help="set an option")
    add("pipeline", help="the YAML file: source, sink, route, transform, pipeline")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the pipeline; returns the exit code."""
    from millstream.cdc import read_pipeline, run_pipeline  # imported here, because it imports the Table API

    settings = dict(args.define or ())
    if args.parallelism is not None:
        settings[options.PARALLELISM.key] = str(args.parallelism)
    if args.fromSavepoint is not None:
        settings[options.RECOVERY_PATH.key] = args.fromSavepoint
        settings[options.RECOVERY_IGNORE_UNCLAIMED.key] = "true"
    if args.master is not None:
        settings[options.SPARK_MASTER.key] = args.master
    pipeline = read_pipeline(args.pipeline)

    def report(_: object, tables: tuple[str, ...]) -> None:
        print("\n".join(f"writing {table}" for table in tables), file=sys.stderr, flush=True)

    return run_guarded(args.pipeline, lambda: run_pipeline(pipeline, settings, on_started=report))

"""Nexmark's queries in Flink SQL, all of it in the JVM.

Promises: the mini-batches and split distinct aggregates that Nexmark publishes for Flink, and object reuse; state on the
heap and no checkpoints, where Nexmark publishes RocksDB and checkpoints. No Python after planning. q13 is a regular join, because none
of Flink's own connectors can be looked up; q14's function is spelt with built-in ones.
Does not know: other peers, or how the rates are compared."""

from __future__ import annotations

from benchmarks import common
from benchmarks.mini_batch_settings import mini_batches
from benchmarks.nexmark import files, golden, measure, program
from benchmarks.peers import flink_session
from pyflink.table import TableEnvironment


def session(mini_batch: int) -> TableEnvironment:
    """A session with Nexmark's settings for SQL, and mini-batches of so many rows."""
    settings = {"table.optimizer.distinct-agg.split.enabled": "true", **mini_batches(mini_batch)}
    return flink_session.session(flink_session.environment(), settings)


def asked(query: str, insert: str) -> str:
    """The statement as Flink can run it."""
    if query == "q13":
        return f"{insert.partition(chr(10))[0]}\n{golden.ASKED[query]}"
    return insert.replace("count_char(extra, 'c')", golden.COUNT_CHAR)


def main() -> None:
    """Check or measure."""
    args = measure.arguments(__doc__)
    engine = measure.Engine(lambda: session(args.mini_batch), lambda: program.csv_file(files.side_input(measure.CACHE)), asked)
    common.contest(args, lambda: measure.check(engine), lambda: measure.measure(engine, args))


if __name__ == "__main__":
    main()

"""Nexmark's queries in Flink SQL, all of it in the JVM.

Promises: the settings that Nexmark publishes for Flink; no Python after planning. q13 is a regular join, because none
of Flink's own connectors can be looked up; q14's function is spelt with built-in ones.
Does not know: other peers, or how the rates are compared."""

from __future__ import annotations

from benchmarks import common
from benchmarks.nexmark import files, golden, measure, program
from pyflink.table import EnvironmentSettings, TableEnvironment


def session() -> TableEnvironment:
    """A session with Nexmark's settings."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": str(common.PARALLELISM),
        "table.local-time-zone": "UTC",
        "pipeline.object-reuse": "true",
        "table.optimizer.distinct-agg.split.enabled": "true",
        **measure.MINI_BATCH,
    }
    for key, value in settings.items():
        env.get_config().set(key, value)
    return env


def asked(query: str, insert: str) -> str:
    """The statement as Flink can run it."""
    if query == "q13":
        return f"{insert.partition(chr(10))[0]}\n{golden.ASKED[query]}"
    return insert.replace("count_char(extra, 'c')", golden.COUNT_CHAR)


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=100_000, records=1_000_000, queries="all")
    engine = measure.Engine(session, lambda: program.csv_file(files.side_input(measure.CACHE)), asked)
    checked = measure.check(engine)
    common.answer({**measure.measure(engine, args.base, args.records, args.queries), "check": checked})


if __name__ == "__main__":
    main()

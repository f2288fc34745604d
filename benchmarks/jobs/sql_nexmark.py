"""Nexmark's queries in millstream's SQL.

Promises: the statements and the files of the peer, with mini-batches; q14's function is a Python function.
Does not know: peers, or how the rates are compared."""

from __future__ import annotations

from benchmarks import common
from benchmarks.nexmark import measure, program

from millstream.sql.connectors.simple import register_values
from millstream.table import DataTypes, EnvironmentSettings, TableEnvironment
from millstream.table.udf import udf


def session() -> TableEnvironment:
    """Defaults, with mini-batches and the benchmark's parallelism."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {"parallelism.default": str(common.PARALLELISM), "table.local-time-zone": "UTC", **measure.MINI_BATCH}
    for key, value in settings.items():
        env.get_config().set(key, value)
    env.create_temporary_function("count_char", udf(program.count_char, result_type=DataTypes.BIGINT()))
    return env


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=100_000, records=1_000_000, queries="all")
    register_values("nexmark_side_input", program.SIDE_ROWS)
    engine = measure.Engine(session, lambda: program.OFFERED)
    checked = measure.check(engine)
    common.answer({**measure.measure(engine, args.base, args.records, args.queries), "check": checked})


if __name__ == "__main__":
    main()

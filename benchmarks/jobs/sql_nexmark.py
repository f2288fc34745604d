"""Nexmark's queries in millstream's SQL.

Promises: the statements and the files of the peer, with mini-batches; q14's function is a Python function.
Does not know: peers, or how the rates are compared."""

from __future__ import annotations

from benchmarks import common
from benchmarks.mini_batch_settings import mini_batches
from benchmarks.nexmark import measure, program

from millstream.sql.connectors.simple import register_values
from millstream.table import DataTypes, EnvironmentSettings, TableEnvironment
from millstream.table.udf import udf


def session(mini_batch: int) -> TableEnvironment:
    """Defaults, with mini-batches of so many rows and the benchmark's parallelism."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": str(common.PARALLELISM),
        "table.local-time-zone": "UTC",
        **mini_batches(mini_batch),
    }
    for key, value in settings.items():
        env.get_config().set(key, value)
    env.create_temporary_function("count_char", udf(program.count_char, result_type=DataTypes.BIGINT()))
    return env


def main() -> None:
    """Check or measure."""
    args = measure.arguments(__doc__)
    register_values("nexmark_side_input", program.SIDE_ROWS)
    engine = measure.Engine(lambda: session(args.mini_batch), lambda: program.OFFERED)
    common.contest(args, lambda: measure.check(engine), lambda: measure.measure(engine, args))


if __name__ == "__main__":
    main()

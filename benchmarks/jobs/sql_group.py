"""Unbounded GROUP BY in millstream's SQL: count and sum per key.

Promises: the query of the Flink peer, with mini-batches of the same size; the output is discarded.
Does not know: peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import common, sql_input

from millstream.table import EnvironmentSettings, TableEnvironment


def offer(records: int, key: str, settings: dict[str, str]) -> TableEnvironment:
    """A session with the table `payments`; `key` is SQL, or the number of random keys."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in {"parallelism.default": str(common.PARALLELISM), **settings}.items():
        env.get_config().set(name, value)
    env.execute_sql(sql_input.payments(records, key))
    return env


if __name__ == "__main__":
    sql_input.measure(__doc__, offer)

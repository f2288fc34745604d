"""TPC-H in millstream: batch SQL over Parquet files.

Promises: the queries of the peer, text for text; planning and fetching are part of the time.
Does not know: peers, or how the times are compared."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks import common, tpch_input

from millstream.table import EnvironmentSettings, TableEnvironment

sys.path.append(str(tpch_input.CASES))

from tpch_cases import create_tables


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, factor="1", queries="all")
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.get_config().set("millstream.spark.master", f"local[{common.PARALLELISM}]")
    env.get_config().set("spark.driver.memory", "3g")
    env.get_config().set("parallelism.default", str(common.PARALLELISM))
    create_tables(env, tpch_input.tables(args.factor))

    def run(text: str) -> list[tuple[Any, ...]]:
        with env.execute_sql(text).collect() as rows:
            return [tuple(row) for row in rows]

    common.contest(args, lambda: tpch_input.check(run), lambda: tpch_input.measure(run, args))


if __name__ == "__main__":
    main()

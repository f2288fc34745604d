"""TPC-H straight on Spark SQL.

Promises: the same queries over the same files; planning and fetching are part of the time.
Does not know: other peers, or how the times are compared."""

from __future__ import annotations

from typing import Any

from benchmarks import common, tpch_input
from benchmarks.peers import spark_session


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, factor="1", queries="all")
    spark = spark_session.session()
    for path in sorted(tpch_input.tables(args.factor).glob("*.parquet")):
        spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)

    def run(text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(text).collect()]

    common.contest(args, lambda: tpch_input.check(run), lambda: tpch_input.measure(run, args))
    spark.stop()


if __name__ == "__main__":
    main()

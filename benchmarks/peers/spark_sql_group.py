"""Unbounded GROUP BY in Structured Streaming: count and sum per key, all of it in the JVM.

Promises: native aggregates and the default state store, in update mode: each batch tells the keys that changed.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from typing import Any

from benchmarks import common, sql_input
from benchmarks.peers import spark_session
from pyspark.sql import DataFrame


def totals(numbers: DataFrame, key: str) -> DataFrame:
    """(key, count, sum) of each key; `key` is SQL."""
    payments = numbers.selectExpr(f"{key} AS k", f"{common.AMOUNT_SQL} AS amount")
    payments.createOrReplaceTempView("payments")
    return payments.sparkSession.sql(sql_input.TOTALS)


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=2_000_000, records=12_000_000, keys=100_000, batch=1_000_000)
    spark = spark_session.session()

    def check() -> dict[str, int]:
        small = totals(spark_session.numbers(spark, common.CHECK_RECORDS), sql_input.key_sql(sql_input.CHECK_KEYS))
        return sql_input.last_totals(spark_session.collect(small, "update", common.CHECK_RECORDS))

    def measure() -> dict[str, Any]:
        batch = min(args.batch, args.base)
        output = totals(spark_session.numbers(spark, batch), spark_session.random_key(args.keys))
        return spark_session.measure(output, "update", batch, args)

    common.contest(args, check, measure)
    spark.stop()


if __name__ == "__main__":
    main()

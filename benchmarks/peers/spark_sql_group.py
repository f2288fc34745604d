"""Unbounded GROUP BY in Structured Streaming: count and sum per key, all of it in the JVM.

Promises: native aggregates and the default state store, in update mode: each batch tells the keys that changed.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import common, sql_input
from benchmarks.peers import spark_session
from pyspark.sql import DataFrame


def totals(numbers: DataFrame, keys: int) -> DataFrame:
    """(key, count, sum) of each key."""
    payments = numbers.selectExpr(f"{sql_input.key_sql(keys)} AS k", f"{common.AMOUNT_SQL} AS amount")
    payments.createOrReplaceTempView("payments")
    return payments.sparkSession.sql(sql_input.TOTALS)


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=2_000_000, records=12_000_000, keys=100_000, batch=1_000_000)
    spark = spark_session.session()
    small = totals(spark_session.numbers(spark, common.CHECK_RECORDS), sql_input.CHECK_KEYS)
    checked = sql_input.last_totals(spark_session.collect(small, "update", common.CHECK_RECORDS))
    batch = min(args.batch, args.base)
    output = totals(spark_session.numbers(spark, batch), args.keys)
    reports = spark_session.run_batches(output, "update", args.records // batch, batch)
    common.answer({**spark_session.rate(reports, args.base), "batch": batch, "check": checked})
    spark.stop()


if __name__ == "__main__":
    main()

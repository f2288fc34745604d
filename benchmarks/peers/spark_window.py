"""Tumbling event-time window in Structured Streaming: count and sum per key, all of it in the JVM.

Promises: native aggregates and the default state store; rows appear once, when the watermark has passed their window.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from benchmarks import common
from benchmarks.peers import spark_session


def totals(numbers: DataFrame, window_ms: int, key: str) -> DataFrame:
    """(key, window start in ms, count, sum) of each key and window; `key` is SQL."""
    payments = numbers.selectExpr("ts", f"{key} AS k", f"{common.AMOUNT_SQL} AS amount")
    payments.withWatermark("ts", "0 seconds").createOrReplaceTempView("payments")
    return payments.sparkSession.sql(
        "SELECT k, unix_millis(window.start), COUNT(*) AS n, SUM(amount) AS total FROM payments "
        f"GROUP BY window(ts, '{window_ms} milliseconds'), k"
    )


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=2_000_000, records=12_000_000, batch=1_000_000)
    spark = spark_session.session()

    def check() -> dict[str, int]:
        # One batch alone moves no watermark, so the check reads the same query's updates.
        key = f"MOD({common.KEY_SQL}, {common.CHECK_KEYS})"
        small = totals(spark_session.numbers(spark, common.CHECK_RECORDS), common.CHECK_WINDOW_MS, key)
        return common.digest(spark_session.collect(small, "update", common.CHECK_RECORDS))

    def measure() -> dict[str, Any]:
        batch = min(args.batch, args.base)
        output = totals(spark_session.numbers(spark, batch), common.WINDOW_MS, spark_session.random_key(common.KEYS))
        return spark_session.measure(output, "append", batch, args)

    common.contest(args, check, measure)
    spark.stop()


if __name__ == "__main__":
    main()

"""Tumbling event-time window in Structured Streaming: count and sum per key, all of it in the JVM.

Promises: native aggregates and the default state store; rows appear once, when the watermark has passed their window.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from pyspark.sql import DataFrame

from benchmarks import common
from benchmarks.peers import spark_session


def totals(numbers: DataFrame, window_ms: int, keys: int) -> DataFrame:
    """(key, window start in ms, count, sum) of each key and window."""
    payments = numbers.selectExpr("ts", f"MOD({common.KEY_SQL}, {keys}) AS k", f"{common.AMOUNT_SQL} AS amount")
    payments.withWatermark("ts", "0 seconds").createOrReplaceTempView("payments")
    return payments.sparkSession.sql(
        "SELECT k, unix_millis(window.start), COUNT(*) AS n, SUM(amount) AS total FROM payments "
        f"GROUP BY window(ts, '{window_ms} milliseconds'), k"
    )


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=2_000_000, records=12_000_000, batch=1_000_000)
    spark = spark_session.session()
    # One batch alone moves no watermark, so the check reads the same query's updates.
    small = totals(spark_session.numbers(spark, common.CHECK_RECORDS), common.CHECK_WINDOW_MS, common.CHECK_KEYS)
    checked = common.digest(spark_session.collect(small, "update", common.CHECK_RECORDS))
    batch = min(args.batch, args.base)
    output = totals(spark_session.numbers(spark, batch), common.WINDOW_MS, common.KEYS)
    reports = spark_session.run_batches(output, "append", args.records // batch, batch)
    common.answer({**spark_session.rate(reports, args.base), "batch": batch, "check": checked})
    spark.stop()


if __name__ == "__main__":
    main()

"""transformWithState in Python on Spark: count and sum per key.

Promises: the input is generated and the output discarded in the JVM; state is in RocksDB, the only
store that the operator runs on.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from benchmarks import common
from benchmarks.peers import spark_session

OUTPUT = "k string, n bigint, total bigint"


class CountAndSum(StatefulProcessor):
    """Running count and sum of a key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("totals", "n bigint, total bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        count, total = self._state.get() or (0, 0)
        for row in rows:
            count, total = count + 1, total + row.amount
            yield Row(k=key[0], n=count, total=total)
        self._state.update((count, total))


def totals(numbers: DataFrame, keys: int) -> DataFrame:
    """(key, running count, running sum) of each record."""
    payments = numbers.selectExpr(
        f"concat('user-', CAST(MOD({common.KEY_SQL}, {keys}) AS STRING)) AS k", f"{common.AMOUNT_SQL} AS amount"
    )
    return payments.groupBy("k").transformWithState(CountAndSum(), OUTPUT, "Update", "None")


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=100_000, records=500_000, batch=100_000)
    spark = spark_session.session(**{"spark.sql.streaming.stateStore.providerClass": spark_session.ROCKSDB})
    small = totals(spark_session.numbers(spark, common.CHECK_RECORDS), common.CHECK_KEYS)
    checked = common.keyed_digest(spark_session.collect(small, "update", common.CHECK_RECORDS))
    batch = min(args.batch, args.base)
    output = totals(spark_session.numbers(spark, batch), common.KEYS)
    reports = spark_session.run_batches(output, "update", args.records // batch, batch)
    common.answer({**spark_session.rate(reports, args.base), "batch": batch, "check": checked})
    spark.stop()


if __name__ == "__main__":
    main()

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


def totals(numbers: DataFrame, key: str) -> DataFrame:
    """(key, running count, running sum) of each record; `key` is SQL."""
    payments = numbers.selectExpr(
        f"concat('user-', CAST({key} AS STRING)) AS k", f"{common.AMOUNT_SQL} AS amount"
    )
    return payments.groupBy("k").transformWithState(CountAndSum(), OUTPUT, "Update", "None")


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=100_000, records=500_000, batch=100_000)
    spark = spark_session.session(**spark_session.ROCKSDB)

    def check() -> dict[str, int]:
        key = f"MOD({common.KEY_SQL}, {common.CHECK_KEYS})"
        small = totals(spark_session.numbers(spark, common.CHECK_RECORDS), key)
        return common.keyed_digest(spark_session.collect(small, "update", common.CHECK_RECORDS))

    def measure() -> dict[str, Any]:
        batch = min(args.batch, args.base)
        output = totals(spark_session.numbers(spark, batch), spark_session.random_key(common.KEYS))
        return spark_session.measure(output, "update", batch, args)

    common.contest(args, check, measure)
    spark.stop()


if __name__ == "__main__":
    main()

"""Word count and sessions over bounded input in Spark itself, with the same Python functions.

Promises: words by `reduceByKey` on an RDD; sessions by a shuffle and sort of a DataFrame and a loop over its rows in
`mapInArrow`, or by `groupByKey` on an RDD. The output is counted.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from benchmarks import batch_input, common
from benchmarks.peers import spark_session
from pyspark.sql import DataFrame, SparkSession

SESSIONS = "key long, first long, last long, total long"
SCHEMA = pa.schema([(name, pa.int64()) for name in ("key", "first", "last", "total")])


def words(spark: SparkSession, records: int, keys: int) -> Any:
    """An RDD of (word, count)."""
    numbers = spark.sparkContext.range(records, numSlices=common.PARALLELISM)
    pairs = numbers.map(lambda index: (batch_input.word(index, keys), 1))
    return pairs.reduceByKey(lambda one, other: one + other, common.PARALLELISM)


def cut(clicks: list[tuple[int, int, int]], gap: int) -> Iterator[list[tuple[int, int, int]]]:
    """Clicks of one key, in the order of time, as sessions."""
    begin = 0
    for at in range(1, len(clicks)):
        if clicks[at][1] - clicks[at - 1][1] > gap:
            yield clicks[begin:at]
            begin = at
    yield clicks[begin:]


def from_frame(clicks: DataFrame, gap: int) -> DataFrame:
    """Sessions of sorted rows."""

    def of_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[tuple[int, int, int]] = []
        found: list[tuple[int, int, int, int]] = []
        for batch in batches:
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if held and (row[0] != held[-1][0] or row[1] - held[-1][1] > gap):
                    found.append(batch_input.session(held[0][0], held))
                    held = []
                held.append(row)
            if found:
                yield _batch(found)
                found = []
        if held:
            yield _batch([batch_input.session(held[0][0], held)])

    split = clicks.repartition(common.PARALLELISM, "key").sortWithinPartitions("key", "ts")
    return split.mapInArrow(of_rows, SESSIONS)


def _batch(rows: list[tuple[int, int, int, int]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


def from_rdd(clicks: DataFrame, gap: int) -> Any:
    """Sessions of groups of rows."""
    pairs = clicks.rdd.map(lambda row: (row[0], tuple(row)))
    groups = pairs.groupByKey(common.PARALLELISM)
    return groups.flatMap(
        lambda group: [batch_input.session(group[0], part) for part in cut(sorted(group[1], key=lambda c: c[1]), gap)]
    )


def generated(spark: SparkSession, records: int, keys: int) -> DataFrame:
    """Clicks with keys that are all equally frequent, a click a millisecond."""
    numbers = spark.range(0, records, 1, common.PARALLELISM)
    return numbers.selectExpr(f"pmod(xxhash64(id), {keys}) AS key", "id AS ts", f"pmod(id, {common.AMOUNTS}) AS amount")


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, task="words", api="rdd", base=1_000_000, records=50_000_000, keys=batch_input.KEYS)
    spark = spark_session.session(**{"spark.driver.memory": "640m", "spark.sql.adaptive.enabled": "false"})

    def check() -> dict[str, int]:
        if args.task == "words":
            return common.digest(words(spark, common.CHECK_RECORDS, common.CHECK_KEYS).collect())
        small = [batch_input.click(index) for index in range(common.CHECK_RECORDS)]
        clicks = spark.createDataFrame(small, "key long, ts long, amount long")
        return common.digest(tuple(row) for row in sessions(clicks, batch_input.CHECK_GAP).collect())

    def run(records: int) -> object:
        if args.task == "words":
            return words(spark, records, args.keys).count()
        return sessions(generated(spark, records, args.keys), args.keys).count()

    sessions = from_frame if args.api == "frame" else from_rdd
    common.contest(args, check, lambda: common.rate_of(run, args))
    spark.stop()


if __name__ == "__main__":
    main()

"""One record a micro-batch in Structured Streaming: a Python function, and a count per key after one exchange.

Promises: a sample is a whole trigger, from planning the batch to its commit; the first batches are not counted. With
`--progress async`, a batch does not wait for the logs of offsets and commits.
Does not know: other peers, or how the latencies are compared."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType

from benchmarks import common
from benchmarks.peers import spark_session

WARM_UP = 100


@udf(returnType=LongType())
def next_number(number: int) -> int:
    """The user's function."""
    return number + 1


def mapped(numbers: DataFrame) -> DataFrame:
    """Each number through the user's function."""
    return numbers.select(next_number("i").alias("i"))


def main() -> None:
    """Measure; there is nothing to compare in the output of a clock."""
    args = common.arguments(__doc__, exchange=0, records=200, progress="sync")
    spark = spark_session.session()
    output = mapped(spark_session.numbers(spark, 1))
    if args.exchange:
        output = output.groupBy((output.i % common.CHECK_KEYS).alias("k")).count()
    options = spark_session.ASYNC_PROGRESS if args.progress == "async" else {}
    mode = "update" if args.exchange else "append"
    reports = spark_session.run_batches(output, mode, WARM_UP + args.records, 1, **options)
    samples = [float(report["durationMs"]["triggerExecution"]) for report in reports[WARM_UP:]]
    common.answer(common.latencies(samples))
    spark.stop()


if __name__ == "__main__":
    main()

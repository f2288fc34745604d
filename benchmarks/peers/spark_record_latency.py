"""How long a record takes in Structured Streaming's micro-batches, from the socket to the sink function.

Promises: a Python function and, with `--exchange 1`, Spark's native count per key; each batch begins when the one
before has ended. Several counts one after another are not allowed in update mode, so there is no `--exchange 3`.
Does not know: other peers, or how the latencies are compared. Real-time mode reads no sockets."""

from __future__ import annotations

import tempfile
from functools import partial

from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import count, max_by, split, udf
from pyspark.sql.functions import max as greatest
from pyspark.sql.types import LongType

from benchmarks import common, record_feed
from benchmarks.peers import spark_session


@udf(returnType=LongType())
def unchanged(number: int) -> int:
    """The user's function."""
    return number


def build(lines: DataFrame, exchange: int) -> DataFrame:
    """The columns `number` and `created`."""
    words = split(lines.value, " ")
    records = lines.select(
        unchanged(words.getItem(0).cast("long")).alias("number"), words.getItem(1).cast("long").alias("created")
    )
    if not exchange:
        return records
    keyed = records.groupBy((records.number % record_feed.KEYS).alias("key"))
    return keyed.agg(
        greatest("number").alias("number"), max_by("created", "number").alias("created"), count("*").alias("records")
    )


def arrive(directory: str, rate: int, row: Row) -> None:
    """The sink function."""
    record_feed.note_arrival(directory, rate, row.number, row.created)


def main() -> None:
    """Measure."""
    args = common.arguments(__doc__, exchange=0, rate=1, seconds=30)
    spark = spark_session.session()
    with (
        record_feed.feed(args.rate, args.seconds) as feed,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
    ):
        lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", feed.port).load()
        output = build(lines, args.exchange).writeStream.foreach(partial(arrive, feed.directory, args.rate))
        mode = "update" if args.exchange else "append"
        query = output.outputMode(mode).option("checkpointLocation", directory).start()
        answer = feed.wait()
        query.stop()
    common.answer(answer)
    spark.stop()


if __name__ == "__main__":
    main()

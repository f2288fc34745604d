"""What the Spark peers share: a session of the benchmark's size, a stream of numbers, and a query's batches.

Promises: batches of exactly the asked size, numbered from 0 without gaps; the query is stopped after enough of them.
Does not know: what a peer computes."""

from __future__ import annotations

import tempfile
import time
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from benchmarks import common

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(**settings: str) -> SparkSession:
    """A local session with as many cores and shuffle partitions as the benchmark has parallelism."""
    builder = (
        SparkSession.builder.master(f"local[{common.PARALLELISM}]")
        .config("spark.sql.shuffle.partitions", str(common.PARALLELISM))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.log.level", "ERROR")
    )
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def numbers(spark: SparkSession, batch: int) -> DataFrame:
    """A stream with one column `i`: 0, 1, 2, ... in micro-batches of `batch` rows, each millisecond of `ts` one row."""
    stream = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", batch)
        .option("numPartitions", common.PARALLELISM)
        .load()
    )
    return stream.selectExpr("value AS i", "timestamp_millis(value) AS ts")


def run_batches(output: DataFrame, mode: str, batches: int, rows_per_batch: int) -> list[dict[str, Any]]:
    """The progress reports of the query's first `batches` batches with data, in order; the output is discarded."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        query = output.writeStream.format("noop").outputMode(mode).option("checkpointLocation", directory).start()
        try:
            return _wait_for(query, batches, rows_per_batch)
        finally:
            query.stop()


def collect(output: DataFrame, mode: str, rows_in: int) -> list[tuple[Any, ...]]:
    """The output rows of the query's first batch, which has `rows_in` rows."""
    kept: dict[int, list[tuple[Any, ...]]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        kept[number] = [tuple(row) for row in batch.collect()]

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        query = output.writeStream.foreachBatch(keep).outputMode(mode).option("checkpointLocation", directory).start()
        try:
            _wait_for(query, 1, rows_in)
        finally:
            query.stop()
    return kept[0]


def _wait_for(query: StreamingQuery, batches: int, rows_per_batch: int) -> list[dict[str, Any]]:
    while True:
        failure = query.exception()
        if failure is not None:
            raise failure
        full = [dict(report) for report in query.recentProgress if report["numInputRows"] == rows_per_batch]
        if len(full) >= batches:
            return full[:batches]
        time.sleep(0.1)


def ended_at(report: dict[str, Any]) -> float:
    """When a batch was committed, in seconds."""
    started = datetime.fromisoformat(report["timestamp"].replace("Z", "+00:00"))
    return started.timestamp() + float(report["durationMs"]["triggerExecution"]) / 1_000


def rate(reports: list[dict[str, Any]], base: int) -> dict[str, Any]:
    """The rate between the commit of the batch that completes `base` rows and the commit of the last batch."""
    size = int(reports[0]["numInputRows"])
    first = max(1, base // size)
    start = datetime.fromisoformat(reports[0]["timestamp"].replace("Z", "+00:00")).timestamp()
    return common.rate_between(
        first * size, ended_at(reports[first - 1]) - start, len(reports) * size, ended_at(reports[-1]) - start
    )

"""What the Spark peers share: a session of the benchmark's size, a stream of numbers, and a query's batches.

Promises: the collector, the ANSI mode and the settings of Arrow that millstream's own queries on Spark have; batches of
exactly the asked size, numbered from 0 without gaps; the query is stopped after enough of them.
Does not know: what a peer computes."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from benchmarks import common
from benchmarks.family import Family

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
# Commits of a query's progress that do not wait for the log, which Spark supports for queries without state.
ASYNC_PROGRESS = {
    "asyncProgressTrackingEnabled": "true",
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}


def random_key(keys: int) -> str:
    """A random key as SQL."""
    return f"CAST(rand() * {keys} AS BIGINT)"


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
        .config("spark.driver.extraJavaOptions", "-XX:+UseParallelGC")
        .config("spark.sql.ansi.enabled", "false")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
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


def run_batches(
    output: DataFrame, mode: str, batches: int, rows_per_batch: int, **options: str
) -> list[dict[str, Any]]:
    """The progress reports of the query's first `batches` batches with data, in order; the output is discarded."""
    with running(output, mode, **options) as query:
        return _wait_for(query, lambda reports: len(reports) >= batches, rows_per_batch)[:batches]


@contextmanager
def running(output: DataFrame, mode: str, **options: str) -> Iterator[StreamingQuery]:
    """A query whose output is discarded, with a checkpoint directory of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        writer = output.writeStream.format("noop").outputMode(mode).options(**options)
        query = writer.option("checkpointLocation", directory).start()
        try:
            yield query
        finally:
            query.stop()


def measure(output: DataFrame, mode: str, batch: int, args: argparse.Namespace) -> dict[str, Any]:
    """The rate between two commits: one after `warm_up` seconds and `base` rows, and one after `timed` seconds more."""
    family = Family(os.getpid())
    with running(output, mode) as query:
        warm = _wait_for(
            query,
            lambda reports: len(reports) * batch >= args.base and _span(reports) >= args.warm_up,
            batch,
        )
        used, at = family.cpu_seconds(), time.monotonic()
        first = len(warm)
        reports = _wait_for(
            query,
            lambda reports: len(reports) > first
            and len(reports) * batch >= args.records
            and ended_at(reports[-1]) - ended_at(reports[first - 1]) >= args.timed,
            batch,
        )
        cores = (family.cpu_seconds() - used) / (time.monotonic() - at)
    start = started_at(reports[0])
    times = ended_at(reports[first - 1]) - start, ended_at(reports[-1]) - start
    rows = (len(reports) - first) * batch
    return {
        **common.rate_between(first * batch, times[0], len(reports) * batch, times[1]),
        "warm_up": round(times[0], 1),
        "cpu_us": 1e6 * cores * (times[1] - times[0]) / rows,
        "batch": batch,
    }


def _span(reports: list[dict[str, Any]]) -> float:
    return ended_at(reports[-1]) - started_at(reports[0]) if reports else 0.0


def collect(output: DataFrame, mode: str, rows_in: int) -> list[tuple[Any, ...]]:
    """The output rows of the query's first batch, which has `rows_in` rows."""
    kept: dict[int, list[tuple[Any, ...]]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        kept[number] = [tuple(row) for row in batch.collect()]

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        query = output.writeStream.foreachBatch(keep).outputMode(mode).option("checkpointLocation", directory).start()
        try:
            _wait_for(query, bool, rows_in)
        finally:
            query.stop()
    return kept[0]


def _wait_for(
    query: StreamingQuery, enough: Callable[[list[dict[str, Any]]], bool], rows_per_batch: int
) -> list[dict[str, Any]]:
    while True:
        failure = query.exception()
        if failure is not None:
            raise failure
        full = [dict(report) for report in query.recentProgress if report["numInputRows"] == rows_per_batch]
        if enough(full):
            return full
        time.sleep(0.1)


def started_at(report: dict[str, Any]) -> float:
    """When a batch was begun, in seconds."""
    return datetime.fromisoformat(report["timestamp"].replace("Z", "+00:00")).timestamp()


def ended_at(report: dict[str, Any]) -> float:
    """When a batch was committed, in seconds."""
    return started_at(report) + float(report["durationMs"]["triggerExecution"]) / 1_000

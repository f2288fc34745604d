"""Jobs with large commands and restarts, then a query that needs memory; prints what is left as JSON.

In a process of its own, which has a small heap and a directory for Spark's files."""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark import Broadcast
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from millstream.common import Configuration, Types
from millstream.datastream import MapFunction, StreamExecutionEnvironment
from millstream.engine.spark import session
from millstream.engine.spark.epoch_job import EpochLevelCommand

JOBS = 2
RECORDS = 12
RESTARTS = 3
PADDING = 1_500_000


class LargeLevel(EpochLevelCommand):
    """A level whose command is above the limit of PySpark."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.padding = os.urandom(PADDING)


class Fail(MapFunction):
    """Fails three times."""

    def __init__(self, failures: Path) -> None:
        self.failures = failures

    def map(self, value):
        failed = len(list(self.failures.iterdir()))
        if failed < RESTARTS and value == 2 * failed + 3:
            (self.failures / str(failed)).touch()
            raise ValueError("on purpose")
        return value


def run_job(directory: Path, number: int) -> int:
    """Run a job of small epochs; returns their number."""
    failures, checkpoints = directory / f"failures-{number}", directory / f"checkpoints-{number}"
    failures.mkdir()
    checkpoints.mkdir()
    configuration = Configuration.from_dict(
        {
            "execution.checkpointing.dir": str(checkpoints),
            "execution.checkpointing.interval": "100 ms",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "5",
            "restart-strategy.fixed-delay.delay": "10 ms",
            "millstream.epoch.max-records": "1",
            "millstream.engine": "jobs",  # resident slots send no commands
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    numbers = env.from_collection(list(range(RECORDS)), Types.LONG())
    numbers.key_by(lambda n: n, Types.LONG()).map(Fail(failures), Types.LONG()).print()
    result = env.execute(f"litter {number}")
    assert result.get_accumulator_result("millstream.restarts") == RESTARTS
    return int(result.get_accumulator_result("millstream.epochs.count"))


def count_files(context: Any, directory: Path) -> tuple[int, int]:
    """The number of Spark's files and their bytes, after its cleaner has run."""
    found: list[tuple[int, int]] = []
    until = time.monotonic() + 20
    while len(found) < 4 or (found[-1] != found[-4] and time.monotonic() < until):
        gc.collect()
        context._jvm.System.gc()
        time.sleep(0.3)
        sizes = [path.stat().st_size for path in directory.rglob("*") if path.is_file()]
        found.append((len(sizes), sum(sizes)))
    return found[-1]


def query(context: Any) -> int:
    """Cache more than fits into memory, so that the JVM moves all other blocks to disk, and join with a broadcast."""
    spark = SparkSession(context)
    spark.range(0, 50_000_000, 1, 8).select(sf.rand()).cache().count()
    return spark.range(1000).join(sf.broadcast(spark.range(200_000)), "id").count()


def main(directory: Path) -> None:
    """Measure after the first job and after others."""
    local = directory / "local"
    local.mkdir()
    settings = {"millstream.spark.master": "local[2]", "spark.driver.memory": "600m", "spark.local.dir": str(local)}
    context: Any = session.spark_context(settings, 2)
    sizes: list[int] = []
    held: list[Any] = []  # as long as the JVM has these, it keeps the blocks of broadcasts that were not destroyed
    broadcast = context.broadcast

    def broadcast_watched(value: Any) -> Any:
        made = broadcast(value)
        sizes.append(len(value))
        held.append(made._jbroadcast)
        return made

    context.broadcast = broadcast_watched
    epochs = run_job(directory, 0)
    first = count_files(context, local)
    for number in range(1, JOBS):
        epochs += run_job(directory, number)
    found = {
        "epochs": epochs,
        "large commands": sum(size > 1 << 20 for size in sizes),
        "first": first,
        "later": count_files(context, local),
        "live": sum(isinstance(item, Broadcast) for item in gc.get_objects()),
        "rows": query(context),
    }
    print(json.dumps(found))
    session.stop()


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    os.environ.pop("SPARK_LOCAL_DIRS", None)
    sys.modules["millstream.engine.spark.epoch_job"].EpochLevelCommand = LargeLevel  # type: ignore[attr-defined]
    main(Path(sys.argv[1]))

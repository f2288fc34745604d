"""A job whose shuffle files are deleted while it runs, and a query after it; prints both outcomes as JSON."""

from __future__ import annotations

import json
import logging
import os
import random
import sys
from collections import Counter
from pathlib import Path

from millstream.common import Configuration, Encoder, Types, WatermarkStrategy
from millstream.datastream import MapFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.engine.spark import session
from millstream.table import EnvironmentSettings, TableEnvironment


class Losing(MapFunction):
    """Deletes the shuffle files of this host once, in a task that has read its part of them."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def map(self, value):
        if not self.marker.exists() and value[1] > 100:
            self.marker.touch()
            directories = os.environ["SPARK_LOCAL_DIRS"].split(",")
            files = [file for directory in directories for file in Path(directory).rglob("shuffle_*")]
            for file in files:  # all at once: files that Spark writes when it recomputes them must stay
                file.unlink(missing_ok=True)
        return str(value[1])


def run_and_lose(directory: Path) -> None:
    """Run the job with more slots than cores, so that some tasks start after others have ended."""
    (directory / "checkpoints").mkdir()
    configuration = Configuration.from_dict(
        {
            "millstream.spark.master": "local[2]",
            "millstream.engine": "jobs",  # resident slots have no shuffle files
            "execution.checkpointing.dir": str(directory / "checkpoints"),
            "execution.checkpointing.interval": "200 ms",
            "restart-strategy.type": "fixed-delay",
            "heartbeat.interval": "100 s",  # a check would find the lost blocks, and restart the job
            "millstream.epoch.max-records": "300",
            "parallelism.default": "4",
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers = env.from_source(NumberSequenceSource(0, 599), WatermarkStrategy.no_watermarks(), "numbers")
    salted = numbers.map(lambda value: (random.randrange(100), value))
    out = salted.key_by(lambda pair: pair[0], Types.LONG()).map(Losing(directory / "happened"), Types.STRING())
    out.sink_to(FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder()).build())
    result = env.execute("loses map output")
    files = [file for file in (directory / "out").rglob("part-*") if "/." not in str(file)]
    lines = Counter(line for file in files for line in file.read_text().splitlines())
    found = {
        "happened": (directory / "happened").exists(),
        "right": lines == Counter(map(str, range(600))),
        "restarts": result.get_accumulator_result("millstream.restarts"),
    }
    print(json.dumps(found))


def query(directory: Path) -> None:
    """Read more than a task can send without storing it as a block first."""
    folder = directory / "table"
    folder.mkdir()
    (folder / "rows.csv").write_text("".join(f"{number},{'x' * 40}\n" for number in range(200_000)))
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.execute_sql(
        "CREATE TABLE numbers (n INT, t STRING) "
        f"WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv')"
    )
    with env.execute_sql("SELECT n, t FROM numbers WHERE n >= 0 ORDER BY n DESC").collect() as rows:
        print(json.dumps({"rows": sum(1 for _ in rows)}))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_and_lose(Path(sys.argv[1]))
    query(Path(sys.argv[1]))
    session.stop()

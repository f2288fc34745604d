"""Jobs that lose their Spark while they run, one after another in this process; prints the outcomes as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext

from millstream.cluster import entrypoint
from millstream.cluster.job_events import StatusChanged
from millstream.common import Configuration, Encoder, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.engine.spark import session
from millstream.engine.spark.java import find_java
from millstream.testing.spark_cluster import find_descendants, kill, processes

RECORDS = 500
SETTINGS = {
    "parallelism.default": "1",
    "millstream.epoch.max-records": "50",
    "millstream.epoch.min-interval": "50 ms",
    "execution.checkpointing.interval": "300 ms",
    "restart-strategy.type": "exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff": "50 ms",
    "heartbeat.interval": "500 ms",
    "heartbeat.timeout": "4 s",
}
LOCAL = {"millstream.spark.master": "local[1]", "spark.driver.memory": "512m"}


def running(directory: Path, settings: dict[str, str], told: list[Any]) -> entrypoint.RunningJob:
    """A job that writes numbers to files."""
    (directory / "checkpoints").mkdir(parents=True)
    configuration = Configuration()
    for key, value in {**SETTINGS, "execution.checkpointing.dir": str(directory / "checkpoints"), **settings}.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers = env.from_source(NumberSequenceSource(0, RECORDS - 1), WatermarkStrategy.no_watermarks(), "numbers")
    lines = numbers.key_by(lambda v: v % 7, Types.LONG()).map(lambda v: str(v), Types.STRING())
    lines.sink_to(FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder()).build())
    return entrypoint.submit(env._graph(), configuration, directory.name, listeners=[told.append])


def wait(until: Callable[[], bool], what: str, seconds: float = 150.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.02)


def read_numbers(directory: Path) -> list[int]:
    """The numbers in the output."""
    files = [file for file in (directory / "out").rglob("*") if file.is_file() and "/." not in str(file)]
    return sorted(int(line) for file in files for line in file.read_text().splitlines())


def run_and_lose(directory: Path, accident: Callable[[], None], settings: dict[str, str]) -> dict[str, Any]:
    """Run the job, cause the failure after some epochs, and return how the job ended."""
    told: list[Any] = []
    job = running(directory, settings, told)
    wait(lambda: len(job.epochs) >= 3, "the third epoch")
    accident()
    wait(lambda: job.wait(0), "the end of the job")
    return {
        "status": job.master.job.status.name,
        "restarts": job.master.job.restarts,
        "right": read_numbers(directory) == list(range(RECORDS)),
        "causes": [each.cause for each in told if isinstance(each, StatusChanged) and each.cause],
    }


def jvm() -> Any:
    """The JVM of the current Spark."""
    return SparkContext._gateway.proc


def kill_jvm() -> None:
    """Kill the JVM, as the kernel does when memory is short."""
    below = find_descendants(jvm().pid)
    kill(jvm().pid)
    wait(lambda: not set(below) & {each.pid for each in processes()}, "the end of the workers of a dead JVM")


def stop_jvm() -> None:
    """Suspend the JVM, so that it no longer answers."""
    kill(jvm().pid, signal.SIGSTOP)


def stop_context_in_the_jvm() -> None:
    """Stop the context in the JVM, as a cluster manager that kills the application does."""
    SparkContext._active_spark_context._jsc.sc().stop()


def stop_context() -> None:
    """Stop Spark, as another part of the program may do."""
    SparkContext._active_spark_context.stop()


def make_own_context() -> None:
    """Replace the context by one of the program, in the current JVM."""
    settings = dict(SparkContext._active_spark_context.getConf().getAll())
    stop_context()
    with session._set_environment(session._list_variables(settings, find_java())):
        SparkContext(conf=SparkConf().setAll(list(settings.items())))


def main(directory: Path) -> None:
    """Run all cases."""
    found: dict[str, Any] = {
        "stopped in the JVM": run_and_lose(directory / "stopped-in-the-jvm", stop_context_in_the_jvm, LOCAL),
        "stopped": run_and_lose(directory / "stopped", stop_context, LOCAL),
        "silent": run_and_lose(directory / "silent", stop_jvm, LOCAL),
        "killed": run_and_lose(directory / "killed", kill_jvm, LOCAL),
    }
    make_own_context()
    found["not ours"] = run_and_lose(directory / "not-ours", kill_jvm, {})
    found["not ours, with a master"] = run_and_lose(directory / "replaced", lambda: None, LOCAL)
    session.stop()
    below = find_descendants(os.getpid())
    found["left"] = [each.command for each in processes() if each.pid in below]
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

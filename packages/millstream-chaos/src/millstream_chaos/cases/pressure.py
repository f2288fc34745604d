"""A fast source, a slow sink, a key with half of the records, and records of a megabyte: memory stays bounded.

Promises: the resident memory of the driver, its JVM and the Python workers is sampled during the run; its peak in the
second half is at most slightly above that of the first half, and below a bound; the metrics show that the slow operator
is busy.
Does not know: what the job computes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from millstream.cluster.job_events import EpochDone, JobEvent
from millstream.config.configuration import Configuration
from millstream.connector.sink import Sink, SinkWriter, WriterContext
from millstream.connectors.datagen import DataGenSource, RandomInt
from millstream.connectors.datagen import Sequence as Counting
from millstream.connectors.files import FileSource, StreamFormat
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import ExternalError
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.functions import KeyedProcessFunction
from millstream.state_descriptors.descriptors import ValueStateDescriptor
from millstream.testing.spark_cluster import find_descendants, kill
from millstream.types.factory import Types
from millstream_chaos.jobs.engines import engine_options
from millstream_chaos.machine.process_usage import resident_memory
from millstream_chaos.machine.python_path import child_environment
from millstream_chaos.trace import Report, Trace

_SIZES = {"ci": 45, "normal": 300, "long": 1_800}  # seconds
MEGABYTE = 1 << 20
_LINES = 400  # lines in a file; a line has a megabyte
_PROGRESS_SECONDS = 60
WORKLOADS = ("slow sink", "large records")
BOUND = 2_500 * MEGABYTE  # bytes of all processes together
GROWTH = 1.20  # the peak of the second half over that of the first
SLACK = 96 * MEGABYTE


def plan(seed: int, size: str) -> Trace:
    """Return one step for each job, with equal times."""
    seconds = _SIZES[size] // len(WORKLOADS)
    return Trace("pressure", seed, size, {}, [{"kind": workload, "seconds": seconds} for workload in WORKLOADS])


class Slow(Sink):
    """A slow sink that discards the records."""

    commits_with_epoch = True

    def __init__(self, seconds_per_record: float) -> None:
        self.seconds_per_record = seconds_per_record

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a slow writer."""
        return _SlowWriter(self.seconds_per_record)


class _SlowWriter(SinkWriter):
    def __init__(self, seconds_per_record: float) -> None:
        self._seconds_per_record = seconds_per_record

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        time.sleep(self._seconds_per_record * len(values))

    def prepare_commit(self) -> list[Any]:
        return []


class Count(KeyedProcessFunction):
    """Counts the records of each key, and emits them unchanged."""

    def open(self, runtime_context: Any) -> None:
        """Declare the state."""
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        """Count the record and emit it."""
        self._count.update((self._count.value() or 0) + 1)
        yield value


def build(workload: str, directory: str, options: Mapping[str, str]) -> StreamExecutionEnvironment:
    """Build a job with far more input than it can process."""
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.dir": directory,
        "execution.checkpointing.interval": "2 s",
        "millstream.spark.master": "local[2]",
        "spark.driver.memory": "512m",
        "millstream.epoch.max-bytes": "16 mb",
        **options,
    }.items():
        configuration.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    watermarks = WatermarkStrategy.no_watermarks()
    if workload == "large records":
        lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"{directory}/../input").build()
        large = environment.from_source(lines, watermarks, "lines")
        counted = large.key_by(lambda line: line[:3], Types.STRING()).process(Count(), Types.STRING())
    else:
        fields = {"number": Counting(), "value": RandomInt(0, 1_000_000)}
        numbers = environment.from_source(DataGenSource(fields=fields, count=1_000_000_000), watermarks, "numbers")
        keyed = numbers.key_by(lambda row: 0 if row[0] % 2 else row[1], Types.LONG())
        counted = keyed.process(Count())
    counted.name("count").rebalance().sink_to(Slow(0.2 if workload == "large records" else 0.0002)).name("slow")
    return environment


def write_large(directory: Path, records: int) -> None:
    """Write at least `records` lines of a megabyte, half of them with the same key; hard links save space."""
    directory.mkdir()
    first = directory / "lines-0.txt"
    with first.open("wb") as file:
        for number in range(_LINES):
            key = 0 if number % 2 else number % 500
            file.write(b"%03d" % key + b"x" * (MEGABYTE - 4) + b"\n")
    for copy in range(1, -(-records // _LINES)):
        (directory / f"lines-{copy}.txt").hardlink_to(first)


def play(trace: Trace, directory: Path) -> Report:
    """Run each job for its time, and measure the memory of all processes."""
    report = Report(trace)
    for step in trace.steps:
        where = directory / step["kind"].replace(" ", "-")
        where.mkdir(parents=True)
        if step["kind"] == "large records":
            write_large(where / "input", 12 * step["seconds"])
        samples, progress = _measure(step["kind"], where, step["seconds"], engine_options(trace))
        _judge(step["kind"], samples, progress, report)
    return report


def _measure(
    workload: str, where: Path, seconds: float, options: Mapping[str, str]
) -> tuple[list[int], list[dict[str, Any]]]:
    """Return samples of the resident memory of all processes while the job runs, and the progress of the job."""
    with (where / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "millstream_chaos.cases.pressure", workload, str(where), json.dumps(dict(options))],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=child_environment(),
        )
    try:
        progress_file = where / "progress"
        deadline = time.monotonic() + 90
        while not _lines(progress_file) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        samples: list[int] = []
        until = time.monotonic() + seconds
        printed_at = time.monotonic()
        while time.monotonic() < until and process.poll() is None:
            if time.monotonic() - printed_at > _PROGRESS_SECONDS:
                printed_at = time.monotonic()
                print(f"{workload}: {until - printed_at:.0f} s left, {samples[-1] // MEGABYTE} MB", file=sys.stderr)
            samples.append(sum(resident_memory(pid) for pid in [process.pid, *find_descendants(process.pid)]))
            time.sleep(0.25)
        if process.poll() is not None:
            msg = f"the job ended before its time: {(where / 'log').read_text(errors='replace')[-1000:]}"
            raise ExternalError(msg)
        return samples, [json.loads(line) for line in _lines(progress_file)]
    finally:
        children = find_descendants(process.pid)
        process.kill()
        process.wait()
        for pid in children:
            kill(pid)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []


def _judge(workload: str, samples: list[int], progress: list[dict[str, Any]], report: Report) -> None:
    half = len(samples) // 2
    settled = samples[half // 3 :]  # at first the JVM and the caches of workers grow
    first, second = max(settled[: len(settled) // 2]), max(settled[len(settled) // 2 :])
    shares = [
        sum(busy for name, busy in line["busy"].items() if "slow" in name) / max(sum(line["busy"].values()), 1e-9)
        for line in progress[2:] or progress
    ]
    report.figures[workload] = {
        "first half MB": first // MEGABYTE,
        "second half MB": second // MEGABYTE,
        "epochs": len(progress),
        "records per epoch": round(float(np.median([line["records"] for line in progress[2:] or progress]))),
        "share of the slow operator": round(float(np.median(shares)), 2),
    }
    report.check(second <= first * GROWTH + SLACK, f"{workload}: memory grew from {first} to {second} bytes")
    report.check(second <= BOUND, f"{workload}: the resident memory is {second} bytes")
    report.check(float(np.median(shares)) > 0.5, f"{workload}: the metrics do not show the slow operator")


def main(workload: str, directory: str, options: str) -> None:
    """Run the job until this process is killed."""
    where = Path(directory)
    (where / "checkpoints").mkdir()
    file = (where / "progress").open("a", encoding="utf-8")

    def listen(event: JobEvent) -> None:
        if isinstance(event, EpochDone):
            file.write(json.dumps({"records": event.records, "busy": dict(event.vertex_busy_ms)}) + "\n")
            file.flush()

    environment = build(workload, str(where / "checkpoints"), json.loads(options))
    environment.register_listener(listen)
    environment.execute("pressure")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A fast source, a slow sink, a key with half of the data, and records of a megabyte: memory stays bounded and flat.

Promises: the resident memory of the driver, its JVM and the Python workers is sampled all the time; its peak in the
second half of the run is not above that of the first half but for a little, and below a bound; and the operator that
is slow is the one that is busy.
Does not know: what the job computes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
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
from millstream.testing.chaos import Report, Trace
from millstream.testing.process_usage import resident_memory
from millstream.testing.spark_cluster import descendants
from millstream.types.factory import Types

_SIZES = {"ci": 80, "normal": 300, "long": 1_800}  # seconds
MEGABYTE = 1 << 20
_LINES = 400  # of a megabyte, in a file
_TELL_EVERY = 60  # seconds
KINDS = ("slow sink", "large records")
BOUND = 2_500 * MEGABYTE  # of all processes together
GROWTH = 1.20  # of the second half's peak over the first half's
SLACK = 96 * MEGABYTE


def plan(seed: int, size: str) -> Trace:
    """Each kind of pressure for the same time."""
    seconds = _SIZES[size] // len(KINDS)
    return Trace("pressure", seed, size, {}, [{"kind": kind, "seconds": seconds} for kind in KINDS])


class Slow(Sink):
    """Takes its time for every record, and forgets it."""

    commits_with_epoch = True

    def __init__(self, seconds_per_record: float) -> None:
        self.seconds_per_record = seconds_per_record

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A slow writer."""
        return _SlowWriter(self.seconds_per_record)


class _SlowWriter(SinkWriter):
    def __init__(self, seconds_per_record: float) -> None:
        self._each = seconds_per_record

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        time.sleep(self._each * len(values))

    def prepare_commit(self) -> list[Any]:
        return []


class Count(KeyedProcessFunction):
    """Counts by key, and passes records on."""

    def open(self, runtime_context: Any) -> None:
        """Find the state."""
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        """One more."""
        self._count.update((self._count.value() or 0) + 1)
        yield value


def build(kind: str, directory: str) -> StreamExecutionEnvironment:
    """The job under pressure: it has far more input than it can get done."""
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.dir": directory,
        "execution.checkpointing.interval": "2 s",
        "millstream.spark.master": "local[2]",
        "spark.driver.memory": "512m",
        "millstream.epoch.max-bytes": "16 mb",
    }.items():
        configuration.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    none = WatermarkStrategy.no_watermarks()
    if kind == "large records":
        lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"{directory}/../input").build()
        large = environment.from_source(lines, none, "lines")
        counted = large.key_by(lambda line: line[:3], Types.STRING()).process(Count(), Types.STRING())
    else:
        fields = {"number": Counting(), "value": RandomInt(0, 1_000_000)}
        numbers = environment.from_source(DataGenSource(fields=fields, count=1_000_000_000), none, "numbers")
        keyed = numbers.key_by(lambda row: 0 if row[0] % 2 else row[1], Types.LONG())
        counted = keyed.process(Count())
    counted.name("count").rebalance().sink_to(Slow(0.2 if kind == "large records" else 0.0002)).name("slow")
    return environment


def write_large(directory: Path, records: int) -> None:
    """Lines of a megabyte, so many at least; half of them have the same key. They take the space of one file."""
    directory.mkdir()
    first = directory / "lines-0.txt"
    with first.open("wb") as file:
        for number in range(_LINES):
            key = 0 if number % 2 else number % 500
            file.write(b"%03d" % key + b"x" * (MEGABYTE - 4) + b"\n")
    for copy in range(1, -(-records // _LINES)):
        (directory / f"lines-{copy}.txt").hardlink_to(first)


def play(trace: Trace, directory: Path) -> Report:
    """Run each kind for its time, and look at the memory of all processes."""
    report = Report(trace)
    for step in trace.steps:
        where = directory / step["kind"].replace(" ", "-")
        where.mkdir(parents=True)
        if step["kind"] == "large records":
            write_large(where / "input", 12 * step["seconds"])
        samples, told = _watched(step["kind"], where, step["seconds"])
        _judge(step["kind"], samples, told, report)
    return report


def _watched(kind: str, where: Path, seconds: float) -> tuple[list[int], list[dict[str, Any]]]:
    """Resident bytes of all processes, sampled while the job runs; and what the job told."""
    own = str(Path(__file__).resolve().parent.parent.parent)
    path = os.pathsep.join([own, *filter(None, [os.environ.get("PYTHONPATH")])])
    with (where / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "millstream.testing.chaos_pressure", kind, str(where)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": path},
        )
    try:
        progress = where / "progress"
        deadline = time.monotonic() + 90
        while not _lines(progress) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        samples: list[int] = []
        until = time.monotonic() + seconds
        told = time.monotonic()
        while time.monotonic() < until and process.poll() is None:
            if time.monotonic() - told > _TELL_EVERY:
                told = time.monotonic()
                print(f"{kind}: {until - told:.0f} s left, {samples[-1] // MEGABYTE} MB", file=sys.stderr)
            samples.append(sum(resident_memory(pid) for pid in [process.pid, *descendants(process.pid)]))
            time.sleep(0.25)
        if process.poll() is not None:
            msg = f"the job under pressure ended: {(where / 'log').read_text(errors='replace')[-1000:]}"
            raise ExternalError(msg)
        return samples, [json.loads(line) for line in _lines(progress)]
    finally:
        below = descendants(process.pid)
        process.kill()
        process.wait()
        for pid in below:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                continue


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []


def _judge(kind: str, samples: list[int], told: list[dict[str, Any]], report: Report) -> None:
    half = len(samples) // 2
    settled = samples[half // 3 :]  # the JVM and the workers' caches fill at first
    first, second = max(settled[: len(settled) // 2]), max(settled[len(settled) // 2 :])
    shares = [
        sum(busy for name, busy in each["busy"].items() if "slow" in name) / max(sum(each["busy"].values()), 1e-9)
        for each in told[2:] or told
    ]
    report.figures[kind] = {
        "first half MB": first // MEGABYTE,
        "second half MB": second // MEGABYTE,
        "epochs": len(told),
        "records per epoch": round(float(np.median([each["records"] for each in told[2:] or told]))),
        "share of the slow operator": round(float(np.median(shares)), 2),
    }
    report.check(second <= first * GROWTH + SLACK, f"{kind}: memory grew from {first} to {second} bytes")
    report.check(second <= BOUND, f"{kind}: {second} bytes are resident")
    report.check(float(np.median(shares)) > 0.5, f"{kind}: the slow operator does not show")


def main(kind: str, directory: str) -> None:
    """Run the job until somebody ends this process."""
    where = Path(directory)
    (where / "checkpoints").mkdir()
    file = (where / "progress").open("a", encoding="utf-8")

    def listen(observation: JobEvent) -> None:
        if isinstance(observation, EpochDone):
            file.write(json.dumps({"records": observation.records, "busy": dict(observation.vertex_busy_ms)}) + "\n")
            file.flush()

    environment = build(kind, str(where / "checkpoints"))
    environment.register_listener(listen)
    environment.execute("pressure")


if __name__ == "__main__":
    main(*sys.argv[1:])

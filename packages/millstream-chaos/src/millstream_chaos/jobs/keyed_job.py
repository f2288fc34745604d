"""The keyed job, which most cases run: files or Kafka, keyed state, timers and windows, exactly-once files or Kafka.

Promises: its output depends on its input only, however the input is cut and wherever the job runs; it reports its
progress line by line in a file. As a program it takes the path of a specification in JSON.
Does not know: faults."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from millstream.client.job_client import JobClient
from millstream.cluster.job_events import CheckpointDone, EpochDone, JobEvent, RescaleDone, StatusChanged
from millstream.config.configuration import Configuration
from millstream.connector.serialization_schema import Encoder, SerializationSchema, SimpleStringSchema
from millstream.connector.sink import Sink
from millstream.connector.source import Source
from millstream.connectors.files import FileSink, FileSource, StreamFormat
from millstream.connectors.kafka import KafkaOffsetsInitializer, KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from millstream.datastream.connectors.base import DeliveryGuarantee
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import MillstreamError
from millstream.event_time.watermarks import TimestampAssigner, WatermarkStrategy
from millstream.functions import KeyedProcessFunction, MapFunction, ProcessWindowFunction
from millstream.job.job_status import JobStatus
from millstream.state_descriptors.descriptors import MapStateDescriptor, ValueStateDescriptor
from millstream.testing.host import LOCALHOST, Host
from millstream.times import Duration, Time
from millstream.types.factory import Types
from millstream.windows.assigners import TumblingEventTimeWindows
from millstream_chaos.jobs.loop_job import build_loops
from millstream_chaos.jobs.sql_job import add_statements

EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])  # key, sequence, time, value
BUCKET = 1_000
WINDOW = 5_000
STEP = 10  # milliseconds of event time between two lines of a file
DISORDER = 200
HUNGRY = "hungry"  # the name of a file that makes a worker use too much memory

_clocks = {name: getattr(time, name) for name in ("time", "time_ns")}


@dataclass(frozen=True)
class Specification:
    """The parameters of the job, and where it reads and writes."""

    directory: str
    parallelism: int = 2
    skew_seconds: int = 0
    options: dict[str, str] = field(default_factory=dict)
    kafka: str = ""  # the servers of a broker with topics "input", "running" and "windowed", instead of files
    producing: dict[str, str] = field(default_factory=dict)  # properties of the Kafka sinks
    sql: bool = False  # the SQL form of the job, see `sql_job`; it reads and writes Kafka
    loops: int = 0  # the job of `loop_job` instead, with so many rounds

    @property
    def input(self) -> Path:
        """The directory of the input."""
        return Path(self.directory) / "input"

    @property
    def output(self) -> Path:
        """The directory of the output."""
        return Path(self.directory) / "output"

    @property
    def progress(self) -> Path:
        """The file with the progress of the job."""
        return Path(self.directory) / "progress"

    def on(self, host: Host) -> Specification:
        """Return the specification for a driver on a host."""
        if host == LOCALHOST:
            return self
        address = {"spark.driver.host": host.address, "spark.driver.bindAddress": host.address}
        return replace(self, options=self.options | address)

    def save(self, name: str = "job.json") -> Path:
        """Write the specification for `main` of this release or of the last one, which does not know newer fields."""
        path = Path(self.directory) / name
        fields = {key: value for key, value in asdict(self).items() if value or key == "directory"}
        path.write_text(json.dumps(fields), encoding="utf-8")
        return path


def write_input(directory: Path, seed: int, *, records: int, keys: int, files: int) -> None:
    """Write lines `key sequence time value`; the lines of a key are in one file, with times slightly out of order."""
    directory.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng([seed, 11])
    records_per_file = -(-records // files)
    for number in range(files):
        count = min(records_per_file, records - number * records_per_file)
        file_keys = chance.integers(0, max(1, keys // files), count)
        delays = chance.integers(0, DISORDER, count)
        values = chance.integers(0, 1_000, count)
        sequences: dict[int, int] = {}
        lines = []
        rows = zip(file_keys.tolist(), delays.tolist(), values.tolist(), strict=True)
        for index, (key, delay, value) in enumerate(rows):
            sequences[key] = sequences.get(key, 0) + 1
            lines.append(f"k{number}.{key} {sequences[key]} {DISORDER + index * STEP - delay} {value}\n")
        (directory / f"part-{number:03d}.txt").write_text("".join(lines), encoding="utf-8")


class Parse(MapFunction):
    """Parses a line into an event. It can set the clock of the worker wrong, because no result may depend on it."""

    def __init__(self, skew_seconds: int, directory: str) -> None:
        self._skew, self._hungry = skew_seconds, Path(directory) / HUNGRY

    def open(self, runtime_context: Any) -> None:
        """Set the clock of the worker wrong."""
        if self._skew:
            skew = self._skew * (1 if runtime_context.get_index_of_this_subtask() % 2 else -1)
            setattr(time, "time", lambda: _clocks["time"]() + skew)  # noqa: B010
            setattr(time, "time_ns", lambda: _clocks["time_ns"]() + skew * 1_000_000_000)  # noqa: B010

    def map(self, value: str) -> tuple[str, int, int, int]:
        """Return the event. A file in the directory of the job makes one worker allocate memory until it is killed."""
        if value.endswith("7") and self._hungry.exists():
            with suppress(FileNotFoundError):
                self._hungry.unlink()
                _use_memory()
        key, sequence, at, number = value.split(" ")
        return key, int(sequence), int(at), int(number)


def _use_memory() -> None:
    """Allocate 8 GB, or until a limit kills the process."""
    blocks = [b"x" * (64 << 20) for _ in range(128)]
    blocks.clear()


class EventTime(TimestampAssigner):
    """Assigns the time in a line as its timestamp."""

    def extract_timestamp(self, value: str, record_timestamp: int) -> int:
        """Return the third word of the line."""
        return int(value.split(" ", 3)[2])


class Running(KeyedProcessFunction):
    """Emits a running sum with every event, and by a timer the sum of each second of event time."""

    def open(self, runtime_context: Any) -> None:
        """Declare the state."""
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._buckets = runtime_context.get_map_state(MapStateDescriptor("buckets", Types.LONG(), Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        """Emit the running sum and register a timer."""
        key, sequence, at, number = value
        total, count = (self._sum.value() or 0) + number, (self._count.value() or 0) + 1
        self._sum.update(total)
        self._count.update(count)
        due = (at // BUCKET + 1) * BUCKET
        self._buckets.put(due, (self._buckets.get(due) or 0) + number)
        ctx.timer_service().register_event_time_timer(due)
        yield f"S {key} {sequence} {count} {total}"

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        """Emit the sum of a second."""
        yield f"T {ctx.get_current_key()} {timestamp} {self._buckets.get(timestamp)}"
        self._buckets.remove(timestamp)


class Windowed(ProcessWindowFunction[Any, Any, Any, Any]):
    """Emits a line for each window."""

    def process(self, key: str, context: Any, elements: Any) -> Iterator[str]:
        """Emit the count and the sum of the window."""
        numbers = [value[3] for value in elements]
        yield f"W {key} {context.window().start} {len(numbers)} {sum(numbers)}"


def build(specification: Specification) -> StreamExecutionEnvironment:
    """Build the job."""
    configuration = Configuration()
    for key, value in specification.options.items():
        configuration.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    environment.set_parallelism(specification.parallelism)
    if specification.sql:
        add_statements(environment, specification.kafka)
        return environment
    if specification.loops:
        for name, stream in build_loops(environment, specification.loops).items():
            stream.sink_to(_sink(specification, name)).uid(f"{name} output")
        return environment
    source = _source(specification)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER))
    lines = environment.from_source(source, strategy.with_timestamp_assigner(EventTime()), "files").uid("files")
    events = lines.map(Parse(specification.skew_seconds, specification.directory), EVENT).uid("parse")
    keyed = events.key_by(lambda event: event[0], Types.STRING())
    running = keyed.process(Running(), Types.STRING()).uid("running")
    windows = TumblingEventTimeWindows.of(Time.milliseconds(WINDOW))
    windowed = keyed.window(windows).process(Windowed(), Types.STRING()).uid("windowed")
    for name, stream in (("running", running), ("windowed", windowed)):
        stream.sink_to(_sink(specification, name)).uid(f"{name} output")
    return environment


def _source(specification: Specification) -> Source:
    if not specification.kafka:
        return FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(specification.input)).build()
    builder = KafkaSource.builder().set_bootstrap_servers(specification.kafka).set_topics("input")
    builder.set_starting_offsets(KafkaOffsetsInitializer.earliest()).set_bounded(KafkaOffsetsInitializer.latest())
    return builder.set_value_only_deserializer(SimpleStringSchema()).build()


def _sink(specification: Specification, name: str) -> Sink:
    if not specification.kafka:
        target = str(specification.output / name)
        return FileSink.for_row_format(target, Encoder.simple_string_encoder()).build()
    records = KafkaRecordSerializationSchema.builder().set_topic(name).set_key_serialization_schema(KeyOfLine())
    builder = KafkaSink.builder().set_bootstrap_servers(specification.kafka)
    builder.set_record_serializer(records.set_value_serialization_schema(SimpleStringSchema()).build())
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(f"chaos-{name}")
    for key, value in specification.producing.items():
        builder.set_property(key, value)
    return builder.build()


class KeyOfLine(SerializationSchema):
    """Serializes the key of a line, its second word, so that the lines of a key are in one partition."""

    def serialize(self, value: str) -> bytes:
        """Return the key as bytes."""
        return value.split(" ", 2)[1].encode()


class ProgressWriter:
    """A listener that writes the events of the job to the progress file, with the machine's monotonic time."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def __call__(self, event: JobEvent) -> None:
        """Write one line."""
        match event:
            case EpochDone():
                line: dict[str, Any] = {"epoch": event.epoch, "records": event.records}
            case CheckpointDone():
                line = {"checkpoint": event.id}
            case StatusChanged():
                line = {"status": event.status.name, "cause": event.cause}
            case RescaleDone():
                line = {"rescaled": event.slots, "pause_ms": event.pause_ms}
        line |= {"at": time.monotonic(), "pid": os.getpid()}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def main(path: str) -> None:
    """Run the job of a specification to its end; write a savepoint for each file `savepoint-*.request`."""
    specification = Specification(**json.loads(Path(path).read_text(encoding="utf-8")))
    environment = build(specification)
    environment.register_listener(ProgressWriter(specification.progress))
    client = environment.execute_async("chaos")
    while not client.wait(0.2):
        for request in Path(specification.directory).glob("savepoint-*.request"):
            _write_savepoint(client, request)
    client.get_job_execution_result().result()


def _write_savepoint(client: JobClient, request: Path) -> None:
    """Write a savepoint if this driver leads; one that fails is tried again later."""
    if client.get_job_status().result() is not JobStatus.RUNNING:
        return
    target = request.with_suffix("")
    try:
        path = client.trigger_savepoint(str(target)).result(60)
    except (MillstreamError, TimeoutError) as problem:
        print(f"{request.name}: {problem}", flush=True)
        return
    request.rename(request.with_suffix(".done")).write_text(path, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])

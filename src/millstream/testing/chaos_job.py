"""The job that is put through chaos: files > keyed state, timers and windows > exactly-once files.

Promises: its output depends on its input alone, however the input is cut and wherever it runs; it tells what it does,
line by line, in a file that other processes can read. As a program it takes the path of a specification in JSON.
Does not know: what is done to it."""

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
from millstream.testing.chaos_sql import add_statements
from millstream.testing.network import LOCALHOST, Host
from millstream.times import Duration, Time
from millstream.types.factory import Types
from millstream.windows.assigners import TumblingEventTimeWindows

EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])  # key, sequence, time, value
BUCKET = 1_000
WINDOW = 5_000
STEP = 10  # milliseconds of event time between two lines of a file
DISORDER = 200
HUNGRY = "hungry"  # a file that makes a worker use too much memory

_clocks = {name: getattr(time, name) for name in ("time", "time_ns")}


@dataclass(frozen=True)
class Specification:
    """What to run, and where it reads and writes."""

    directory: str
    parallelism: int = 2
    skew_seconds: int = 0
    options: dict[str, str] = field(default_factory=dict)
    kafka: str = ""  # the servers of a broker with topics "input", "running" and "windowed", in place of files
    producing: dict[str, str] = field(default_factory=dict)  # properties of the Kafka sinks
    sql: bool = False  # the SQL form of the job, see `chaos_sql`; it reads and writes Kafka

    @property
    def input(self) -> Path:
        """Where the input is."""
        return Path(self.directory) / "input"

    @property
    def output(self) -> Path:
        """Where the output goes."""
        return Path(self.directory) / "output"

    @property
    def progress(self) -> Path:
        """What the job does, line by line."""
        return Path(self.directory) / "progress"

    def on(self, host: Host) -> Specification:
        """The same for a driver on a host other than this machine."""
        if host == LOCALHOST:
            return self
        address = {"spark.driver.host": host.address, "spark.driver.bindAddress": host.address}
        return replace(self, options=self.options | address)

    def save(self, name: str = "job.json") -> Path:
        """Write it down for `main`, of this release or of the last one, which does not know newer fields."""
        path = Path(self.directory) / name
        given = {key: value for key, value in asdict(self).items() if value or key == "directory"}
        path.write_text(json.dumps(given), encoding="utf-8")
        return path


def write_input(directory: Path, seed: int, *, records: int, keys: int, files: int) -> None:
    """Lines `key sequence time value`; a key's lines are in one file, with times that are a little out of order."""
    directory.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng([seed, 11])
    each = -(-records // files)
    for number in range(files):
        count = min(each, records - number * each)
        mine = chance.integers(0, max(1, keys // files), count)
        late = chance.integers(0, DISORDER, count)
        values = chance.integers(0, 1_000, count)
        seen: dict[int, int] = {}
        lines = []
        for place, (key, delay, value) in enumerate(zip(mine.tolist(), late.tolist(), values.tolist(), strict=True)):
            seen[key] = seen.get(key, 0) + 1
            lines.append(f"k{number}.{key} {seen[key]} {DISORDER + place * STEP - delay} {value}\n")
        (directory / f"part-{number:03d}.txt").write_text("".join(lines), encoding="utf-8")


class Parse(MapFunction):
    """A line as an event. The clock of the worker may be wrong: nothing may depend on it."""

    def __init__(self, skew_seconds: int, directory: str) -> None:
        self._skew, self._hungry = skew_seconds, Path(directory) / HUNGRY

    def open(self, runtime_context: Any) -> None:
        """Set the worker's clock."""
        if self._skew:
            wrong = self._skew * (1 if runtime_context.get_index_of_this_subtask() % 2 else -1)
            setattr(time, "time", lambda: _clocks["time"]() + wrong)  # noqa: B010  nobody is to read this clock
            setattr(time, "time_ns", lambda: _clocks["time_ns"]() + wrong * 1_000_000_000)  # noqa: B010

    def map(self, value: str) -> tuple[str, int, int, int]:
        """The event. A file in the job's directory makes one worker use memory until it is killed."""
        if value.endswith("7") and self._hungry.exists():
            with suppress(FileNotFoundError):
                self._hungry.unlink()
                _use_memory()
        key, sequence, at, number = value.split(" ")
        return key, int(sequence), int(at), int(number)


def _use_memory() -> None:
    """Use ever more memory; a limit ends it, or 8 GB."""
    kept = [b"x" * (64 << 20) for _ in range(128)]
    kept.clear()


class EventTime(TimestampAssigner):
    """The time in a line."""

    def extract_timestamp(self, value: str, record_timestamp: int) -> int:
        """Its third word."""
        return int(value.split(" ", 3)[2])


class Running(KeyedProcessFunction):
    """A running sum with every event, and a sum per second of event time when a timer says that it is complete."""

    def open(self, runtime_context: Any) -> None:
        """Find the state."""
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._buckets = runtime_context.get_map_state(MapStateDescriptor("buckets", Types.LONG(), Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        """Add."""
        key, sequence, at, number = value
        total, count = (self._sum.value() or 0) + number, (self._count.value() or 0) + 1
        self._sum.update(total)
        self._count.update(count)
        due = (at // BUCKET + 1) * BUCKET
        self._buckets.put(due, (self._buckets.get(due) or 0) + number)
        ctx.timer_service().register_event_time_timer(due)
        yield f"S {key} {sequence} {count} {total}"

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        """Show a second."""
        yield f"T {ctx.get_current_key()} {timestamp} {self._buckets.get(timestamp)}"
        self._buckets.remove(timestamp)


class Windowed(ProcessWindowFunction[Any, Any, Any, Any]):
    """A window as a line."""

    def process(self, key: str, context: Any, elements: Any) -> Iterator[str]:
        """Count and add."""
        numbers = [value[3] for value in elements]
        yield f"W {key} {context.window().start} {len(numbers)} {sum(numbers)}"


def build(specification: Specification) -> StreamExecutionEnvironment:
    """The job, ready to run."""
    configuration = Configuration()
    for key, value in specification.options.items():
        configuration.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    environment.set_parallelism(specification.parallelism)
    if specification.sql:
        add_statements(environment, specification.kafka)
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
    """The key of a line is its second word: a key's lines are in one partition."""

    def serialize(self, value: str) -> bytes:
        """Its bytes."""
        return value.split(" ", 2)[1].encode()


class Telling:
    """A listener that writes what happens to the progress file, with the machine's monotonic time."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def __call__(self, observation: JobEvent) -> None:
        """Write one line."""
        match observation:
            case EpochDone():
                told: dict[str, Any] = {"epoch": observation.epoch, "records": observation.records}
            case CheckpointDone():
                told = {"checkpoint": observation.id}
            case StatusChanged():
                told = {"status": observation.status.name, "cause": observation.cause}
            case RescaleDone():
                told = {"rescaled": observation.slots, "pause_ms": observation.pause_ms}
        told |= {"at": time.monotonic(), "pid": os.getpid()}
        self._file.write(json.dumps(told) + "\n")
        self._file.flush()


def main(path: str) -> None:
    """Run the job of a specification to its end; a savepoint is written for each file `savepoint-*.request`."""
    specification = Specification(**json.loads(Path(path).read_text(encoding="utf-8")))
    environment = build(specification)
    environment.register_listener(Telling(specification.progress))
    client = environment.execute_async("chaos")
    while not client.wait(0.2):
        for request in Path(specification.directory).glob("savepoint-*.request"):
            _write_savepoint(client, request)
    client.get_job_execution_result().result()


def _write_savepoint(client: JobClient, request: Path) -> None:
    """Write a savepoint if this driver leads; one that fails is asked for again."""
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

"""The job of the case `soak`: Kafka, keyed state on disk, Kafka exactly once; and the check of its output.

Promises: an input record names its key and its number among the records of that key; the job adds up what it has seen
of a key and emits one line for each record, so a lost, repeated or reordered record shows in the next line of its key.
As a program it takes the path of a specification in JSON, and runs until it is killed.
Does not know: faults. `Checker` computes the expected output from the input by arithmetic alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from millstream.cluster.job_events import CheckpointDone, EpochDone, JobEvent, RescaleDone, StatusChanged
from millstream.config.configuration import Configuration
from millstream.connector.serialization_schema import SerializationSchema, SimpleStringSchema
from millstream.connectors.kafka import KafkaOffsetsInitializer, KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from millstream.datastream.connectors.base import DeliveryGuarantee
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.functions import KeyedProcessFunction
from millstream.state_descriptors.descriptors import ValueStateDescriptor
from millstream.types.factory import Types

INPUT, OUTPUT = "soak-input", "soak-output"
EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])  # key, number, value


def compute_value(key: int, number: int) -> int:
    """Return the value of a record, which follows from its key and number."""
    return (key * 7919 + number * 104729) % 1000


@dataclass(frozen=True)
class SoakSpecification:
    """Where the job reads, writes and reports."""

    directory: str
    kafka: str
    parallelism: int = 2
    options: dict[str, str] = field(default_factory=dict)

    @property
    def progress(self) -> Path:
        """The file with one JSON line for each checkpoint, rescale and change of status."""
        return Path(self.directory) / "progress"

    def save(self) -> Path:
        """Write the specification where `main` reads it."""
        path = Path(self.directory) / "soak.json"
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path


class Totals(KeyedProcessFunction):
    """Count and add up the records of a key."""

    def open(self, runtime_context: Any) -> None:
        """Declare the state."""
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        """Emit the key, the record's number, and the count and sum so far."""
        key, number, amount = value
        count, total = (self._count.value() or 0) + 1, (self._sum.value() or 0) + amount
        self._count.update(count)
        self._sum.update(total)
        yield f"{key} {number} {count} {total}"


class KeyOfLine(SerializationSchema):
    """Serialize the first word of a line, so that the lines of a key stay in one partition."""

    def serialize(self, value: str) -> bytes:
        """Return the bytes of the key."""
        return value.split(" ", 1)[0].encode()


def parse_event(line: str) -> tuple[str, int, int]:
    """Parse `key number value`."""
    key, number, value = line.split(" ")
    return key, int(number), int(value)


def build(specification: SoakSpecification) -> StreamExecutionEnvironment:
    """Build the job."""
    configuration = Configuration()
    for key, value in specification.options.items():
        configuration.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    environment.set_parallelism(specification.parallelism)
    source = KafkaSource.builder().set_bootstrap_servers(specification.kafka).set_topics(INPUT)
    source.set_starting_offsets(KafkaOffsetsInitializer.earliest()).set_value_only_deserializer(SimpleStringSchema())
    lines = environment.from_source(source.build(), WatermarkStrategy.no_watermarks(), "input").uid("input")
    events = lines.map(parse_event, EVENT).uid("parse")
    totals = events.key_by(lambda event: event[0], Types.STRING()).process(Totals(), Types.STRING()).uid("totals")
    records = KafkaRecordSerializationSchema.builder().set_topic(OUTPUT).set_key_serialization_schema(KeyOfLine())
    sink = KafkaSink.builder().set_bootstrap_servers(specification.kafka)
    sink.set_record_serializer(records.set_value_serialization_schema(SimpleStringSchema()).build())
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix("soak")
    totals.sink_to(sink.build()).uid("output")
    return environment


class Checker:
    """Check output lines one by one; memory grows with the number of keys only."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, int]] = {}  # number and sum
        self.lines = 0
        self.problems: list[str] = []

    def check(self, line: str) -> None:
        """Check the next line."""
        key, number, count, total = line.split(" ")
        before, summed = self._last.get(key, (0, 0))
        expected = before + 1, before + 1, summed + compute_value(int(key[1:]), before + 1)
        if (int(number), int(count), int(total)) != expected and len(self.problems) < 20:
            self.problems.append(f"line {self.lines}: '{line}' instead of {expected}")
        self._last[key] = int(number), int(total)
        self.lines += 1


class _Reporter:
    """A listener that appends checkpoints, rescales and changes of status to the progress file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._epochs = 0

    def __call__(self, event: JobEvent) -> None:
        match event:
            case EpochDone():
                self._epochs += 1
                return
            case CheckpointDone():
                line: dict[str, Any] = {"checkpoint": event.id, "ms": event.duration_ms, "epochs": self._epochs}
            case RescaleDone():
                line = {"rescaled": event.slots, "ms": event.pause_ms}
            case StatusChanged():
                line = {"status": event.status.name, "restarts": event.restarts, "cause": event.cause}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def main(path: str) -> None:
    """Run the job of a specification until this process is killed."""
    specification = SoakSpecification(**json.loads(Path(path).read_text(encoding="utf-8")))
    environment = build(specification)
    environment.register_listener(_Reporter(specification.progress))
    environment.execute("soak")


if __name__ == "__main__":
    main(sys.argv[1])

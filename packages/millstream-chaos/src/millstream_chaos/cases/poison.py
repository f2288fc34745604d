"""Records that cannot be read, in every format and under every policy.

Promises: with `fail` the job fails and names the first bad record; with `skip` bad records are skipped and counted;
with `dead-letter` their bytes are kept with the reason. No good record is lost.
Does not know: how a format detects a bad record. The size `ci` decodes in the program, larger sizes in a Kafka
source."""

from __future__ import annotations

import importlib
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from millstream.cluster.job_events import EpochDone, JobEvent
from millstream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from millstream.datastream.data_stream import DataStream
from millstream.datastream.formats.decoding import DEAD_LETTERS, decode
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import MillstreamError
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.formats import Format, format_named
from millstream.testing.kafka import KafkaBroker
from millstream.testing.schema_registry import running_registry
from millstream.types.factory import Types
from millstream.types.row import Row
from millstream_chaos.jobs.drivers import use_inline_engine
from millstream_chaos.trace import Report, Trace

_SIZES = {
    "ci": {"records": 5_000, "share": 0.05, "kafka": False},
    "normal": {"records": 20_000, "share": 0.05, "kafka": True},
    "long": {"records": 100_000, "share": 0.05, "kafka": True},
}
POLICIES = ("fail", "skip", "dead-letter")
_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
_ROW = Types.ROW_NAMED(["id", "name", "score"], [Types.LONG(), Types.STRING(), Types.DOUBLE()])
_NUMBER = Types.ROW_NAMED(["id"], [Types.LONG()])


@dataclass(frozen=True)
class Poison:
    """The bad records of a format: functions that create one from a number."""

    ways: tuple[Callable[[int], bytes], ...]
    data_type: Any = _ROW

    def row(self, number: int) -> Row:
        """Return a good record."""
        return Row(id=number) if self.data_type is _NUMBER else Row(id=number, name=f"name {number}", score=number / 4)


_NOT_JSON: tuple[Callable[[int], bytes], ...] = (
    lambda n: b'{"id": "bad %d' % n,
    lambda n: b"[" * (1 + n % 50),
    lambda n: b"\xff\xfe%d" % n,
    lambda n: b"bad %d" % n,
)
FORMATS: Mapping[str, Poison] = {
    "json": Poison((*_NOT_JSON, lambda n: b'{"id": {"bad": %d}}' % n)),
    "csv": Poison((lambda n: b"bad %d,x,1" % n, lambda n: b"%d,x" % n, lambda n: b"%d,x,y" % n)),
    "raw": Poison((lambda n: b"bad" + b"!" * (n % 4), lambda n: bytes(9 + n % 20)), _NUMBER),
    "avro": Poison((lambda n: b"\x02\x80" + b"\xff" * (n % 3), lambda n: b"\xff" * (11 + n % 9))),
    "avro-confluent": Poison((lambda n: b"\x00\xff" + b"\xff" * (n % 3), lambda n: b"bad %d" % n)),
    "debezium-json": Poison((*_NOT_JSON, lambda n: b'{"op": "bad %d"}' % n)),
    "canal-json": Poison((*_NOT_JSON, lambda n: b'{"type": "BAD", "data": [%d]}' % n)),
    "maxwell-json": Poison((*_NOT_JSON, lambda n: b'{"type": "bad", "data": %d}' % n)),
    "protobuf": Poison((lambda n: b"\x0a\xff" + struct.pack(">H", n % 1000), lambda n: b"\x12\x7f%d" % n)),
}


def plan(seed: int, size: str) -> Trace:
    """Draw a seed for each format, from which the bad records are drawn."""
    chance = np.random.default_rng([seed, 31])
    steps = [{"format": name, "seed": int(chance.integers(1 << 30))} for name in FORMATS]
    return Trace("poison", seed, size, dict(_SIZES[size]), steps)


def play(trace: Trace, directory: Path) -> Report:
    """Run a job for each format and policy."""
    report = Report(trace)
    with _broker(trace) as broker, running_registry() as registry, use_inline_engine():
        for step in trace.iterate_steps():
            name = step["format"]
            options = _options(name, directory, registry)
            records, bad = _create_records(name, options, trace.parameters, step["seed"])
            if broker is not None:
                broker.create_topic(name, 2)
                for partition in (0, 1):
                    broker.produce(name, records[partition::2], partition=partition)
            for policy in POLICIES:
                record_format = format_named(name, FORMATS[name].data_type, {**options, "on-error": policy})
                _run(report, record_format, policy, records, bad, broker)
    report.figures["records"] = len(trace.steps) * len(POLICIES) * trace.parameters["records"]
    return report


@contextmanager
def _broker(trace: Trace) -> Iterator[KafkaBroker | None]:
    if not trace.parameters["kafka"]:
        yield None
        return
    with KafkaBroker() as broker:
        yield broker


def _create_records(
    name: str, options: dict[str, str], parameters: Mapping[str, Any], seed: int
) -> tuple[list[bytes], list[int]]:
    """Return encoded records with bad ones among them, and the numbers of the bad ones."""
    poison, count = FORMATS[name], parameters["records"]
    records: list[bytes] = format_named(name, poison.data_type, options).encode([poison.row(n) for n in range(count)])
    chance = np.random.default_rng(seed)
    bad = sorted(map(int, chance.choice(count, int(count * parameters["share"]), replace=False)))
    for number in bad:
        way = poison.ways[int(chance.integers(len(poison.ways)))]
        records[number] = way(number)
    return records, bad


def _run(
    report: Report, record_format: Format, policy: str, records: list[bytes], bad: list[int], broker: KafkaBroker | None
) -> None:
    """Run one job and check its whole output."""
    context = f"{record_format.name}, {policy}"
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    skipped = _SkipCounter()
    environment.register_listener(skipped)
    decoded = _decode(environment, record_format, records, broker)
    good = decoded.map(lambda row: ("good", row.id))
    letters = decoded.get_side_output(DEAD_LETTERS).map(lambda row: ("bad", bytes(row.data), bool(row.reason)))
    try:
        with good.union(letters).execute_and_collect() as results:
            output = list(results)
    except MillstreamError as problem:
        record = "a record" if broker is None else r"message \d+ of " + record_format.name + r"-[01]"
        is_named = re.search(f"{record} is not a valid {record_format.name} record", str(problem)) is not None
        report.check(policy == "fail" and is_named, f"{context}: failed with {problem}")
        report.figures["failed"] = report.figures.get("failed", 0) + 1
        return
    report.check(policy != "fail", f"{context}: did not fail")
    bad_numbers = set(bad)
    expected = [number for number in range(len(records)) if number not in bad_numbers]
    numbers = sorted(row[1] for row in output if row[0] == "good")
    report.check(numbers == expected, f"{context}: {len(numbers)} good records of {len(expected)}, or other ones")
    kept = sorted(row[1] for row in output if row[0] == "bad" and row[2])
    wanted = sorted(records[number] for number in bad) if policy == "dead-letter" else []
    report.check(kept == wanted, f"{context}: {len(kept)} dead letters of {len(wanted)}, or other ones")
    report.check(skipped.count == len(bad), f"{context}: {skipped.count} of {len(bad)} bad records were counted")
    report.figures[policy] = report.figures.get(policy, 0) + len(bad)


def _decode(
    environment: StreamExecutionEnvironment, record_format: Format, records: Sequence[bytes], broker: KafkaBroker | None
) -> DataStream:
    if broker is None:
        return decode(environment.from_collection(list(records), _BYTES), record_format)
    source = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers).set_topics(record_format.name)
    source.set_value_only_deserializer(record_format).set_bounded(KafkaOffsetsInitializer.latest())
    return environment.from_source(source.build(), WatermarkStrategy.no_watermarks(), "poison")


class _SkipCounter:
    """A listener that counts skipped records."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, event: JobEvent) -> None:
        """Add the skipped records of an epoch."""
        if isinstance(event, EpochDone):
            for counts in event.metrics.values():
                self.count += sum(int(counts.get(name, 0)) for name in ("numRecordsSkipped", "user.numRecordsSkipped"))


def _options(name: str, directory: Path, registry: str) -> dict[str, str]:
    if name == "avro-confluent":
        return {"url": registry, "subject": "poison-value"}
    if name == "protobuf":
        return _protobuf(directory)
    return {}


def _protobuf(directory: Path) -> dict[str, str]:
    """Write the descriptor of a message to a file, and return the options of the format."""
    descriptor_pb2 = importlib.import_module("google.protobuf.descriptor_pb2")  # from the extra `protobuf`
    file = descriptor_pb2.FileDescriptorProto(name="poison.proto", package="poison", syntax="proto3")
    message = file.message_type.add(name="Poison")
    field = descriptor_pb2.FieldDescriptorProto
    field_types = {"id": field.TYPE_INT64, "name": field.TYPE_STRING, "score": field.TYPE_DOUBLE}
    for number, (name, field_type) in enumerate(field_types.items(), 1):
        message.field.add(name=name, number=number, type=field_type, label=field.LABEL_OPTIONAL)
    path = directory / "poison.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    return {"message-class-name": "poison.Poison", "descriptor-set-file": str(path)}

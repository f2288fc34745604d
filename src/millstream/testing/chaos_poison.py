"""Records that cannot be read, in every format and under every policy.

Promises: `fail` ends the job and names the first bad record; `skip` leaves out the bad ones, which are counted;
`dead-letter` keeps them, byte by byte, with the reason. No good record is lost, under any of them.
Does not know: how a format finds out. Small sizes decode inside the program, larger ones in a Kafka source."""

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
from millstream.testing.chaos import Report, Trace
from millstream.testing.chaos_driven import inline
from millstream.testing.kafka import KafkaBroker
from millstream.testing.schema_registry import running_registry
from millstream.types.factory import Types
from millstream.types.row import Row

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
    """Ways to be bad in a format, by a number."""

    ways: tuple[Callable[[int], bytes], ...]
    kind: Any = _ROW

    def row(self, number: int) -> Row:
        """A good record."""
        return Row(id=number) if self.kind is _NUMBER else Row(id=number, name=f"name {number}", score=number / 4)


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
    """For each format and policy a seed of its own, from which the places and ways of bad records follow."""
    chance = np.random.default_rng([seed, 31])
    steps = [{"format": name, "seed": int(chance.integers(1 << 30))} for name in FORMATS]
    return Trace("poison", seed, size, dict(_SIZES[size]), steps)


def play(trace: Trace, directory: Path) -> Report:
    """Run a job for each format and policy."""
    report = Report(trace)
    with _broker(trace) as broker, running_registry() as registry, inline():
        for step in trace.shown():
            name = step["format"]
            options = _options(name, directory, registry)
            records, bad = _poisoned(name, options, trace.parameters, step["seed"])
            if broker is not None:
                broker.create_topic(name, 2)
                for partition in (0, 1):
                    broker.produce(name, records[partition::2], partition=partition)
            for policy in POLICIES:
                made = format_named(name, FORMATS[name].kind, {**options, "on-error": policy})
                _run(report, made, policy, records, bad, broker)
    report.figures["records"] = len(trace.steps) * len(POLICIES) * trace.parameters["records"]
    return report


@contextmanager
def _broker(trace: Trace) -> Iterator[KafkaBroker | None]:
    if not trace.parameters["kafka"]:
        yield None
        return
    with KafkaBroker() as broker:
        yield broker


def _poisoned(
    name: str, options: dict[str, str], parameters: Mapping[str, Any], seed: int
) -> tuple[list[bytes], list[int]]:
    """Records with bad ones among them, and the numbers of these."""
    poison, count = FORMATS[name], parameters["records"]
    records: list[bytes] = format_named(name, poison.kind, options).encode([poison.row(n) for n in range(count)])
    chance = np.random.default_rng(seed)
    bad = sorted(map(int, chance.choice(count, int(count * parameters["share"]), replace=False)))
    for number in bad:
        way = poison.ways[int(chance.integers(len(poison.ways)))]
        records[number] = way(number)
    return records, bad


def _run(
    report: Report, made: Format, policy: str, records: list[bytes], bad: list[int], broker: KafkaBroker | None
) -> None:
    """One job; everything that comes out of it is compared."""
    where = f"{made.name}, {policy}"
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    skipped = _Skipped()
    environment.register_listener(skipped)
    decoded = _decoded(environment, made, records, broker)
    good = decoded.map(lambda row: ("good", row.id))
    letters = decoded.get_side_output(DEAD_LETTERS).map(lambda row: ("bad", bytes(row.data), bool(row.reason)))
    try:
        with good.union(letters).execute_and_collect() as results:
            found = list(results)
    except MillstreamError as problem:
        place = "a record" if broker is None else r"message \d+ of " + made.name + r"-[01]"
        named = re.search(f"{place} is not a valid {made.name} record", str(problem)) is not None
        report.check(policy == "fail" and named, f"{where}: failed with {problem}")
        report.figures["failed"] = report.figures.get("failed", 0) + 1
        return
    report.check(policy != "fail", f"{where}: did not fail")
    poisoned = set(bad)
    expected = [number for number in range(len(records)) if number not in poisoned]
    have = sorted(each[1] for each in found if each[0] == "good")
    report.check(have == expected, f"{where}: {len(have)} good records of {len(expected)}, or other ones")
    kept = sorted(each[1] for each in found if each[0] == "bad" and each[2])
    wanted = sorted(records[number] for number in bad) if policy == "dead-letter" else []
    report.check(kept == wanted, f"{where}: {len(kept)} dead letters of {len(wanted)}, or other ones")
    report.check(skipped.count == len(bad), f"{where}: {skipped.count} of {len(bad)} bad records were counted")
    report.figures[policy] = report.figures.get(policy, 0) + len(bad)


def _decoded(
    environment: StreamExecutionEnvironment, made: Format, records: Sequence[bytes], broker: KafkaBroker | None
) -> DataStream:
    if broker is None:
        return decode(environment.from_collection(list(records), _BYTES), made)
    source = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers).set_topics(made.name)
    source.set_value_only_deserializer(made).set_bounded(KafkaOffsetsInitializer.latest())
    return environment.from_source(source.build(), WatermarkStrategy.no_watermarks(), "poison")


class _Skipped:
    """A listener that adds up what was left out."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, observation: JobEvent) -> None:
        """Add an epoch."""
        if isinstance(observation, EpochDone):
            for counts in observation.metrics.values():
                self.count += sum(int(counts.get(name, 0)) for name in ("numRecordsSkipped", "user.numRecordsSkipped"))


def _options(name: str, directory: Path, registry: str) -> dict[str, str]:
    if name == "avro-confluent":
        return {"url": registry, "subject": "poison-value"}
    if name == "protobuf":
        return _protobuf(directory)
    return {}


def _protobuf(directory: Path) -> dict[str, str]:
    """A message that is described in a file of its own."""
    descriptor_pb2 = importlib.import_module("google.protobuf.descriptor_pb2")  # of an extra
    file = descriptor_pb2.FileDescriptorProto(name="poison.proto", package="poison", syntax="proto3")
    message = file.message_type.add(name="Poison")
    field = descriptor_pb2.FieldDescriptorProto
    kinds = {"id": field.TYPE_INT64, "name": field.TYPE_STRING, "score": field.TYPE_DOUBLE}
    for number, (name, kind) in enumerate(kinds.items(), 1):
        message.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
    path = directory / "poison.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    return {"message-class-name": "poison.Poison", "descriptor-set-file": str(path)}

"""Streams whose topics and clusters are added and removed are read completely, and once."""

from __future__ import annotations

import pytest
from kafka_running import LATEST, collected

from millstream.common import SimpleStringSchema
from millstream.connector.source import Budget, ReaderContext, SplitRange
from millstream.connectors.kafka.source import IncompleteKafkaSource
from millstream.datastream.connectors.kafka import (
    ClusterMetadata,
    DynamicKafkaSource,
    KafkaMetadataService,
    KafkaStream,
    SingleClusterTopicMetadataService,
)
from millstream.errors import ExternalError

pytestmark = pytest.mark.usefixtures("inline_engine")


class Told(KafkaMetadataService):
    """One stream, whose topics and clusters the test sets."""

    def __init__(self, servers):
        self.servers, self.parts, self.away, self.broken = servers, {}, set(), False

    def get_all_streams(self):
        return [KafkaStream("stream", self._clusters())]

    def describe_streams(self, stream_ids):
        if self.broken:
            raise ExternalError("the service is away")
        return {name: KafkaStream(name, self._clusters()) for name in stream_ids}

    def _clusters(self):
        connection = {"bootstrap.servers": self.servers}
        return {name: ClusterMetadata(frozenset(topics), connection) for name, topics in self.parts.items()}

    def is_cluster_active(self, kafka_cluster_id):
        return kafka_cluster_id not in self.away


def dynamic(service):
    builder = DynamicKafkaSource.builder().set_kafka_metadata_service(service)
    return builder.set_value_only_deserializer(SimpleStringSchema())


def test_a_stream_is_read_from_all_its_clusters(broker, new_topic):
    service = Told(broker.bootstrap_servers)
    service.parts = {"east": {new_topic("a")}, "west": {new_topic("b"), new_topic("c")}}
    for place, topics in service.parts.items():
        for topic in topics:
            broker.produce(topic, [f"{place} {number}" for number in range(10)])
    for builder in (dynamic(service).set_stream_ids({"stream"}), dynamic(service).set_stream_pattern("str.*")):
        found = collected(builder.set_bounded(LATEST).build())
        assert sorted(found) == sorted(f"{place} {n}" for place in ("east", "west", "west") for n in range(10))


def test_topics_that_move_between_clusters_are_continued_at_their_offsets(broker, new_topic):
    """Cluster `west` is removed and added again, `east` gets another topic: nothing is read twice or skipped."""
    service = Told(broker.bootstrap_servers)
    first, second, third = new_topic("a"), new_topic("b"), new_topic("c")
    service.parts = {"east": {first}, "west": {second}}
    source = dynamic(service).set_stream_ids({"stream"}).set_property("stream-metadata-discovery-interval-ms", "100")
    source = source.set_property("stream-metadata-discovery-failure-threshold", "1").build()
    for topic in (first, second, third):
        broker.produce(topic, ["old"])
    enumerator, reader = source.create_enumerator(1), source.create_reader(ReaderContext(0, 1, 100))

    def read(now):
        ranges = [SplitRange.from_json(part.to_json()) for part in enumerator.plan(Budget(100, 1 << 30, now))]
        return sorted((part.split, str(v)) for part in ranges for block in reader.read(part) for v in block.values)

    assert read(0) == [(f"east/{first}-0", "old"), (f"west/{second}-0", "old")]
    for topic in (first, second, third):
        broker.produce(topic, ["new"])
    service.away, service.parts = {"west"}, {**service.parts, "east": {first, third}}
    assert read(50) == [(f"east/{first}-0", "new"), (f"west/{second}-0", "new")]  # before the next check
    for topic in (first, second, third):
        broker.produce(topic, ["newer"])
    assert read(100) == [(f"east/{first}-0", "newer"), *((f"east/{third}-0", w) for w in ("new", "newer", "old"))]
    again = source.create_enumerator(1, enumerator.snapshot())  # a restart remembers topics that are currently missing
    enumerator.close()
    enumerator = again
    service.broken, service.away = True, set()
    with pytest.raises(ExternalError, match="the service is away"):
        read(200)
    service.broken = False
    assert read(300) == [(f"west/{second}-0", "newer")]
    service.broken = True
    assert read(400) == []
    with pytest.raises(ExternalError, match="the service is away"):
        read(500)
    enumerator.close()
    reader.close()


def test_topics_of_one_cluster_are_streams(broker, topic):
    broker.produce(topic, ["a"])
    service = SingleClusterTopicMetadataService("only", {"bootstrap.servers": broker.bootstrap_servers})
    assert collected(dynamic(service).set_stream_ids({topic}).set_bounded(LATEST).build()) == ["a"]
    assert topic in {stream.get_stream_id() for stream in service.get_all_streams()}
    with pytest.raises(IncompleteKafkaSource, match="no streams"):
        dynamic(service).build()

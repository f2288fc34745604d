"""Dynamic Kafka source: topics and clusters can be added and removed while a job runs, as in Flink.

Promises: Flink's names in Python's spelling. The topics and clusters of a stream come from a `KafkaMetadataService`,
which is called every `stream-metadata-discovery-interval-ms`; every record is read once, also when topics move.
Does not know: how ranges are planned and read."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.connector.serialization_schema import DeserializationSchema
from millstream.connector.source import (
    Boundedness,
    ReaderContext,
    Records,
    Rejected,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.connectors.kafka.dynamic_enumerator import DynamicKafkaEnumerator, Streams
from millstream.connectors.kafka.enumerator import KafkaEnumerator, Subscription
from millstream.connectors.kafka.metadata_service import ClusterMetadata, KafkaMetadataService
from millstream.connectors.kafka.offsets import KafkaOffsetsInitializer
from millstream.connectors.kafka.records import KafkaRecordDeserializationSchema, ValueOnly
from millstream.connectors.kafka.source import IncompleteKafkaSource, KafkaSource, KafkaSourceBuilder
from millstream.errors import ExternalError, UserError
from millstream.formats.contract import Format
from millstream.types.factory import TypeInformation

_INTERVAL = "stream-metadata-discovery-interval-ms"
_THRESHOLD = "stream-metadata-discovery-failure-threshold"


class ClusterGone(ExternalError):
    """A range belongs to a cluster that the metadata service no longer returns."""

    hint = "the service must return the cluster until its planned ranges are read"

    def __init__(self, cluster: str) -> None:
        super().__init__(f"cluster '{cluster}' is no longer part of the streams that are read")


@dataclass(frozen=True)
class DynamicKafkaSource(Source):
    """Reads streams. Created by `DynamicKafkaSource.builder()`.

    Example:
        >>> from millstream.common import SimpleStringSchema
        >>> from millstream.datastream.connectors.dynamic_kafka import SingleClusterTopicMetadataService
        >>> service = SingleClusterTopicMetadataService("berlin", {"bootstrap.servers": "localhost:9092"})
        >>> builder = DynamicKafkaSource.builder().set_kafka_metadata_service(service).set_stream_ids(["orders"])
        >>> source = builder.set_value_only_deserializer(SimpleStringSchema()).build()

    """

    streams: Streams
    schema: KafkaRecordDeserializationSchema
    subscription: Subscription
    bounded: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @staticmethod
    def builder() -> DynamicKafkaSourceBuilder:
        """Return a new builder."""
        return DynamicKafkaSourceBuilder()

    def type_info(self) -> TypeInformation:
        """Return the type that the deserialization schema produces."""
        return self.schema.get_produced_type()

    def boundedness(self) -> Boundedness:
        """Return bounded if the builder was called with `set_bounded`."""
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def check(self) -> None:
        """Check that the service answers, and that the clusters have the topics it names."""
        for part in self.streams.clusters().values():
            self.of_cluster(part).check()

    def of_cluster(self, part: ClusterMetadata) -> KafkaSource:
        """Return the source of the topics of one cluster; properties of the cluster take precedence.

        Args:
            part: The topics of the cluster, and the properties of its consumer.

        """
        properties = {**self.properties, **part.properties}
        servers = str(properties.pop("bootstrap.servers", ""))
        if not servers:
            raise IncompleteKafkaSource(problem="has a cluster without bootstrap.servers", call="set_property")
        subscription = replace(self.subscription, topics=tuple(sorted(part.topics)))
        return KafkaSource(servers, self.schema, subscription, self.bounded, properties)

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator that plans the partitions of all clusters of the streams."""

        def open_cluster(part: ClusterMetadata, subscription: Subscription, positions: Any) -> KafkaEnumerator:
            source = replace(self.of_cluster(part), subscription=subscription)
            enumerator = source.create_enumerator(parallelism, positions)
            assert isinstance(enumerator, KafkaEnumerator)
            return enumerator

        return DynamicKafkaEnumerator(self.streams, self.subscription, open_cluster, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader that opens a reader for each cluster when it is first needed."""
        return DynamicKafkaReader(self, context)


class DynamicKafkaReader(SourceReader):
    """Readers of clusters, opened when they are first needed."""

    def __init__(self, source: DynamicKafkaSource, context: ReaderContext) -> None:
        self._source, self._context = source, context
        self._readers: dict[str, SourceReader] = {}

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the records of a range."""
        name, _, split = part.split.partition("/")
        return self._reader(name).read(replace(part, split=split))

    def _reader(self, name: str) -> SourceReader:
        if name not in self._readers:
            clusters = self._source.streams.clusters()
            if name not in clusters:
                raise ClusterGone(name)
            self._readers[name] = self._source.of_cluster(clusters[name]).create_reader(self._context)
        return self._readers[name]

    def take_rejected(self) -> Rejected:
        """Return the rejected messages of all clusters."""
        all_rejected = [reader.take_rejected() for reader in self._readers.values()]
        return Rejected(
            sum(rejected.count for rejected in all_rejected),
            [letter for rejected in all_rejected for letter in rejected.letters],
        )

    def close(self) -> None:
        """Close all readers."""
        while self._readers:
            self._readers.popitem()[1].close()


class KafkaStreamSubscriber(ABC):
    """Selects the streams that a dynamic source reads.

    Example:
        >>> class OrdersOf(KafkaStreamSubscriber):
        ...     def __init__(self, country):
        ...         self.country = country
        ...
        ...     def subscribe(self, builder):
        ...         builder.set_stream_ids([f"orders-{self.country}"])
        >>> builder = DynamicKafkaSource.builder().set_kafka_stream_subscriber(OrdersOf("de"))

    """

    @abstractmethod
    def subscribe(self, builder: DynamicKafkaSourceBuilder) -> None:
        """Set the streams in a builder.

        Args:
            builder: The builder; call its `set_stream_ids` or `set_stream_pattern`.

        """


@dataclass(frozen=True)
class KafkaStreamSetSubscriber(KafkaStreamSubscriber):
    """Selects streams by their ids.

    Example:
        >>> builder = DynamicKafkaSource.builder().set_kafka_stream_subscriber(KafkaStreamSetSubscriber(["orders"]))

    """

    stream_ids: Collection[str]

    def subscribe(self, builder: DynamicKafkaSourceBuilder) -> None:
        """Set the ids."""
        builder.set_stream_ids(self.stream_ids)


@dataclass(frozen=True)
class StreamPatternSubscriber(KafkaStreamSubscriber):
    """Selects every stream whose whole id matches a regular expression.

    Example:
        >>> builder = DynamicKafkaSource.builder().set_kafka_stream_subscriber(StreamPatternSubscriber("orders-.*"))

    """

    stream_pattern: str

    def subscribe(self, builder: DynamicKafkaSourceBuilder) -> None:
        """Set the pattern."""
        builder.set_stream_pattern(self.stream_pattern)


class DynamicKafkaSourceBuilder:
    """Builds a DynamicKafkaSource. Streams, a metadata service and a deserializer are needed.

    Example:
        >>> from millstream.common import SimpleStringSchema
        >>> from millstream.datastream.connectors.dynamic_kafka import SingleClusterTopicMetadataService
        >>> service = SingleClusterTopicMetadataService("berlin", {"bootstrap.servers": "localhost:9092"})
        >>> builder = DynamicKafkaSourceBuilder().set_kafka_metadata_service(service).set_stream_pattern("orders-.*")
        >>> builder = builder.set_property("stream-metadata-discovery-interval-ms", "10000")
        >>> source = builder.set_value_only_deserializer(SimpleStringSchema()).build()

    """

    def __init__(self) -> None:
        self._ids: frozenset[str] = frozenset()
        self._pattern: str | None = None
        self._service: KafkaMetadataService | None = None
        self._schema: KafkaRecordDeserializationSchema | None = None
        self._subscription = Subscription()
        self._bounded = False
        self._properties: dict[str, Any] = {}

    def build(self) -> DynamicKafkaSource:
        """Build the source."""
        if self._service is None:
            raise IncompleteKafkaSource(problem="has no metadata service", call="set_kafka_metadata_service")
        if bool(self._ids) + (self._pattern is not None) != 1:
            raise IncompleteKafkaSource(
                problem="has no streams, or both stream ids and a stream pattern",
                call="one of set_stream_ids, set_stream_pattern",
            )
        properties = dict(self._properties)
        interval, failures = int(properties.pop(_INTERVAL, -1)), int(properties.pop(_THRESHOLD, 1))
        # the settings of one cluster's source are checked and completed by its own builder
        cluster_builder = KafkaSourceBuilder().set_bootstrap_servers("of the cluster").set_topics("of the stream")
        cluster_builder.set_properties(properties)
        if self._schema is not None:
            cluster_builder.set_deserializer(self._schema)
        if self._subscription.stopping is not None:
            (cluster_builder.set_bounded if self._bounded else cluster_builder.set_unbounded)(
                self._subscription.stopping
            )
        cluster_source = cluster_builder.set_starting_offsets(self._subscription.starting).build()
        discovery = None if interval <= 0 or self._subscription.stopping is not None else interval
        streams = Streams(self._service, self._ids, self._pattern, discovery, failures)
        return DynamicKafkaSource(
            streams, cluster_source.schema, cluster_source.subscription, self._bounded, cluster_source.properties
        )

    def set_stream_ids(self, stream_ids: Collection[str]) -> DynamicKafkaSourceBuilder:
        """Read these streams.

        Args:
            stream_ids: The ids of the streams.

        """
        self._ids = frozenset(stream_ids)
        return self

    def set_stream_pattern(self, stream_pattern: str) -> DynamicKafkaSourceBuilder:
        """Read every stream whose whole id matches, also streams that are added later.

        Args:
            stream_pattern: A regular expression in Python's syntax.

        """
        try:
            re.compile(stream_pattern)
        except re.error as problem:
            msg = f"the stream pattern {stream_pattern!r} is not a regular expression: {problem}"
            raise UserError(msg, hint="use the syntax of Python, not of Java") from None
        self._pattern = stream_pattern
        return self

    def set_kafka_stream_subscriber(self, kafka_stream_subscriber: KafkaStreamSubscriber) -> DynamicKafkaSourceBuilder:
        """Read the streams of a subscriber, instead of `set_stream_ids` or `set_stream_pattern`.

        Args:
            kafka_stream_subscriber: Selects the streams.

        """
        kafka_stream_subscriber.subscribe(self)
        return self

    def set_kafka_metadata_service(self, kafka_metadata_service: KafkaMetadataService) -> DynamicKafkaSourceBuilder:
        """Set the service that knows the topics and clusters of streams.

        Args:
            kafka_metadata_service: The service.

        """
        self._service = kafka_metadata_service
        return self

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> DynamicKafkaSourceBuilder:
        """Set the offsets at which a job without a checkpoint begins; the default is `earliest`.

        Args:
            starting_offsets_initializer: The offsets where each partition begins.

        """
        self._subscription = replace(self._subscription, starting=starting_offsets_initializer)
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> DynamicKafkaSourceBuilder:
        """End at these offsets; the source is bounded.

        Args:
            stopping_offsets_initializer: The offsets where each partition ends.

        """
        self._subscription, self._bounded = replace(self._subscription, stopping=stopping_offsets_initializer), True
        return self

    def set_deserializer(self, deserializer: KafkaRecordDeserializationSchema) -> DynamicKafkaSourceBuilder:
        """Decode whole messages.

        Args:
            deserializer: Turns a message into records.

        """
        self._schema = deserializer
        return self

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema | Format
    ) -> DynamicKafkaSourceBuilder:
        """Decode values.

        Args:
            deserialization_schema: Decodes the bytes of a value.

        """
        self._schema = ValueOnly(deserialization_schema)
        return self

    def set_group_id(self, group_id: str) -> DynamicKafkaSourceBuilder:
        """Set the consumer group to which the offsets of each checkpoint are committed.

        Args:
            group_id: The name of the consumer group.

        """
        return self.set_property("group.id", group_id)

    def set_client_id_prefix(self, prefix: str) -> DynamicKafkaSourceBuilder:
        """Set the prefix of the client ids at the brokers.

        Args:
            prefix: The prefix; the index of the subtask follows it.

        """
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: str) -> DynamicKafkaSourceBuilder:
        """Set a property of Kafka's consumer for all clusters, or of this source: stream-metadata-discovery-interval-ms
        (by default, never) and stream-metadata-discovery-failure-threshold.

        Args:
            key: The name of the property.
            value: The value of the property.

        """
        self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, str]) -> DynamicKafkaSourceBuilder:
        """Set several properties.

        Args:
            props: The values of the properties by name, as in `set_property`.

        """
        self._properties.update(props)
        return self

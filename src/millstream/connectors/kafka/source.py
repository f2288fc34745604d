"""The Kafka source: topics, each offset of which is read once.

Promises: PyFlink's builder. A split is a partition; its watermarks and idleness are its own. A bounded source ends at
its stopping offsets; one that is not goes on, and finds partitions that are added.
Does not know: how ranges are planned and read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.connector.serialization_schema import DeserializationSchema
from millstream.connector.source import Boundedness, ReaderContext, Source, SourceReader, SplitEnumerator
from millstream.connectors.kafka.cluster import KafkaCluster
from millstream.connectors.kafka.enumerator import KafkaEnumerator, Subscription, find_partitions
from millstream.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    OffsetsKind,
)
from millstream.connectors.kafka.properties import BadKafkaProperty, translate_properties
from millstream.connectors.kafka.reader import DEFAULTS, KafkaReader
from millstream.connectors.kafka.records import KafkaRecordDeserializationSchema, ValueOnly
from millstream.errors import UserError
from millstream.formats.contract import Format
from millstream.types.factory import TypeInformation

_OPTIONS = {
    "auto.offset.reset",
    "partition.discovery.interval.ms",
    "commit.offsets.on.checkpoint",
    "client.id.prefix",
    "register.consumer.metrics",
}


class IncompleteKafkaSource(UserError):
    """A builder with a missing or contradictory setting."""

    def __init__(self, problem: str, call: str) -> None:
        super().__init__(f"the Kafka source {problem}", hint=f"call {call} on the builder")


@dataclass(frozen=True)
class KafkaSource(Source):
    """Reads topics. Created by `KafkaSource.builder()`.

    Example:
        >>> from millstream.datastream.connectors.kafka import KafkaOffsetsInitializer
        >>> from millstream.common import SimpleStringSchema
        >>> builder = KafkaSource.builder().set_bootstrap_servers("localhost:9092").set_topics("orders")
        >>> builder = builder.set_group_id("shop").set_starting_offsets(KafkaOffsetsInitializer.earliest())
        >>> source = builder.set_value_only_deserializer(SimpleStringSchema()).build()

    """

    servers: str
    schema: KafkaRecordDeserializationSchema
    subscription: Subscription
    bounded: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Return a new builder."""
        return KafkaSourceBuilder()

    def type_info(self) -> TypeInformation:
        """Return the type that the deserialization schema produces."""
        return self.schema.get_produced_type()

    def boundedness(self) -> Boundedness:
        """Return bounded after `set_bounded`; a source after `set_unbounded` with offsets counts as unbounded, and
        ends."""
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def check(self) -> None:
        """Check that the brokers answer, and have the topics or partitions."""
        cluster = self._cluster()
        try:
            find_partitions(cluster, self.subscription)
        finally:
            cluster.close()

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator that queries the brokers for partitions and offsets.

        Args:
            parallelism: The parallelism of the source.
            state: The offsets up to which earlier epochs have planned.

        """
        return KafkaEnumerator(self._cluster(), self.subscription, state)

    def _cluster(self) -> KafkaCluster:
        committed_only = self.properties.get("isolation.level", "read_committed") == "read_committed"
        group = self.properties.get("group.id")
        return KafkaCluster(self.servers, self._settings(), group, committed_only=committed_only)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of ranges of offsets."""
        settings = {**DEFAULTS, **self._settings()}
        prefix = self.properties.get("client.id.prefix")
        if prefix is not None:
            settings["client.id"] = f"{prefix}-{context.subtask}"
        return KafkaReader(self.schema, settings, context.block_records, _reset(self.properties))

    def _settings(self) -> dict[str, Any]:
        properties = {key: value for key, value in self.properties.items() if key not in _OPTIONS}
        return {"group.id": "millstream", **translate_properties(properties), "bootstrap.servers": self.servers}


def _reset(properties: Mapping[str, Any]) -> KafkaOffsetResetStrategy:
    """Return the strategy for records that were deleted before they were read: the property `auto.offset.reset`."""
    name = "auto.offset.reset"
    strategy = str(properties.get(name, "none")).lower()
    if strategy not in ("none", "earliest"):
        reason = "it would skip records that exist" if strategy == "latest" else f"'{strategy}' is not a strategy"
        raise BadKafkaProperty(
            name, reason, hint="use none or earliest; starting offsets are set by set_starting_offsets"
        )
    return KafkaOffsetResetStrategy[strategy.upper()]


class KafkaSourceBuilder:
    """Builds a KafkaSource. Bootstrap servers, something to read, and a deserializer are needed.

    Example:
        >>> from millstream.common import SimpleStringSchema
        >>> builder = KafkaSourceBuilder().set_bootstrap_servers("localhost:9092").set_topic_pattern("orders-.*")
        >>> source = builder.set_value_only_deserializer(SimpleStringSchema()).build()

    """

    def __init__(self) -> None:
        self._servers: str | None = None
        self._schema: KafkaRecordDeserializationSchema | None = None
        self._subscription = Subscription()
        self._bounded = False
        self._properties: dict[str, Any] = {}

    def build(self) -> KafkaSource:
        """Build the source."""
        servers = self._servers or self._properties.pop("bootstrap.servers", None)
        subscription = self._subscription
        if servers is None:
            raise IncompleteKafkaSource(problem="has no bootstrap servers", call="set_bootstrap_servers")
        if self._schema is None:
            raise IncompleteKafkaSource(problem="has no deserializer", call="set_value_only_deserializer")
        if bool(subscription.topics) + (subscription.pattern is not None) + bool(subscription.partitions) != 1:
            raise IncompleteKafkaSource(
                problem="has nothing to read, or more than one of topics, pattern and partitions",
                call="one of set_topics, set_topic_pattern",
            )
        if "group.id" not in self._properties and any(
            offsets is not None and offsets.kind is OffsetsKind.COMMITTED
            for offsets in (subscription.starting, subscription.stopping)
        ):
            raise IncompleteKafkaSource(
                problem="begins at committed offsets, but has no consumer group", call="set_group_id"
            )
        _reset(self._properties)
        return KafkaSource(
            str(servers), self._schema, self._complete_subscription(), self._bounded, {**self._properties}
        )

    def _complete_subscription(self) -> Subscription:
        """Return the subscription with the settings of properties."""
        interval = int(self._properties.get("partition.discovery.interval.ms", 300_000))
        commits = str(self._properties.get("commit.offsets.on.checkpoint", "true")).lower() == "true"
        has_end = self._subscription.stopping is not None
        return replace(
            self._subscription,
            discovery=None if interval <= 0 or has_end else interval,
            commits=commits and "group.id" in self._properties,
        )

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Set the addresses of the brokers as `host:port`, separated by commas.

        Args:
            bootstrap_servers: The addresses, such as `broker1:9092,broker2:9092`.

        """
        self._servers = bootstrap_servers
        return self

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Set the consumer group to which the offsets of each checkpoint are committed.

        Args:
            group_id: The name of the consumer group.

        """
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Read these topics, which must exist.

        Args:
            *topics: The names of the topics.

        """
        self._subscription = replace(self._subscription, topics=tuple(topics))
        return self

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Read all topics whose whole name matches, topics that are created later included.

        Args:
            topic_pattern: A regular expression in Python's syntax.

        """
        try:
            re.compile(topic_pattern)
        except re.error as problem:
            msg = f"the topic pattern {topic_pattern!r} is not a regular expression: {problem}"
            raise UserError(msg, hint="use the syntax of Python, not of Java") from None
        self._subscription = replace(self._subscription, pattern=topic_pattern)
        return self

    def set_partitions(self, partitions: AbstractSet[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Read these partitions, which must exist.

        Args:
            partitions: The partitions, of one topic or of several.

        """
        self._subscription = replace(self._subscription, partitions=tuple(sorted(partitions)))
        return self

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Set the offsets at which a job without a checkpoint begins; the default is `earliest`.

        Args:
            starting_offsets_initializer: The offsets where each partition begins.

        """
        self._subscription = replace(self._subscription, starting=starting_offsets_initializer)
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """End at these offsets, but count as unbounded: the job runs as a stream.

        Args:
            stopping_offsets_initializer: The offsets where each partition ends.

        """
        self._subscription, self._bounded = replace(self._subscription, stopping=stopping_offsets_initializer), False
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """End at these offsets; new partitions are not discovered.

        Args:
            stopping_offsets_initializer: The offsets where each partition ends.

        """
        self._subscription, self._bounded = replace(self._subscription, stopping=stopping_offsets_initializer), True
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema | Format) -> KafkaSourceBuilder:
        """Decode only values, not keys and metadata. A message without a value is skipped.

        Args:
            deserialization_schema: Decodes the bytes of a value.

        """
        self._schema = ValueOnly(deserialization_schema)
        return self

    def set_deserializer(self, record_deserializer: KafkaRecordDeserializationSchema) -> KafkaSourceBuilder:
        """Decode whole messages, with key, headers, topic, partition, offset and timestamp.

        Args:
            record_deserializer: Turns a message into records.

        """
        self._schema = record_deserializer
        return self

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """Set the prefix of the client ids at the brokers.

        Args:
            prefix: The prefix; the index of the subtask follows it.

        """
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """Set a property of Kafka's consumer, or of this source: partition.discovery.interval.ms,
        commit.offsets.on.checkpoint, auto.offset.reset (for records that were deleted before they were read: none,
        the default, fails; earliest continues at the first offset of the log, and counts the lost records).

        Args:
            key: The name of the property.
            value: The value of the property.

        """
        self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, str]) -> KafkaSourceBuilder:
        """Set several properties.

        Args:
            props: The values of the properties by name, as in `set_property`.

        """
        self._properties.update(props)
        return self

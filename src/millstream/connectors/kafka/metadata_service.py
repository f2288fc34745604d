"""The metadata service of a dynamic source: the topics and clusters that make up a stream.

Promises: Flink's names in Python's spelling; descriptions are values. A service is sent to tasks, so it is picklable.
Does not know: offsets, records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.connectors.kafka.client import create_client, metadata
from millstream.connectors.kafka.cluster import TopicMissing
from millstream.connectors.kafka.properties import translate_properties


@dataclass(frozen=True)
class ClusterMetadata:
    """The part of a stream that is in one cluster: topics, and the properties of a consumer, `bootstrap.servers` among
    them.

    Example:
        >>> cluster = ClusterMetadata(frozenset(["orders"]), {"bootstrap.servers": "localhost:9092"})
        >>> sorted(cluster.get_topics())
        ['orders']

    """

    topics: frozenset[str]
    properties: Mapping[str, Any]

    def get_topics(self) -> frozenset[str]:
        """Return the topics."""
        return self.topics

    def get_properties(self) -> Mapping[str, Any]:
        """Return the properties."""
        return self.properties


@dataclass(frozen=True)
class KafkaStream:
    """A stream: topics in one or more clusters, by cluster id.

    Example:
        >>> cluster = ClusterMetadata(frozenset(["orders"]), {"bootstrap.servers": "localhost:9092"})
        >>> KafkaStream("all-orders", {"berlin": cluster}).get_stream_id()
        'all-orders'

    """

    stream_id: str
    cluster_metadata_map: Mapping[str, ClusterMetadata] = field(default_factory=dict)

    def get_stream_id(self) -> str:
        """Return the id of the stream."""
        return self.stream_id

    def get_cluster_metadata_map(self) -> Mapping[str, ClusterMetadata]:
        """Return the parts of the stream by cluster id."""
        return self.cluster_metadata_map


class KafkaMetadataService(ABC):
    """Describes streams. It is called periodically while a job runs; failures are tolerated for a while.

    Example:
        >>> class FixedStreams(KafkaMetadataService):
        ...     def get_all_streams(self):
        ...         cluster = ClusterMetadata(frozenset(["orders"]), {"bootstrap.servers": "localhost:9092"})
        ...         return [KafkaStream("all-orders", {"berlin": cluster})]
        ...
        ...     def describe_streams(self, stream_ids):
        ...         streams = self.get_all_streams()
        ...         return {stream.stream_id: stream for stream in streams if stream.stream_id in stream_ids}
        >>> list(FixedStreams().describe_streams(["all-orders"]))
        ['all-orders']

    """

    @abstractmethod
    def get_all_streams(self) -> Collection[KafkaStream]:
        """Return all streams."""

    @abstractmethod
    def describe_streams(self, stream_ids: Collection[str]) -> Mapping[str, KafkaStream]:
        """Return the streams with these ids.

        Args:
            stream_ids: The ids of the streams.

        """

    def is_cluster_active(self, kafka_cluster_id: str) -> bool:
        """Return whether a cluster can be read now; reading of an inactive cluster is continued later.

        Args:
            kafka_cluster_id: The id of the cluster.

        """
        return True

    def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True)
class SingleClusterTopicMetadataService(KafkaMetadataService):
    """The topics of one cluster, each a stream with its name.

    Example:
        >>> service = SingleClusterTopicMetadataService("berlin", {"bootstrap.servers": "localhost:9092"})

    """

    kafka_cluster_id: str
    properties: Mapping[str, Any]

    def get_all_streams(self) -> Collection[KafkaStream]:
        """Return a stream for every topic."""
        return [self._stream(name) for name in self._topics() if not name.startswith("__")]

    def describe_streams(self, stream_ids: Collection[str]) -> Mapping[str, KafkaStream]:
        """Return a stream for each of the given topics.

        Raises:
            TopicMissing: If one of the topics does not exist.

        """
        existing = self._topics()
        missing = [f"topic '{name}'" for name in stream_ids if name not in existing]
        if missing:
            raise TopicMissing(missing, str(self.properties["bootstrap.servers"]))
        return {name: self._stream(name) for name in stream_ids}

    def _stream(self, topic: str) -> KafkaStream:
        return KafkaStream(topic, {self.kafka_cluster_id: ClusterMetadata(frozenset([topic]), dict(self.properties))})

    def _topics(self) -> Collection[str]:
        admin = create_client("AdminClient", translate_properties(self.properties))
        return set(metadata(admin, str(self.properties["bootstrap.servers"]), "looking for topics").topics)

"""Requests of the enumerator to the brokers: partitions and offsets.

Promises: one request per broker for any number of partitions; answers are plain values; with `read_committed`, the end
of a partition is its last stable offset, so that nothing after it is planned.
Does not know: what was read."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from millstream.connectors.kafka import marks
from millstream.connectors.kafka.arrivals import Arrivals
from millstream.connectors.kafka.client import (
    DEADLINE,
    admin_library,
    create_client,
    failure,
    library,
    metadata,
    retry_while_unavailable,
)
from millstream.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    OffsetsKind,
)
from millstream.errors import UserError

_INTERNAL = {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", marks.TOPIC}

_APPEAR_SECONDS = 2.0  # seconds; not every broker knows a new topic immediately
_POLL_INTERVAL = 0.1

Offsets = dict[KafkaTopicPartition, int]


class TopicMissing(UserError):
    """A topic or partition does not exist."""

    hint = "create it first, or use set_topic_pattern for topics that are created later"

    def __init__(self, names: Iterable[str], servers: str) -> None:
        self.names = tuple(names)
        super().__init__(f"{', '.join(self.names)} does not exist at {servers}")


class NoOffset(UserError):
    """The requested offset does not exist, and there is no reset strategy."""

    hint = "use a KafkaOffsetResetStrategy other than NONE"

    def __init__(self, partition: KafkaTopicPartition, reason: str) -> None:
        super().__init__(f"{partition.split} has no offset to start at: {reason}")


def partitions_of(client: Any, topic: str, servers: str) -> list[int]:
    """Return the partitions of a topic, which must exist; with a client of any type."""
    deadline = time.monotonic() + _APPEAR_SECONDS
    while True:
        topic_metadata = metadata(client, servers, f"looking for topic '{topic}'", topic).topics[topic]
        if topic_metadata.error is None and topic_metadata.partitions:
            return sorted(topic_metadata.partitions)
        if time.monotonic() >= deadline:
            raise TopicMissing([f"topic '{topic}'"], servers)
        time.sleep(_POLL_INTERVAL)


class KafkaCluster:
    """A connection to the brokers, for metadata requests."""

    def __init__(self, servers: str, settings: Mapping[str, Any], group: str | None, *, committed_only: bool) -> None:
        self._servers = servers
        self._group = group
        common = {key: value for key, value in settings.items() if key not in ("group.id", "isolation.level")}
        self._admin = create_client("AdminClient", common)
        kafka = library()
        self._isolation = (
            kafka.IsolationLevel.READ_COMMITTED if committed_only else kafka.IsolationLevel.READ_UNCOMMITTED
        )
        self._settings = {**settings, "group.id": group or "millstream"}
        self._consumer = create_client("Consumer", {**self._settings, **_CONSUMER_SETTINGS})

    # ---------------------------------------------------------------------------------------------- partitions

    def partitions(self, topics: Collection[str], pattern: str | None) -> list[KafkaTopicPartition]:
        """Return all partitions of the topics, or of all topics whose whole name matches the pattern."""
        deadline = time.monotonic() + _APPEAR_SECONDS
        while True:
            topics_by_name = self._topics()
            if pattern is not None:
                compiled_pattern = re.compile(pattern)
                names = [name for name in topics_by_name if name not in _INTERNAL and compiled_pattern.fullmatch(name)]
                missing = []
            else:
                names = list(topics)
                missing = [
                    f"topic '{name}'"
                    for name in names
                    if name not in topics_by_name or not topics_by_name[name].partitions
                ]
            if not missing:
                return sorted(
                    KafkaTopicPartition(name, number) for name in names for number in topics_by_name[name].partitions
                )
            if time.monotonic() >= deadline:
                raise TopicMissing(missing, self._servers)
            time.sleep(_POLL_INTERVAL)

    def _topics(self) -> Mapping[str, Any]:
        """Return all topics: a request for one could create it. The admin client also needs metadata of new topics for
        offsets."""
        topics: Mapping[str, Any] = metadata(self._admin, self._servers, "looking for topics", timeout=DEADLINE).topics
        return topics

    def require(self, required: Collection[KafkaTopicPartition], existing: Collection[KafkaTopicPartition]) -> None:
        """Raise `TopicMissing` for partitions that do not exist."""
        missing = [
            f"partition {partition.partition} of topic '{partition.topic}'"
            for partition in required
            if partition not in existing
        ]
        if missing:
            raise TopicMissing(missing, self._servers)

    # ------------------------------------------------------------------------------------------------- offsets

    def latest(self, partitions: Iterable[KafkaTopicPartition], timeout: float = DEADLINE) -> Offsets:
        """Return the end offset of each partition."""
        return self._list_offsets(partitions, admin_library().OffsetSpec.latest(), timeout)

    def earliest(self, partitions: Iterable[KafkaTopicPartition]) -> Offsets:
        """Return the first offset of each partition."""
        return self._list_offsets(partitions, admin_library().OffsetSpec.earliest(), DEADLINE)

    def _list_offsets(self, partitions: Iterable[KafkaTopicPartition], spec: Any, timeout: float) -> Offsets:
        kafka = library()
        request = {kafka.TopicPartition(partition.topic, partition.partition): spec for partition in partitions}
        if not request:
            return {}
        for is_last_try in (False, True):
            futures = self._admin.list_offsets(request, isolation_level=self._isolation, request_timeout=timeout)
            try:
                return {
                    KafkaTopicPartition(topic_partition.topic, topic_partition.partition): future.result().offset
                    for topic_partition, future in futures.items()
                }
            except kafka.KafkaException as problem:
                if is_last_try:
                    raise failure(problem, self._servers, "requesting offsets") from problem
                self._refresh_metadata(timeout)
        raise AssertionError(request)

    def _refresh_metadata(self, timeout: float) -> None:
        """Request metadata: after a restart of brokers the client must know the new leaders before it sends
        requests."""
        metadata(self._admin, self._servers, "looking for leaders", timeout=timeout)

    def committed(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return the offsets that the group has committed."""
        if self._group is None or not partitions:
            return {}
        request = [library().TopicPartition(partition.topic, partition.partition) for partition in partitions]
        action = f"requesting the offsets of group '{self._group}'"
        committed_offsets = retry_while_unavailable(
            lambda: self._consumer.committed(request, timeout=DEADLINE), self._servers, action
        )
        return {KafkaTopicPartition(tp.topic, tp.partition): tp.offset for tp in committed_offsets if tp.offset >= 0}

    def commit(self, offsets: Mapping[KafkaTopicPartition, int]) -> None:
        """Commit the offsets of a checkpoint to the group."""
        positions = [
            library().TopicPartition(partition.topic, partition.partition, offset)
            for partition, offset in offsets.items()
        ]
        action = f"committing offsets of group '{self._group}'"
        retry_while_unavailable(
            lambda: self._consumer.commit(offsets=positions, asynchronous=False), self._servers, action
        )

    def resolve(self, initializer: KafkaOffsetsInitializer, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return the offset of an initializer for each partition."""
        if initializer.kind is OffsetsKind.EARLIEST:
            return self.earliest(partitions)
        latest = self.latest(partitions)
        if initializer.kind is OffsetsKind.LATEST:
            return latest
        if initializer.kind is OffsetsKind.TIMESTAMP:
            offsets_at_time = self._list_offsets(
                partitions, admin_library().OffsetSpec.for_timestamp(initializer.at), DEADLINE
            )
            return {
                partition: min(offset, latest[partition]) if offset >= 0 else latest[partition]
                for partition, offset in offsets_at_time.items()
            }
        offsets = dict(initializer.given)
        missing = [partition for partition in partitions if partition not in offsets]
        offsets.update(self.committed(missing))
        earliest = self.earliest(partitions)
        return {
            partition: _existing(partition, offsets.get(partition), earliest[partition], latest[partition], initializer)
            for partition in partitions
        }

    # ------------------------------------------------------------------------------------------------- records

    def sample(self, partition: KafkaTopicPartition, start: int, count: int, timeout: float) -> list[int]:
        """Return the sizes of some records from an offset on; fewer or none after a timeout."""
        kafka = library()
        self._consumer.assign([kafka.TopicPartition(partition.topic, partition.partition, start)])
        try:
            messages = self._consumer.consume(count, timeout=timeout)
        finally:
            self._consumer.unassign()
        return [
            len(message.value() or b"") + len(message.key() or b"") for message in messages if message.error() is None
        ]

    def create_arrivals(self, notify: Callable[[], None]) -> Arrivals:
        """Return what calls a function when partitions have new records."""
        return Arrivals(self._settings, notify)

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


_CONSUMER_SETTINGS = {"enable.auto.commit": False, "auto.offset.reset": "earliest", "queued.max.messages.kbytes": 4096}


def _existing(
    partition: KafkaTopicPartition, offset: int | None, earliest: int, latest: int, initializer: KafkaOffsetsInitializer
) -> int:
    """Return the requested offset if it exists, else the offset of the reset strategy."""
    if offset is not None and earliest <= offset <= latest:
        return offset
    if initializer.reset is KafkaOffsetResetStrategy.EARLIEST:
        return earliest
    if initializer.reset is KafkaOffsetResetStrategy.LATEST:
        return latest
    reason = "the group has committed none" if offset is None else f"{offset} is not between {earliest} and {latest}"
    raise NoOffset(partition, reason)

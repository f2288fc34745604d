"""Requests of the enumerator to the brokers: partitions and offsets.

Promises: one request per broker for any number of partitions; answers are plain values; with `read_committed`, the end
of a partition is its last stable offset, so that nothing after it is planned.
Does not know: what was read."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from millstream.connectors.kafka import marks
from millstream.connectors.kafka.client import (
    DEADLINE,
    admin_library,
    configured,
    failure,
    library,
    metadata,
    patiently,
)
from millstream.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    OffsetsKind,
)
from millstream.errors import UserError

_INTERNAL = {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", marks.TOPIC}

_APPEAR_SECONDS = 2.0  # for a topic that was made a moment ago: not every broker has heard of it at once
_LOOK_EVERY = 0.1

Offsets = dict[KafkaTopicPartition, int]


class TopicMissing(UserError):
    """A topic or partition does not exist."""

    hint = "create it first, or use set_topic_pattern for topics that come later"

    def __init__(self, names: Iterable[str], servers: str) -> None:
        self.names = tuple(names)
        super().__init__(f"there is no {', '.join(self.names)} at {servers}")


class NoOffset(UserError):
    """The requested offset does not exist, and there is no reset strategy."""

    hint = "give a KafkaOffsetResetStrategy other than NONE"

    def __init__(self, partition: KafkaTopicPartition, why: str) -> None:
        super().__init__(f"{partition.split} has no offset to begin at: {why}")


def partitions_of(client: Any, topic: str, servers: str) -> list[int]:
    """The partitions of a topic that must be there, as a client of any kind learns of them."""
    deadline = time.monotonic() + _APPEAR_SECONDS
    while True:
        found = metadata(client, servers, f"looking for topic '{topic}'", topic).topics[topic]
        if found.error is None and found.partitions:
            return sorted(found.partitions)
        if time.monotonic() >= deadline:
            raise TopicMissing([f"topic '{topic}'"], servers)
        time.sleep(_LOOK_EVERY)


class KafkaCluster:
    """A connection to the brokers, for metadata requests."""

    def __init__(self, servers: str, settings: Mapping[str, Any], group: str | None, *, committed_only: bool) -> None:
        self._servers = servers
        self._group = group
        common = {key: value for key, value in settings.items() if key not in ("group.id", "isolation.level")}
        self._admin = configured("AdminClient", common)
        kafka = library()
        self._isolation = (
            kafka.IsolationLevel.READ_COMMITTED if committed_only else kafka.IsolationLevel.READ_UNCOMMITTED
        )
        self._consumer = configured("Consumer", {**settings, "group.id": group or "millstream", **_QUIET})

    # ---------------------------------------------------------------------------------------------- partitions

    def partitions(self, topics: Collection[str], pattern: str | None) -> list[KafkaTopicPartition]:
        """All partitions of the topics, or of all topics that the pattern matches as a whole."""
        deadline = time.monotonic() + _APPEAR_SECONDS
        while True:
            found = self._topics()
            if pattern is not None:
                wanted = re.compile(pattern)
                names = [name for name in found if name not in _INTERNAL and wanted.fullmatch(name)]
                missing = []
            else:
                names = list(topics)
                missing = [f"topic '{name}'" for name in names if name not in found or not found[name].partitions]
            if not missing:
                return sorted(KafkaTopicPartition(name, number) for name in names for number in found[name].partitions)
            if time.monotonic() >= deadline:
                raise TopicMissing(missing, self._servers)
            time.sleep(_LOOK_EVERY)

    def _topics(self) -> Mapping[str, Any]:
        """All topics: asking for one could make it; and the client that is asked for offsets learns of new ones."""
        topics: Mapping[str, Any] = metadata(self._admin, self._servers, "looking for topics", timeout=DEADLINE).topics
        return topics

    def require(self, wanted: Collection[KafkaTopicPartition], found: Collection[KafkaTopicPartition]) -> None:
        """Raise `TopicMissing` for partitions that do not exist."""
        missing = [f"partition {each.partition} of topic '{each.topic}'" for each in wanted if each not in found]
        if missing:
            raise TopicMissing(missing, self._servers)

    # ------------------------------------------------------------------------------------------------- offsets

    def latest(self, partitions: Iterable[KafkaTopicPartition], timeout: float = DEADLINE) -> Offsets:
        """Return the end offset of each partition."""
        return self._listed(partitions, admin_library().OffsetSpec.latest(), timeout)

    def earliest(self, partitions: Iterable[KafkaTopicPartition]) -> Offsets:
        """Return the first offset of each partition."""
        return self._listed(partitions, admin_library().OffsetSpec.earliest(), DEADLINE)

    def _listed(self, partitions: Iterable[KafkaTopicPartition], spec: Any, timeout: float) -> Offsets:
        kafka = library()
        asked = {kafka.TopicPartition(each.topic, each.partition): spec for each in partitions}
        if not asked:
            return {}
        for last in (False, True):
            answers = self._admin.list_offsets(asked, isolation_level=self._isolation, request_timeout=timeout)
            try:
                return {
                    KafkaTopicPartition(at.topic, at.partition): done.result().offset for at, done in answers.items()
                }
            except kafka.KafkaException as problem:
                if last:
                    raise failure(problem, self._servers, "asking for offsets") from problem
                self._learn(timeout)
        raise AssertionError(asked)

    def _learn(self, timeout: float) -> None:
        """After a restart of brokers the client must see new leaders before it may ask them."""
        metadata(self._admin, self._servers, "looking for leaders", timeout=timeout)

    def committed(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return the offsets that the group has committed."""
        if self._group is None or not partitions:
            return {}
        asked = [library().TopicPartition(each.topic, each.partition) for each in partitions]
        doing = f"asking for the offsets of group '{self._group}'"
        answers = patiently(lambda: self._consumer.committed(asked, timeout=DEADLINE), self._servers, doing)
        return {KafkaTopicPartition(tp.topic, tp.partition): tp.offset for tp in answers if tp.offset >= 0}

    def commit(self, offsets: Mapping[KafkaTopicPartition, int]) -> None:
        """Commit the offsets of a checkpoint to the group."""
        told = [library().TopicPartition(each.topic, each.partition, offset) for each, offset in offsets.items()]
        doing = f"committing offsets of group '{self._group}'"
        patiently(lambda: self._consumer.commit(offsets=told, asynchronous=False), self._servers, doing)

    def resolve(self, wanted: KafkaOffsetsInitializer, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return the offset of an initializer for each partition."""
        if wanted.kind is OffsetsKind.EARLIEST:
            return self.earliest(partitions)
        latest = self.latest(partitions)
        if wanted.kind is OffsetsKind.LATEST:
            return latest
        if wanted.kind is OffsetsKind.TIMESTAMP:
            found = self._listed(partitions, admin_library().OffsetSpec.for_timestamp(wanted.at), DEADLINE)
            return {each: min(at, latest[each]) if at >= 0 else latest[each] for each, at in found.items()}
        given = dict(wanted.given)
        asked = [each for each in partitions if each not in given]
        given.update(self.committed(asked))
        earliest = self.earliest(partitions)
        return {each: _existing(each, given.get(each), earliest[each], latest[each], wanted) for each in partitions}

    # ------------------------------------------------------------------------------------------------- records

    def sample(self, partition: KafkaTopicPartition, start: int, count: int, timeout: float) -> list[int]:
        """Return the sizes of some records from an offset on; fewer or none after a timeout."""
        kafka = library()
        self._consumer.assign([kafka.TopicPartition(partition.topic, partition.partition, start)])
        try:
            read = self._consumer.consume(count, timeout=timeout)
        finally:
            self._consumer.unassign()
        return [len(each.value() or b"") + len(each.key() or b"") for each in read if each.error() is None]

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


_QUIET = {"enable.auto.commit": False, "auto.offset.reset": "earliest", "queued.max.messages.kbytes": 4096}


def _existing(
    partition: KafkaTopicPartition, offset: int | None, earliest: int, latest: int, wanted: KafkaOffsetsInitializer
) -> int:
    """Return the requested offset if it exists, else that of the reset strategy."""
    if offset is not None and earliest <= offset <= latest:
        return offset
    if wanted.reset is KafkaOffsetResetStrategy.EARLIEST:
        return earliest
    if wanted.reset is KafkaOffsetResetStrategy.LATEST:
        return latest
    why = "the group has committed none" if offset is None else f"{offset} is not between {earliest} and {latest}"
    raise NoOffset(partition, why)

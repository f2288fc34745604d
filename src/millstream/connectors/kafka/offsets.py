"""Where reading a partition begins and ends, as values.

Promises: frozen, comparable, picklable; PyFlink's names.
Does not know: brokers; the enumerator asks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True, order=True)
class KafkaTopicPartition:
    """One partition of a topic."""

    topic: str
    partition: int

    @property
    def split(self) -> str:
        """Its name as a split of the source."""
        return f"{self.topic}-{self.partition}"

    @staticmethod
    def of_split(split: str) -> KafkaTopicPartition:
        """The inverse of `split`."""
        topic, _, partition = split.rpartition("-")
        return KafkaTopicPartition(topic, int(partition))


class KafkaOffsetResetStrategy(Enum):
    """Where to begin when the offset that was asked for does not exist."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class OffsetsKind(Enum):
    """What an initializer looks at."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """Which offset of each partition to begin or to end at. Made by its static methods."""

    kind: OffsetsKind
    at: int = 0
    given: tuple[tuple[KafkaTopicPartition, int], ...] = ()
    reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The first record there is."""
        return KafkaOffsetsInitializer(OffsetsKind.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Behind the last record there is when the job starts."""
        return KafkaOffsetsInitializer(OffsetsKind.LATEST, reset=KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """What the consumer group has committed; the strategy is for partitions without."""
        return KafkaOffsetsInitializer(OffsetsKind.COMMITTED, reset=offset_reset_strategy)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record whose timestamp, in milliseconds, is that or later; else behind the last one."""
        return KafkaOffsetsInitializer(OffsetsKind.TIMESTAMP, at=timestamp, reset=KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """These offsets. Partitions that are not named begin where the group has committed; the strategy is for those
        without, and for offsets that do not exist."""
        given = tuple(sorted(offsets.items()))
        return KafkaOffsetsInitializer(OffsetsKind.OFFSETS, given=given, reset=offset_reset_strategy)

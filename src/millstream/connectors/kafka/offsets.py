"""Starting and stopping offsets of partitions.

Promises: frozen, comparable, picklable; PyFlink's names.
Does not know: brokers, which the enumerator queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True, order=True)
class KafkaTopicPartition:
    """One partition of a topic.

    Example:
        >>> KafkaTopicPartition("orders", 3).partition
        3

    """

    topic: str
    partition: int

    @property
    def split(self) -> str:
        """The name of the partition as a split of the source."""
        return f"{self.topic}-{self.partition}"

    @staticmethod
    def of_split(split: str) -> KafkaTopicPartition:
        """Parse the name of a split; the inverse of `split`.

        Args:
            split: The name of a split, such as `orders-3`.

        """
        topic, _, partition = split.rpartition("-")
        return KafkaTopicPartition(topic, int(partition))


class KafkaOffsetResetStrategy(Enum):
    """The offset to begin at when the requested one does not exist.

    Example:
        >>> begin = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)

    """

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class OffsetsKind(Enum):
    """The type of an initializer."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """Which offset of each partition to begin or to end at. Created by its static methods.

    Example:
        >>> begin = KafkaOffsetsInitializer.timestamp(1_700_000_000_000)

    """

    kind: OffsetsKind
    at: int = 0
    given: tuple[tuple[KafkaTopicPartition, int], ...] = ()
    reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """Begin with the first record."""
        return KafkaOffsetsInitializer(OffsetsKind.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Begin after the last record at the start of the job."""
        return KafkaOffsetsInitializer(OffsetsKind.LATEST, reset=KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Use the committed offsets of the consumer group; the strategy applies to partitions without one.

        Args:
            offset_reset_strategy: What to use for a partition without a committed offset.

        """
        return KafkaOffsetsInitializer(OffsetsKind.COMMITTED, reset=offset_reset_strategy)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """Begin with the first record at or after a timestamp in milliseconds; after the last one if there is none.

        Args:
            timestamp: Milliseconds since 1970-01-01 UTC.

        """
        return KafkaOffsetsInitializer(OffsetsKind.TIMESTAMP, at=timestamp, reset=KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Use these offsets. Partitions that are not named use the committed offsets of the group; the strategy applies
        to those without, and to offsets that do not exist.

        Args:
            offsets: An offset for each partition.
            offset_reset_strategy: What to use for a partition without an offset, or if its offset does not exist.

        """
        given = tuple(sorted(offsets.items()))
        return KafkaOffsetsInitializer(OffsetsKind.OFFSETS, given=given, reset=offset_reset_strategy)

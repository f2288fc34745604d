"""The enumerator of a Kafka source: discovers partitions, plans ranges of offsets.

Promises: every offset from where a partition begins to where it ends is planned once. The first range of a partition,
which may be empty, contains its starting offset (and stopping offset), so they are in the logged plan before anything
is read.
Does not know: records; how they are read.

A range is `SplitRange("topic-3", [start, stop or None], end)`: offsets; `end` and `stop` are exclusive."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.connectors.kafka.arrivals import Arrivals
from millstream.connectors.kafka.cluster import KafkaCluster
from millstream.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from millstream.errors import ExternalError

_log = logging.getLogger("millstream.kafka")

_MAX_SILENCE = 60_000  # milliseconds without a response before the job fails
_MAX_MISSING = 10_000  # milliseconds that a restarted broker has to recover the end of its log
_REQUEST_SECONDS = 5.0
_SAMPLE, _SAMPLE_SECONDS, _SAMPLE_EVERY = 20, 1.0, 60_000


class RecordsVanished(ExternalError):
    """A partition ends before an offset that was read."""

    hint = "was the topic deleted and created again, or its log truncated? start a new job, with or without a savepoint"

    def __init__(self, split: str, position: int, end: int) -> None:
        super().__init__(f"{split} was read up to offset {position}, but now ends at {end}")


@dataclass(frozen=True)
class Subscription:
    """Topics, a topic pattern or partitions; their starting and stopping offsets; the discovery interval."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[KafkaTopicPartition, ...] = ()
    starting: KafkaOffsetsInitializer = KafkaOffsetsInitializer.earliest()  # noqa: RUF009
    stopping: KafkaOffsetsInitializer | None = None
    discovery: int | None = 300_000
    commits: bool = True


def find_partitions(cluster: KafkaCluster, subscription: Subscription) -> list[KafkaTopicPartition]:
    """Return the existing partitions of a subscription; raise if a named one does not exist."""
    topics = subscription.topics or tuple({partition.topic for partition in subscription.partitions})
    existing = cluster.partitions(topics, subscription.pattern)
    if not subscription.partitions:
        return existing
    selected = [partition for partition in existing if partition in subscription.partitions]
    cluster.require(subscription.partitions, selected)
    return selected


@dataclass(slots=True)
class _Position:
    """The planned offset of a partition; `is_planned` once a range has named it."""

    at: int
    stop: int | None
    is_planned: bool = False


class KafkaEnumerator(SplitEnumerator):
    """Plans ranges; keeps the offset of each partition."""

    def __init__(self, cluster: KafkaCluster, subscription: Subscription, state: dict[str, Any] | None) -> None:
        self._cluster = cluster
        self._subscription = subscription
        positions = state or {}
        self._open = {
            split: _Position(at, stop, is_planned=True) for split, (at, stop) in positions.get("open", {}).items()
        }
        self._done: dict[str, int] = dict(positions.get("done", {}))
        self._first = state is None  # the first discovery of a job uses the starting offsets
        self._discovered_at: int | None = None
        self._ends: dict[str, int] = {}
        self._silent_since: int | None = None
        self._widths: dict[str, tuple[int, float]] = {}
        self._arrivals: Arrivals | None = None

    # ------------------------------------------------------------------------------------------------- planning

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan an equal share of the budget for each partition with records, then more for those that have more."""
        try:
            self._discover(budget.now)
            self._refresh(budget)
        except ExternalError as problem:
            self._wait(problem, budget.now)
            return []
        self._silent_since = None
        ready = {split: self._available_end(split) for split in self._open if split not in budget.held}
        shares = _shares({split: end - self._open[split].at for split, end in ready.items()}, self._limit(budget))
        ranges = []
        for split, position in list(self._open.items()):
            end = position.at + shares.get(split, 0)
            if end > position.at or not position.is_planned:
                part = SplitRange(split, [position.at, position.stop], end, end - position.at)
                ranges.append(part)
                self.skip(part)
        if not ranges and self._arrivals is not None:
            self._arrivals.watch({KafkaTopicPartition.of_split(split): self._open[split].at for split in ready})
        return ranges

    def notify_arrivals(self, notify: Callable[[], None]) -> None:
        """Watch the partitions while there is nothing to plan."""
        self._arrivals = self._cluster.create_arrivals(notify)

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan less of each partition; partitions that `planned` discovered begin at its offsets."""
        return self.plan_from([replace(part, end=part.start[0], records=0) for part in planned], budget)

    def _discover(self, now: int) -> None:
        """Discover partitions: when the job starts, then at the discovery interval."""
        interval = self._subscription.discovery
        is_due = interval is not None and self._discovered_at is not None and now - self._discovered_at >= interval
        if self._discovered_at is not None and not is_due:
            return
        known_splits = self._open.keys() | self._done.keys()
        new_partitions = [
            partition
            for partition in find_partitions(self._cluster, self._subscription)
            if partition.split not in known_splits
        ]
        if new_partitions:
            self._begin(new_partitions)
        self._first, self._discovered_at = False, now

    def _begin(self, new_partitions: list[KafkaTopicPartition]) -> None:
        """Set the starting offsets of new partitions; partitions that are discovered later begin with their first
        record."""
        subscription = self._subscription
        explicit_offsets = dict(subscription.starting.given)
        earliest = KafkaOffsetsInitializer.earliest()
        with_starting_offsets = [
            partition for partition in new_partitions if self._first or partition in explicit_offsets
        ]
        starting_offsets = self._cluster.resolve(subscription.starting, with_starting_offsets)
        starting_offsets.update(
            self._cluster.resolve(
                earliest, [partition for partition in new_partitions if partition not in starting_offsets]
            )
        )
        stops = {} if subscription.stopping is None else self._cluster.resolve(subscription.stopping, new_partitions)
        for partition in new_partitions:
            self._open[partition.split] = _Position(starting_offsets[partition], stops.get(partition))
        _log.info(
            "reading %s",
            ", ".join(f"{partition.split} from {starting_offsets[partition]}" for partition in new_partitions),
        )

    def _refresh(self, budget: Budget) -> None:
        """Request the end offsets of partitions, unless the known ones leave enough to read."""
        unread = sum(max(self._available_end(split) - position.at, 0) for split, position in self._open.items())
        if unread >= budget.records or not self._open:
            return
        partitions = [KafkaTopicPartition.of_split(split) for split in self._open]
        for partition, end in self._cluster.latest(partitions, _REQUEST_SECONDS).items():
            position = self._open[partition.split]
            if end < position.at:
                raise RecordsVanished(partition.split, position.at, end)
            self._ends[partition.split] = end

    def _available_end(self, split: str) -> int:
        position = self._open[split]
        end = self._ends.get(split, position.at)
        return end if position.stop is None else min(end, position.stop)

    def _wait(self, problem: ExternalError, now: int) -> None:
        """Tolerate unreachable brokers for a while, then fail."""
        if self._silent_since is None:
            self._silent_since = now
            _log.warning("the brokers cannot be read at the moment: %s", problem)
        limit = _MAX_MISSING if isinstance(problem, RecordsVanished) else _MAX_SILENCE
        if self._discovered_at is None or now - self._silent_since >= limit:
            raise problem

    def _limit(self, budget: Budget) -> int:
        """Return how many records fit the budget, by their estimated size."""
        widest = max((self._width(split, budget.now) for split in self._open), default=1.0)
        return max(min(budget.records, int(budget.bytes / max(widest, 1.0))), 1)

    def _width(self, split: str, now: int) -> float:
        """Return the estimated size of a record of the partition's topic."""
        partition = KafkaTopicPartition.of_split(split)
        estimate = self._widths.get(partition.topic)
        end = self._ends.get(split, 0)
        start = max(self._open[split].at, end - _SAMPLE)
        if (estimate is None or now - estimate[0] >= _SAMPLE_EVERY) and start < end:
            sizes = self._cluster.sample(partition, start, end - start, _SAMPLE_SECONDS)
            estimate = self._widths[partition.topic] = (now, sum(sizes) / len(sizes) if sizes else 1000.0)
        return estimate[1] if estimate is not None else 1.0

    # ------------------------------------------------------------------------------------------------ positions

    def skip(self, split_range: SplitRange) -> None:
        """Continue after a range; its partition is registered if it is unknown."""
        stop = split_range.start[1]
        position = self._open.setdefault(split_range.split, _Position(split_range.end, stop, is_planned=True))
        position.at, position.is_planned = split_range.end, True
        self._first = False
        if stop is not None and split_range.end >= stop:
            del self._open[split_range.split]
            self._done[split_range.split] = split_range.end

    def snapshot(self) -> dict[str, Any]:
        """Return the offset and the end of each partition."""
        return {
            "open": {split: [position.at, position.stop] for split, position in self._open.items()},
            "done": dict(self._done),
        }

    def finished(self) -> bool:
        """Whether all partitions of a bounded source were planned to their end."""
        return self._subscription.stopping is not None and self._discovered_at is not None and not self._open

    def splits(self) -> list[str]:
        """Return the partitions that are not at their end."""
        return sorted(self._open)

    def acknowledge(self) -> None:
        """Commit the offsets to the consumer group, for monitoring; a job is restored from its checkpoints."""
        if not self._subscription.commits:
            return
        offsets = {**self._done, **{split: position.at for split, position in self._open.items()}}
        try:
            self._cluster.commit({KafkaTopicPartition.of_split(split): offset for split, offset in offsets.items()})
        except ExternalError as problem:
            _log.warning("offsets could not be committed to the consumer group: %s", problem)

    def lag(self) -> int:
        """Return the number of records between the planned offsets and the last known ends."""
        return sum(max(self._available_end(split) - position.at, 0) for split, position in self._open.items())

    def close(self) -> None:
        """Close the connections."""
        if self._arrivals is not None:
            self._arrivals.close()
        self._cluster.close()


def _shares(unread: dict[str, int], limit: int) -> dict[str, int]:
    """Distribute `limit` records to the splits: equal shares, and what some splits do not need goes to others."""
    shares: dict[str, int] = {}
    remaining = limit
    by_need = sorted((count, split) for split, count in unread.items() if count > 0)
    for index, (count, split) in enumerate(by_need):
        shares[split] = min(count, max(remaining // (len(by_need) - index), 1 if remaining > 0 else 0))
        remaining -= shares[split]
    return shares

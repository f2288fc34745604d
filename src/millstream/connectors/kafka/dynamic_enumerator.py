"""The enumerator of a dynamic Kafka source: one enumerator for each cluster.

Promises: every offset of every topic is planned once. The offset of a topic that is removed from a stream, or whose
cluster is inactive, is kept, and reading continues there when it returns. Topics that are added begin with their first
record.
Does not know: how the offsets of a cluster are planned.

A split is `<cluster>/<topic>-<partition>`; ranges are those of `enumerator`."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.connectors.kafka.enumerator import KafkaEnumerator, Subscription
from millstream.connectors.kafka.metadata_service import ClusterMetadata, KafkaMetadataService
from millstream.connectors.kafka.offsets import KafkaOffsetsInitializer
from millstream.errors import ExternalError

_log = logging.getLogger("millstream.kafka")


@dataclass(frozen=True)
class Streams:
    """Which streams are read, the metadata service, the discovery interval in milliseconds, and the tolerated
    failures."""

    service: KafkaMetadataService
    ids: frozenset[str] = frozenset()
    pattern: str | None = None
    discovery: int | None = None
    failures: int = 1

    def clusters(self) -> dict[str, ClusterMetadata]:
        """Return the topics to read in each active cluster, of all streams together."""
        if self.pattern is None:
            streams = list(self.service.describe_streams(self.ids).values())
        else:
            compiled_pattern = re.compile(self.pattern)
            streams = [
                stream_found
                for stream_found in self.service.get_all_streams()
                if compiled_pattern.fullmatch(stream_found.stream_id)
            ]
        merged: dict[str, ClusterMetadata] = {}
        for stream in streams:
            for name, part in stream.cluster_metadata_map.items():
                topics = part.topics | merged[name].topics if name in merged else part.topics
                merged[name] = ClusterMetadata(frozenset(topics), part.properties)
        return {name: part for name, part in merged.items() if self.service.is_cluster_active(name)}


Positions = dict[str, dict[str, Any]]  # of open splits, and of splits at their end
Open = Callable[[ClusterMetadata, Subscription, Any], KafkaEnumerator]


class DynamicKafkaEnumerator(SplitEnumerator):
    """Enumerators of clusters, created and replaced as streams change. `open_cluster` creates one."""

    def __init__(
        self, streams: Streams, subscription: Subscription, open_cluster: Open, state: dict[str, Any] | None
    ) -> None:
        self._streams, self._subscription, self._open_cluster = streams, subscription, open_cluster
        self._inactive: dict[str, Positions] = dict(
            state or {}
        )  # positions of splits that are not read now, by cluster
        self._has_started = state is not None
        self._open: dict[str, tuple[ClusterMetadata, KafkaEnumerator]] = {}
        self._discovered_at: int | None = None
        self._failed = 0
        self._notify_arrivals: Callable[[], None] | None = None

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan an equal share of the budget for every cluster."""
        self._discover(budget.now)
        ranges = []
        for name, (_, enumerator) in self._open.items():
            held = frozenset(split.removeprefix(f"{name}/") for split in budget.held if split.startswith(f"{name}/"))
            cluster_count = len(self._open)
            share_of_budget = Budget(
                max(budget.records // cluster_count, 1), max(budget.bytes // cluster_count, 1), budget.now, held
            )
            ranges += [replace(part, split=f"{name}/{part.split}") for part in enumerator.plan(share_of_budget)]
        return ranges

    def notify_arrivals(self, notify: Callable[[], None]) -> None:
        """Watch the partitions of all clusters, also of those that are joined later."""
        self._notify_arrivals = notify
        for _, enumerator in self._open.values():
            enumerator.notify_arrivals(notify)

    def _discover(self, now: int) -> None:
        interval = self._streams.discovery
        if self._discovered_at is not None and (interval is None or now - self._discovered_at < interval):
            return
        try:
            clusters = self._streams.clusters()
        except ExternalError as problem:
            self._failed += 1
            if self._discovered_at is None or self._failed > self._streams.failures:
                raise
            _log.warning("the metadata service failed: %s", problem)
            self._discovered_at = now
            return
        self._failed = 0
        for name in list(self._open):
            if clusters.get(name) != self._open[name][0]:
                self._stop_reading(name)
        for name, part in clusters.items():
            if name not in self._open:
                self._start_reading(name, part)
        self._discovered_at, self._has_started = now, True

    def _stop_reading(self, name: str) -> None:
        """Stop reading a cluster whose topics changed, and keep its positions."""
        enumerator = self._open.pop(name)[1]
        self._inactive[name] = _merge_positions(self._inactive.get(name), enumerator.snapshot())
        enumerator.close()

    def _start_reading(self, name: str, part: ClusterMetadata) -> None:
        """Start reading a cluster. Topics that are added while the job runs begin with their first record."""
        positions = self._inactive.pop(name, None)
        subscription = replace(self._subscription, topics=tuple(sorted(part.topics)))
        if self._has_started and positions is None:
            subscription = replace(subscription, starting=KafkaOffsetsInitializer.earliest())
        positions_of_topics = (
            None if positions is None else _select_positions(positions, lambda split: _topic(split) in part.topics)
        )
        enumerator = self._open_cluster(part, subscription, positions_of_topics)
        if self._notify_arrivals is not None:
            enumerator.notify_arrivals(self._notify_arrivals)
        self._open[name] = (part, enumerator)
        if positions is not None:
            self._inactive[name] = _select_positions(positions, lambda split: _topic(split) not in part.topics)
        _log.info("reading topics %s of cluster %s", ", ".join(sorted(part.topics)), name)

    def skip(self, split_range: SplitRange) -> None:
        """Continue after a range of one cluster."""
        name, _, split = split_range.split.partition("/")
        if name in self._open:
            self._open[name][1].skip(replace(split_range, split=split))
            return
        positions = self._inactive[name] = _merge_positions(self._inactive.get(name), {"open": {}, "done": {}})
        stop = split_range.start[1]
        positions["open"].pop(split, None)
        if stop is not None and split_range.end >= stop:
            positions["done"][split] = split_range.end
        else:
            positions["open"][split] = [split_range.end, stop]

    def snapshot(self) -> dict[str, Any]:
        """Return the positions of each cluster, including those that are not read now."""
        active = {name: enumerator.snapshot() for name, (_, enumerator) in self._open.items()}
        return {
            name: _merge_positions(self._inactive.get(name), active.get(name)) for name in {**self._inactive, **active}
        }

    def finished(self) -> bool:
        """Whether all partitions of a bounded source were planned to their end."""
        bounded = self._subscription.stopping is not None and self._discovered_at is not None
        return bounded and all(enumerator.finished() for _, enumerator in self._open.values())

    def splits(self) -> list[str]:
        """Return all partitions that are read and not at their end."""
        return sorted(
            f"{name}/{split}" for name, (_, enumerator) in self._open.items() for split in enumerator.splits()
        )

    def acknowledge(self) -> None:
        """Commit the offsets to the consumer groups."""
        for _, enumerator in self._open.values():
            enumerator.acknowledge()

    def lag(self) -> int:
        """Return the number of unread records in the active clusters."""
        return sum(enumerator.lag() for _, enumerator in self._open.values())

    def close(self) -> None:
        """Close the connections."""
        for _, enumerator in self._open.values():
            enumerator.close()
        self._streams.service.close()


def _topic(split: str) -> str:
    return split.rpartition("-")[0]


def _merge_positions(first: Positions | None, second: Positions | None) -> Positions:
    """Merge two sets of positions."""
    return {group: {**(first or {}).get(group, {}), **(second or {}).get(group, {})} for group in ("open", "done")}


def _select_positions(positions: Positions, is_selected: Callable[[str], bool]) -> Positions:
    """Return the positions of the selected splits."""
    return {
        group: {split: position for split, position in positions_of_group.items() if is_selected(split)}
        for group, positions_of_group in positions.items()
    }

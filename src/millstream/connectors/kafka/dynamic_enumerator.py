"""The enumerator of a dynamic Kafka source: one enumerator for each cluster.

Promises: every offset of every topic is planned once. The offset of a topic that is removed from a stream, or whose
cluster is inactive, is kept, and reading continues there when it returns. Topics that are added begin with their first
record.
Does not know: how a cluster's offsets are planned.

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
    """Which streams are read, and who knows where they are; how often (milliseconds) and how patiently to ask."""

    service: KafkaMetadataService
    ids: frozenset[str] = frozenset()
    pattern: str | None = None
    discovery: int | None = None
    failures: int = 1

    def clusters(self) -> dict[str, ClusterMetadata]:
        """What is to be read in each active cluster, of all streams together."""
        if self.pattern is None:
            found = list(self.service.describe_streams(self.ids).values())
        else:
            wanted = re.compile(self.pattern)
            found = [each for each in self.service.get_all_streams() if wanted.fullmatch(each.stream_id)]
        merged: dict[str, ClusterMetadata] = {}
        for stream in found:
            for name, part in stream.cluster_metadata_map.items():
                topics = part.topics | merged[name].topics if name in merged else part.topics
                merged[name] = ClusterMetadata(frozenset(topics), part.properties)
        return {name: part for name, part in merged.items() if self.service.is_cluster_active(name)}


Positions = dict[str, dict[str, Any]]  # of splits that are open, and of those at their end
Open = Callable[[ClusterMetadata, Subscription, Any], KafkaEnumerator]


class DynamicKafkaEnumerator(SplitEnumerator):
    """Enumerators of clusters, made and replaced as streams move. `opened` makes one."""

    def __init__(
        self, streams: Streams, subscription: Subscription, opened: Open, state: dict[str, Any] | None
    ) -> None:
        self._streams, self._subscription, self._opened = streams, subscription, opened
        self._waiting: dict[str, Positions] = dict(state or {})  # of splits that are not read now, by cluster
        self._known = state is not None
        self._open: dict[str, tuple[ClusterMetadata, KafkaEnumerator]] = {}
        self._looked_at: int | None = None
        self._failed = 0

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan an equal share of the budget for every cluster."""
        self._look(budget.now)
        ranges = []
        for name, (_, enumerator) in self._open.items():
            held = frozenset(split.removeprefix(f"{name}/") for split in budget.held if split.startswith(f"{name}/"))
            share = len(self._open)
            mine = Budget(max(budget.records // share, 1), max(budget.bytes // share, 1), budget.now, held)
            ranges += [replace(part, split=f"{name}/{part.split}") for part in enumerator.plan(mine)]
        return ranges

    def _look(self, now: int) -> None:
        interval = self._streams.discovery
        if self._looked_at is not None and (interval is None or now - self._looked_at < interval):
            return
        try:
            found = self._streams.clusters()
        except ExternalError as problem:
            self._failed += 1
            if self._looked_at is None or self._failed > self._streams.failures:
                raise
            _log.warning("where streams are is not known for now: %s", problem)
            self._looked_at = now
            return
        self._failed = 0
        for name in list(self._open):
            if found.get(name) != self._open[name][0]:
                self._leave(name)
        for name, part in found.items():
            if name not in self._open:
                self._join(name, part)
        self._looked_at, self._known = now, True

    def _leave(self, name: str) -> None:
        """The part of a cluster has changed or is gone: keep its positions."""
        enumerator = self._open.pop(name)[1]
        self._waiting[name] = _both(self._waiting.get(name), enumerator.snapshot())
        enumerator.close()

    def _join(self, name: str, part: ClusterMetadata) -> None:
        """Read a cluster. What the job has not seen when it started begins with its first record."""
        positions = self._waiting.pop(name, None)
        wanted = replace(self._subscription, topics=tuple(sorted(part.topics)))
        if self._known and positions is None:
            wanted = replace(wanted, starting=KafkaOffsetsInitializer.earliest())
        mine = None if positions is None else _some(positions, lambda split: _topic(split) in part.topics)
        self._open[name] = (part, self._opened(part, wanted, mine))
        if positions is not None:
            self._waiting[name] = _some(positions, lambda split: _topic(split) not in part.topics)
        _log.info("reading topics %s of cluster %s", ", ".join(sorted(part.topics)), name)

    def skip(self, done: SplitRange) -> None:
        """Continue after a range of one cluster."""
        name, _, split = done.split.partition("/")
        if name in self._open:
            self._open[name][1].skip(replace(done, split=split))
            return
        positions = self._waiting[name] = _both(self._waiting.get(name), {"open": {}, "done": {}})
        stop = done.start[1]
        positions["open"].pop(split, None)
        if stop is not None and done.end >= stop:
            positions["done"][split] = done.end
        else:
            positions["open"][split] = [done.end, stop]

    def snapshot(self) -> dict[str, Any]:
        """The positions of each cluster, those that are not read now included."""
        read = {name: enumerator.snapshot() for name, (_, enumerator) in self._open.items()}
        return {name: _both(self._waiting.get(name), read.get(name)) for name in {**self._waiting, **read}}

    def finished(self) -> bool:
        """Whether all partitions of a bounded source were planned to their end."""
        bounded = self._subscription.stopping is not None and self._looked_at is not None
        return bounded and all(enumerator.finished() for _, enumerator in self._open.values())

    def splits(self) -> list[str]:
        """All partitions that are read and not at their end."""
        return sorted(f"{name}/{split}" for name, (_, each) in self._open.items() for split in each.splits())

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


def _both(one: Positions | None, other: Positions | None) -> Positions:
    """The positions of two."""
    return {kind: {**(one or {}).get(kind, {}), **(other or {}).get(kind, {})} for kind in ("open", "done")}


def _some(positions: Positions, wanted: Callable[[str], bool]) -> Positions:
    """The positions of some splits."""
    return {kind: {split: at for split, at in each.items() if wanted(split)} for kind, each in positions.items()}

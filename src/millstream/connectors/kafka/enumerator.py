"""The enumerator of a Kafka source: discovers partitions, plans ranges of offsets.

Promises: every offset from where a partition begins to where it ends is planned once. Where a partition begins (and
ends) is in the first range that names it, empty if need be, so the logged plan holds it before anything was read.
Does not know: records; how they are read.

A range is `SplitRange("topic-3", [start, stop or None], end)`: offsets, of which `end` and `stop` are not included."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.connectors.kafka.cluster import KafkaCluster
from millstream.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from millstream.errors import ExternalError

_log = logging.getLogger("millstream.kafka")

_PATIENCE = 60_000  # milliseconds without an answer before the job is told
_DOUBT = 10_000  # milliseconds that a broker just restarted has to find the end of its log again
_ASK_SECONDS = 5.0
_SAMPLE, _SAMPLE_SECONDS, _SAMPLE_EVERY = 20, 1.0, 60_000


class RecordsVanished(ExternalError):
    """A partition ends before an offset that was read."""

    hint = "was the topic deleted and created again, or its log truncated? start a new job, from a savepoint or afresh"

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


def found(cluster: KafkaCluster, wanted: Subscription) -> list[KafkaTopicPartition]:
    """The partitions that are there to be read; one that was named and is not there is an error."""
    topics = wanted.topics or tuple({each.topic for each in wanted.partitions})
    there = cluster.partitions(topics, wanted.pattern)
    if not wanted.partitions:
        return there
    chosen = [each for each in there if each in wanted.partitions]
    cluster.require(wanted.partitions, chosen)
    return chosen


@dataclass(slots=True)
class _Position:
    """How far a partition is planned; `told` once a range has named it."""

    at: int
    stop: int | None
    told: bool = False


class KafkaEnumerator(SplitEnumerator):
    """Plans ranges; keeps the offset of each partition."""

    def __init__(self, cluster: KafkaCluster, subscription: Subscription, state: dict[str, Any] | None) -> None:
        self._cluster = cluster
        self._subscription = subscription
        known = state or {}
        self._open = {split: _Position(at, stop, told=True) for split, (at, stop) in known.get("open", {}).items()}
        self._done: dict[str, int] = dict(known.get("done", {}))
        self._first = state is None  # a job's first look takes the starting offsets
        self._looked_at: int | None = None
        self._ends: dict[str, int] = {}
        self._silent_since: int | None = None
        self._widths: dict[str, tuple[int, float]] = {}

    # ------------------------------------------------------------------------------------------------- planning

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan an equal share of the budget for each partition with records, then more for those that have more."""
        try:
            self._look(budget.now)
            self._refresh(budget)
        except ExternalError as problem:
            self._wait(problem, budget.now)
            return []
        self._silent_since = None
        ready = {split: self._until(split) for split in self._open if split not in budget.held}
        shares = _shares({split: end - self._open[split].at for split, end in ready.items()}, self._limit(budget))
        ranges = []
        for split, position in list(self._open.items()):
            end = position.at + shares.get(split, 0)
            if end > position.at or not position.told:
                part = SplitRange(split, [position.at, position.stop], end, end - position.at)
                ranges.append(part)
                self.skip(part)
        return ranges

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan less of each partition; partitions that `planned` discovered begin at its offsets."""
        return self.plan_from([replace(part, end=part.start[0], records=0) for part in planned], budget)

    def _look(self, now: int) -> None:
        """Discover partitions: when the job starts, then at the discovery interval."""
        interval = self._subscription.discovery
        again = interval is not None and self._looked_at is not None and now - self._looked_at >= interval
        if self._looked_at is not None and not again:
            return
        known = self._open.keys() | self._done.keys()
        fresh = [each for each in found(self._cluster, self._subscription) if each.split not in known]
        if fresh:
            self._begin(fresh)
        self._first, self._looked_at = False, now

    def _begin(self, fresh: list[KafkaTopicPartition]) -> None:
        """Set the starting offsets of new partitions; partitions that are discovered later begin with their first
        record."""
        wanted = self._subscription
        given = dict(wanted.starting.given)
        later = KafkaOffsetsInitializer.earliest()
        first = [each for each in fresh if self._first or each in given]
        begins = self._cluster.resolve(wanted.starting, first)
        begins.update(self._cluster.resolve(later, [each for each in fresh if each not in begins]))
        stops = {} if wanted.stopping is None else self._cluster.resolve(wanted.stopping, fresh)
        for each in fresh:
            self._open[each.split] = _Position(begins[each], stops.get(each))
        _log.info("reading %s", ", ".join(f"{each.split} from {begins[each]}" for each in fresh))

    def _refresh(self, budget: Budget) -> None:
        """Ask for the ends of partitions, unless there is enough to read up to those that are known."""
        waiting = sum(max(self._until(split) - position.at, 0) for split, position in self._open.items())
        if waiting >= budget.records or not self._open:
            return
        asked = [KafkaTopicPartition.of_split(split) for split in self._open]
        for each, end in self._cluster.latest(asked, _ASK_SECONDS).items():
            position = self._open[each.split]
            if end < position.at:
                raise RecordsVanished(each.split, position.at, end)
            self._ends[each.split] = end

    def _until(self, split: str) -> int:
        position = self._open[split]
        end = self._ends.get(split, position.at)
        return end if position.stop is None else min(end, position.stop)

    def _wait(self, problem: ExternalError, now: int) -> None:
        """Tolerate unreachable brokers for a while, then fail."""
        if self._silent_since is None:
            self._silent_since = now
            _log.warning("nothing can be read for now: %s", problem)
        patience = _DOUBT if isinstance(problem, RecordsVanished) else _PATIENCE
        if self._looked_at is None or now - self._silent_since >= patience:
            raise problem

    def _limit(self, budget: Budget) -> int:
        """Return how many records fit the budget, by their estimated size."""
        widest = max((self._width(split, budget.now) for split in self._open), default=1.0)
        return max(min(budget.records, int(budget.bytes / max(widest, 1.0))), 1)

    def _width(self, split: str, now: int) -> float:
        """Return the estimated size of a record of the partition's topic."""
        each = KafkaTopicPartition.of_split(split)
        known = self._widths.get(each.topic)
        end = self._ends.get(split, 0)
        start = max(self._open[split].at, end - _SAMPLE)
        if (known is None or now - known[0] >= _SAMPLE_EVERY) and start < end:
            sizes = self._cluster.sample(each, start, end - start, _SAMPLE_SECONDS)
            known = self._widths[each.topic] = (now, sum(sizes) / len(sizes) if sizes else 1000.0)
        return known[1] if known is not None else 1.0

    # ------------------------------------------------------------------------------------------------ positions

    def skip(self, done: SplitRange) -> None:
        """Continue after a range; its partition becomes known by it if need be."""
        stop = done.start[1]
        position = self._open.setdefault(done.split, _Position(done.end, stop, told=True))
        position.at, position.told = done.end, True
        self._first = False
        if stop is not None and done.end >= stop:
            del self._open[done.split]
            self._done[done.split] = done.end

    def snapshot(self) -> dict[str, Any]:
        """Return the offset and the end of each partition."""
        return {
            "open": {split: [position.at, position.stop] for split, position in self._open.items()},
            "done": dict(self._done),
        }

    def finished(self) -> bool:
        """Whether all partitions of a bounded source were planned to their end."""
        return self._subscription.stopping is not None and self._looked_at is not None and not self._open

    def splits(self) -> list[str]:
        """Return the partitions that are not at their end."""
        return sorted(self._open)

    def acknowledge(self) -> None:
        """Commit the offsets to the consumer group, for monitoring; a job is restored from its checkpoints."""
        if not self._subscription.commits:
            return
        offsets = {**self._done, **{split: position.at for split, position in self._open.items()}}
        try:
            self._cluster.commit({KafkaTopicPartition.of_split(split): at for split, at in offsets.items()})
        except ExternalError as problem:
            _log.warning("the group was not told how far the job is: %s", problem)

    def lag(self) -> int:
        """Return the number of records between the planned offsets and the last known ends."""
        return sum(max(self._until(split) - position.at, 0) for split, position in self._open.items())

    def close(self) -> None:
        """Close the connections."""
        self._cluster.close()


def _shares(waiting: dict[str, int], limit: int) -> dict[str, int]:
    """Distribute `limit` records to the splits: equal shares, and what some splits do not need goes to others."""
    shares: dict[str, int] = {}
    left = limit
    by_need = sorted((count, split) for split, count in waiting.items() if count > 0)
    for index, (count, split) in enumerate(by_need):
        shares[split] = min(count, max(left // (len(by_need) - index), 1 if left > 0 else 0))
        left -= shares[split]
    return shares

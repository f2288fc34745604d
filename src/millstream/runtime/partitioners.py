"""Which subtask a record goes to: forward, hash, rebalance, rescale, shuffle, broadcast, global, custom.

Promises: the target depends on the plan, the record and the records before it in its channel; it is deterministic.
Does not know: blocks, Spark, what is at the other end.

A partitioner is a description; `Router` applies it for one edge of one subtask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.errors import UserError
from millstream.functions import ReduceFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.state.key_groups import KeyGrouper, routing_table


@dataclass(frozen=True)
class Partitioner:
    """How an edge distributes records to the downstream subtasks."""

    @property
    def name(self) -> str:
        """Flink's name of the partitioner, for plans."""
        return type(self).__name__.upper()


class Forward(Partitioner):
    """Subtask i to subtask i."""


@dataclass(frozen=True)
class ElidedHash(Forward):
    """An elided hash exchange: records are already partitioned by `key`, so subtask i sends to subtask i.

    If the two vertices have different key groups, it is replaced by a hash partitioner."""

    key: KeySelection

    @property
    def name(self) -> str:
        """Flink's name of the partitioner."""
        return "FORWARD"


class Rebalance(Partitioner):
    """Round-robin over all subtasks."""


class Rescale(Partitioner):
    """Round-robin over a subset of the downstream subtasks, as Flink's rescale."""


class Shuffle(Partitioner):
    """Random with a seed, evenly over all subtasks."""


class Broadcast(Partitioner):
    """Every record to every subtask."""


class Global(Partitioner):
    """Everything to the first subtask."""


@dataclass(frozen=True)
class Hash(Partitioner):
    """By key group. In a batch job, `reduce` combines the records of a key before they are sent."""

    key: KeySelection
    max_parallelism: int = 128
    reduce: ReduceFunction | None = None


@dataclass(frozen=True)
class Custom(Partitioner):
    """By the user's own function of the key."""

    key: KeySelection
    choose: Callable[[Any, int], int]


class PartitionOutOfRange(UserError):
    """A custom partitioner named a subtask that does not exist."""

    def __init__(self, operator: str, target: Any, targets: int) -> None:
        super().__init__(
            f"the partitioner after '{operator}' chose subtask {target!r} of {targets}",
            hint=f"return an int from 0 to {targets - 1}",
        )


class Router:
    """One edge of one subtask: batches in, (target, batch) out."""

    def __init__(self, partitioner: Partitioner, operator: str, subtask: int, upstream: int, targets: int) -> None:
        self._partitioner = partitioner
        self._operator = operator
        self._subtask = subtask
        self._upstream = upstream
        self._targets = targets
        self._seed = 0
        self.position = 0
        if isinstance(partitioner, Hash):
            self._grouper = KeyGrouper(partitioner.max_parallelism)
            self._route = routing_table(targets, partitioner.max_parallelism)

    def seed(self, epoch: int, edge: int) -> None:
        """Set the seed of a shuffle, which follows from the epoch."""
        self._seed = hash((epoch, edge, self._subtask)) & 0x7FFFFFFF

    def reachable(self) -> range | list[int]:
        """Return the targets that get watermarks of this subtask."""
        match self._partitioner:
            case Forward():
                return [self._subtask]
            case Rescale():
                return self._rescale_targets()
        return range(self._targets)

    def _rescale_targets(self) -> list[int]:
        if self._targets >= self._upstream:
            first = self._subtask * self._targets // self._upstream
            return list(range(first, (self._subtask + 1) * self._targets // self._upstream))
        return [self._subtask * self._targets // self._upstream]

    def split(self, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """Partition a batch by target; the order within each part is kept."""
        batch = batch.without_keys()  # they belong to an earlier exchange
        match self._partitioner:
            case Forward():
                yield self._subtask, batch
            case Global():
                yield 0, batch
            case Broadcast():
                yield from ((target, batch) for target in range(self._targets))
            case Hash() as by_key:
                batch, groups = by_key.key.compute_keys(batch, self._grouper, self._operator)
                yield from self._partition(batch, self._route[groups])
            case Rebalance() | Rescale():
                targets = np.array(self.reachable())
                target_indexes = (np.arange(len(batch)) + self.position) % len(targets)
                self.position = int((self.position + len(batch)) % len(targets))
                yield from self._partition(batch, targets[target_indexes])
            case Shuffle():
                random_targets = np.random.default_rng([self._seed, self.position]).integers(
                    0, self._targets, len(batch)
                )
                self.position += len(batch)
                yield from self._partition(batch, random_targets)
            case Custom() as custom:
                keys = custom.key.keys(batch, self._operator)
                count = self._targets
                choices = rowwise.map_rows(self._operator, lambda key: custom.choose(key, count), keys)
                wrong = [target for target in choices if not isinstance(target, int) or not 0 <= target < count]
                if wrong:
                    raise PartitionOutOfRange(self._operator, wrong[0], count)
                yield from self._partition(batch, np.array(choices, dtype=np.int64))

    def _partition(self, batch: Batch, targets: np.ndarray) -> Iterator[tuple[int, Batch]]:
        if not len(batch):
            return
        first = int(targets[0])
        if self._targets == 1 or (targets == first).all():
            yield first, batch
            return
        for target in range(self._targets):
            row_indexes = np.flatnonzero(targets == target)
            if len(row_indexes):
                yield target, batch.take(row_indexes)

"""Which subtask a record goes to: forward, hash, rebalance, rescale, shuffle, broadcast, global, custom.

Promises: the target depends on the plan, the record and the records before it in its channel; never on chance.
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
    """How an edge cuts its records over the downstream subtasks."""

    @property
    def name(self) -> str:
        """Flink's word for it, for plans and pictures."""
        return type(self).__name__.upper()


class Forward(Partitioner):
    """Subtask i to subtask i."""


@dataclass(frozen=True)
class Kept(Forward):
    """Subtask i to subtask i, because records are by the hash of `key` where they belong.

    It holds while those who send and receive have the same key groups; else it is a hash partitioner."""

    key: KeySelection

    @property
    def name(self) -> str:
        """As a forward one: that is what it does."""
        return "FORWARD"


class Rebalance(Partitioner):
    """Round-robin over all subtasks."""


class Rescale(Partitioner):
    """Round-robin over the near subtasks only."""


class Shuffle(Partitioner):
    """Evenly by a seeded choice."""


class Broadcast(Partitioner):
    """Every record to every subtask."""


class Global(Partitioner):
    """Everything to the first subtask."""


@dataclass(frozen=True)
class Hash(Partitioner):
    """By key group. In a batch job, `fold` may make one record of several of a key before they are sent."""

    key: KeySelection
    max_parallelism: int = 128
    fold: ReduceFunction | None = None


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
        """A new epoch: what a shuffle draws follows from the plan."""
        self._seed = hash((epoch, edge, self._subtask)) & 0x7FFFFFFF

    def reachable(self) -> range | list[int]:
        """The targets that get watermarks of this subtask."""
        match self._partitioner:
            case Forward():
                return [self._subtask]
            case Rescale():
                return self._near()
        return range(self._targets)

    def _near(self) -> list[int]:
        if self._targets >= self._upstream:
            first = self._subtask * self._targets // self._upstream
            return list(range(first, (self._subtask + 1) * self._targets // self._upstream))
        return [self._subtask * self._targets // self._upstream]

    def split(self, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """The batch cut by target; the order inside each part is kept."""
        batch = batch.without_keys()  # those of an earlier exchange
        match self._partitioner:
            case Forward():
                yield self._subtask, batch
            case Global():
                yield 0, batch
            case Broadcast():
                yield from ((target, batch) for target in range(self._targets))
            case Hash() as by_key:
                batch, groups = by_key.key.keyed(batch, self._grouper, self._operator)
                yield from self._cut(batch, self._route[groups])
            case Rebalance() | Rescale():
                near = np.array(self.reachable())
                turns = (np.arange(len(batch)) + self.position) % len(near)
                self.position = int((self.position + len(batch)) % len(near))
                yield from self._cut(batch, near[turns])
            case Shuffle():
                chosen = np.random.default_rng([self._seed, self.position]).integers(0, self._targets, len(batch))
                self.position += len(batch)
                yield from self._cut(batch, chosen)
            case Custom() as custom:
                keys = custom.key.keys(batch, self._operator)
                count = self._targets
                named = rowwise.map_rows(self._operator, lambda key: custom.choose(key, count), keys)
                wrong = [target for target in named if not isinstance(target, int) or not 0 <= target < count]
                if wrong:
                    raise PartitionOutOfRange(self._operator, wrong[0], count)
                yield from self._cut(batch, np.array(named, dtype=np.int64))

    def _cut(self, batch: Batch, targets: np.ndarray) -> Iterator[tuple[int, Batch]]:
        if not len(batch):
            return
        first = int(targets[0])
        if self._targets == 1 or (targets == first).all():
            yield first, batch
            return
        for target in range(self._targets):
            chosen = np.flatnonzero(targets == target)
            if len(chosen):
                yield target, batch.take(chosen)

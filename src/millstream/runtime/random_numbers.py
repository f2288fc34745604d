"""Random numbers inside an epoch.

Promises: numbers follow from the job, the epoch and its processing time, the operator, the subtask and the number of
generators before in the same epoch. A replay of an epoch gets the same numbers; two epochs, operators, subtasks, blocks
or calls get different ones.
Does not know: what the numbers are for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from millstream.runtime.memory import MemoryPart, OperatorMemory


@dataclass
class SequencePositions(MemoryPart):
    """How many numbers of each named sequence are used up."""

    part_name: ClassVar[str] = "random_sequences"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"draws": "positions"}

    positions: dict[str, int] = field(default_factory=dict)


class RandomNumbers:
    """The random numbers of one operator's subtask. `memory` is the operator's: it keeps the positions of sequences
    that continue from epoch to epoch."""

    def __init__(self) -> None:
        self._seed, self._generators = 0, 0
        self._memory = OperatorMemory()

    def begin_epoch(self, job: str, epoch: int, now: int, operator: str, subtask: int, memory: OperatorMemory) -> None:
        """Start the numbers of an epoch."""
        identity = repr((job, epoch, now, operator, subtask)).encode()
        self._seed = int.from_bytes(hashlib.blake2b(identity, digest_size=16).digest())
        self._generators, self._memory = 0, memory

    def generator(self) -> np.random.Generator:
        """Return a generator whose numbers no other call of any operator gets."""
        self._generators += 1
        return np.random.default_rng([self._seed, self._generators])

    def position(self, sequence: str) -> int:
        """Return how many numbers of a named sequence are used up."""
        return self._memory.part(SequencePositions).positions.get(sequence, 0)

    def advance(self, sequence: str, position: int) -> None:
        """Remember how many numbers of a named sequence are used up."""
        self._memory.part(SequencePositions).positions[sequence] = position

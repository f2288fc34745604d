"""The inline engine with faults: a failing engine, lost workers, repeated and mixed attempts.

Promises: the same faults and seed give the same run; an epoch takes ten milliseconds of the virtual clock.
Does not know: storage; its faults are those of `FaultyFileSystem`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from millstream.engine import epoch_level
from millstream.engine.contract import Deployment, EpochRequest, EpochResult
from millstream.errors import ExternalError
from millstream.runtime.operators.source import SourceWork
from millstream.testing.clock import ManualClock
from millstream.testing.inline_engine import InlineEngine
from millstream_chaos.simulation.setup import EPOCH_MILLIS, Faults

LONGEST_MILLIS = 7_200_000  # on the virtual clock; a longer run counts as stuck


class Stuck(BaseException):
    """A run does not end. It is not an `Exception`, so that no error handler catches it."""


class EngineLost(ExternalError):
    """A simulated failure of the engine."""


class EngineOutOfMemory(ExternalError):
    """A simulated lack of memory: the epoch has too many records."""

    out_of_memory = True


class SimulatedEngine(InlineEngine):
    """The inline engine with faults."""

    def __init__(self, clock: ManualClock, faults: Faults) -> None:
        super().__init__()
        self._clock, self._faults = clock, faults
        self._chance = np.random.default_rng([faults.seed, 7])
        self._epochs = itertools.count()
        self._latest = 0, 0  # the generation and epoch of the last run
        self._is_retry = False

    def run_epoch(self, request: EpochRequest) -> EpochResult:
        """Run an epoch, or fail."""
        self._clock.sleep(EPOCH_MILLIS / 1000)
        if self._clock.millis > LONGEST_MILLIS:
            raise Stuck
        number = next(self._epochs)
        if number in self._faults.engine:
            msg = f"the engine failed in epoch {request.epoch}"
            raise EngineLost(msg)
        parts = (part for parts in request.work.values() for part in parts if isinstance(part, SourceWork))
        ranges = (data for part in parts for data in part.ranges)
        records = sum(data[3] or 0 for data in ranges)  # None if a source does not know the number of its records
        if self._faults.most_records is not None and records > self._faults.most_records:
            msg = f"{records} records of epoch {request.epoch} do not fit into memory"
            raise EngineOutOfMemory(msg)
        before, self._latest = self._latest, (request.generation, request.epoch)
        self._is_retry = self._latest == before and not self._is_retry
        return super().run_epoch(request)

    def _attempt(
        self, deployment: Deployment, level: int, index: int, inbox: list[bytes], request: epoch_level.LevelRequest
    ) -> Iterable[tuple[int, bytes]]:
        faults = self._faults
        if self._chance.random() < faults.forget:
            epoch_level.dispose_tasks()
            if self._chance.random() < faults.flip:
                other = "lmdb" if deployment.backend == "hashmap" else "hashmap"
                assert self._deployment is not None
                deployment = self._deployment = replace(self._deployment, backend=other)
        elif self._deployment is not None:
            deployment = self._deployment
        if faults.attempts == "twice":
            list(super()._attempt(deployment, level, index, inbox, request))
        elif faults.attempts == "broken":
            first = iter(super()._attempt(deployment, level, index, inbox, request))
            for _ in range(int(self._chance.integers(0, 3))):
                next(first, None)
            first.close()  # type: ignore[attr-defined]
        blocks = list(super()._attempt(deployment, level, index, inbox, request))
        mixes = (faults.attempts == "mixed" and not self._is_retry) or self._chance.random() < faults.mixes
        if not mixes or level + 1 == deployment.plan.levels:  # the driver reads only one attempt of the last level
            return blocks
        second = list(super()._attempt(deployment, level, index, inbox, request))
        reads_first = self._chance.random(deployment.plan.slots) < 0.5
        return [block for block in blocks if reads_first[block[0]]] + [
            block for block in second if not reads_first[block[0]]
        ]

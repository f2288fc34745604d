"""An epoch as one Spark job: a stage per level, blocks through partitionBy.

Promises: Spark sees pairs (target slot, bytes) and nothing else; the last stage gives the reports to the driver.
Does not know: what is inside a block or a program."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark import RDD, Broadcast, TaskContext

from millstream.engine import slot
from millstream.engine.contract import Deployment

_deployments: dict[str, Deployment] = {}


class Level:
    """What Spark calls for each partition of a stage."""

    def __init__(self, program: Broadcast[bytes], deployment: str, level: int, request: slot.LevelRequest) -> None:
        self._program = program
        self._deployment = deployment
        self._level = level
        self._request = pickle.dumps(request, 5)

    def __call__(self, index: int, pairs: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """Run one slot."""
        deployment = _deployments.get(self._deployment)
        if deployment is None:
            _deployments.clear()
            deployment = _deployments[self._deployment] = pickle.loads(self._program.value)
        task = TaskContext.get()
        attempt = f"{task.stageId()}.{task.taskAttemptId()}" if task is not None else "0"
        inbox = (pair[1] for pair in pairs) if self._level else ()
        yield from slot.run_level(deployment, self._level, index, inbox, pickle.loads(self._request), attempt)


def same(key: int) -> int:
    """The partition of a block is the slot it is for."""
    return key


def epoch_job(seeds: RDD[Any], program: Broadcast[bytes], deployment: Deployment, requests: list[Any]) -> list[bytes]:
    """Run the job; gives the blocks that are for the driver."""
    slots = deployment.plan.slots
    blocks: Any = seeds.mapPartitionsWithIndex(Level(program, deployment.id, 0, requests[0]))
    for level, request in enumerate(requests[1:], start=1):
        blocks = blocks.partitionBy(slots, same).mapPartitionsWithIndex(Level(program, deployment.id, level, request))
    return [data for _, data in blocks.collect()]

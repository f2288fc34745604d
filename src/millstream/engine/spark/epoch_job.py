"""An epoch as one Spark job: a stage per level, blocks through partitionBy.

Promises: Spark sees pairs (target slot, bytes) and nothing else; the last stage gives the reports to the driver.
Does not know: what is inside a block or a program."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark import Broadcast, TaskContext

from millstream.engine import slot
from millstream.engine.contract import Deployment
from millstream.engine.dependencies import activate
from millstream.engine.spark.placement import Laid, same

_deployments: dict[str, Deployment] = {}


class Level:
    """What Spark calls for each partition of a stage."""

    def __init__(
        self,
        program: Broadcast[bytes],
        bundle: Broadcast[bytes] | None,
        deployment: Deployment,
        level: int,
        request: slot.LevelRequest,
    ) -> None:
        self._program = program
        self._bundle = bundle
        self._dependencies = deployment.dependencies
        self._deployment = deployment.id
        self._level = level
        self._request = pickle.dumps(request, 5)

    def __call__(self, index: int, pairs: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """Run one slot."""
        activate(self._dependencies, self._bundle_bytes)  # before the program, which may be made of its modules
        deployment = _deployments.get(self._deployment)
        if deployment is None:
            _deployments.clear()
            deployment = _deployments[self._deployment] = pickle.loads(self._program.value)
        task = TaskContext.get()
        attempt = f"{task.stageId()}.{task.taskAttemptId()}" if task is not None else "0"
        # Anchors are empty blocks. All input is read, even if there is nothing else: Spark ends a worker that does not.
        blocks = (pair[1] for pair in pairs if isinstance(pair, tuple) and pair[1])
        inbox = blocks if self._level else list(blocks)
        yield from slot.run_level(deployment, self._level, index, inbox, pickle.loads(self._request), attempt)

    def _bundle_bytes(self) -> bytes:
        assert self._bundle is not None
        return self._bundle.value


def epoch_job(
    anchor: Laid,
    program: Broadcast[bytes],
    bundle: Broadcast[bytes] | None,
    deployment: Deployment,
    requests: list[Any],
) -> list[bytes]:
    """Run the job; gives the blocks that are for the driver."""
    slots = deployment.plan.slots
    blocks: Any = anchor.seeds.mapPartitionsWithIndex(Level(program, bundle, deployment, 0, requests[0]))
    for level, request in enumerate(requests[1:], start=1):
        stage = Level(program, bundle, deployment, level, request)
        blocks = anchor.held(blocks.partitionBy(slots, same)).mapPartitionsWithIndex(stage)
    return [data for _, data in blocks.collect()]

"""An epoch as one Spark job: a stage per level, blocks through partitionBy.

Promises: Spark sees pairs (target slot, bytes) and nothing else; the last stage gives the reports to the driver.
Does not know: what is inside a block or a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark import Broadcast

from millstream.engine import slot
from millstream.engine.contract import Deployment
from millstream.engine.spark.placement import Laid, same
from millstream.engine.spark.stage import Stage, attempt_name


class Level(Stage):
    """What Spark calls for each partition of a stage."""

    def __call__(self, index: int, pairs: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """Run one slot."""
        deployment = self._deployed()
        # Anchors are empty blocks. All input is read, even if there is nothing else: Spark ends a worker that does not.
        blocks = (pair[1] for pair in pairs if isinstance(pair, tuple) and pair[1])
        inbox = blocks if self._level else list(blocks)
        yield from slot.run_level(deployment, self._level, index, inbox, self._request(), attempt_name())


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

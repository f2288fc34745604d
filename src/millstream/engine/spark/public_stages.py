"""Builds the stages of an epoch from PySpark's public API only.

Promises: the same blocks reach the same slots as with `StageBuilder`. It is used where the classes of the JVM that
`StageBuilder` needs are missing or different, for example in a vendor's build of Spark, and on request.
Does not know: what is inside a block or a program.

Slots are not pinned, because the public API has no separate workers for them: a slot that runs in another worker than
before reads its state again. Blocks are pickled on their way through a shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark import SparkContext
from pyspark.resource import ResourceProfile

from millstream.engine.spark.stage_frames import RunSlot, unpack_targets

BlockRdd = Any  # an RDD of bytes, of PySpark


class PublicStageBuilder:
    """Builds the stages of one deployment's epochs; `profile` is what Spark reserves for each task."""

    can_pin = False

    def __init__(self, context: SparkContext, slots: int, profile: ResourceProfile | None = None) -> None:
        self.slots = slots
        self._profile = profile
        self._context = context

    def seeds(self) -> BlockRdd:
        """Return an empty block for each slot, the input of the first stage."""
        return self._context.parallelize([b""] * self.slots, self.slots)

    def add_stage(self, before: BlockRdd, run: RunSlot) -> BlockRdd:
        """Return a stage that runs slots in any worker."""
        stage = before.mapPartitionsWithIndex(run)
        return stage if self._profile is None else stage.withResources(self._profile)

    def exchange(self, blocks: BlockRdd) -> BlockRdd:
        """Send each block of a stage to its target slot, by a shuffle."""
        return blocks.mapPartitions(unpack_targets).partitionBy(self.slots, _to_partition).mapPartitions(_take_blocks)

    def collect(self, blocks: BlockRdd) -> list[bytes]:
        """Run the job and return the blocks of its last stage."""
        collected: list[bytes] = blocks.collect()
        return collected


def _to_partition(target: int) -> int:
    return target


def _take_blocks(pairs: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    return (block for _, block in pairs)

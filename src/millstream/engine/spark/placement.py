"""Keeps slots near their state: where a slot ran before, it is run again, while that executor and worker live.

Promises: on one machine nothing is added to an epoch's job; on a cluster every stage prefers, for each slot, the
executor that holds the slot's anchor; an anchor whose executor died is laid again where the slot runs next; when
executors come, anchors are dealt out anew. Slots are pinned to workers of their own once all can run at once.
Does not know: what runs in a slot. Correctness never depends on where that is.

An anchor is one cached partition with an empty block. A stage is united with the anchors: Spark unites RDDs that have
the same partitioner partition by partition, and prefers the host where most of a partition's parents are."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from pyspark import SparkContext

from millstream.engine.spark.stages import Blocks, Stages

_FIRST, _NEXT, _LOOK = 10.0, 1.0, 0.02  # seconds: for the first executor, for one more, between two looks


@dataclass(frozen=True)
class Laid:
    """The seeds of an epoch's first stage; `anchored` when they are anchors that hold the later ones too."""

    seeds: Blocks
    anchored: bool
    pinned: bool

    @classmethod
    def anywhere(cls, stages: Stages) -> Laid:
        """Seeds of a stage whose slots run wherever there is room."""
        return cls(stages.seeds(), anchored=False, pinned=False)

    def held(self, blocks: Blocks) -> Blocks:
        """The blocks of a stage, each slot's near its anchor."""
        return blocks.union(self.seeds) if self.anchored else blocks


class Anchor:
    """The anchors of a job with so many slots, on one Spark context."""

    def __init__(self, context: SparkContext, slots: int) -> None:
        self.slots = slots
        self._context = context
        self._alone = is_one_process(str(context.master))
        self._executors = 0
        self._laid: Laid | None = None

    def laid(self, stages: Stages) -> Laid:
        """The anchors, laid anew if executors have come that hold none."""
        if self._laid is None and not self._alone and not _on_demand(self._context):
            self._await_slots()
        executors = 1 if self._alone else _executors(self._context)
        before, self._executors = self._executors, executors
        if self._laid is not None and executors == before:
            return self._laid
        # once pinned, slots stay so when an executor dies: those of the others keep their workers
        pinned = (self._laid is not None and self._laid.pinned) or running_slots(self._context) >= self.slots
        if self._laid is not None and (executors < before or self._holders() >= min(executors, self.slots)):
            self._laid = replace(self._laid, pinned=pinned)
            return self._laid
        self.close()
        seeds = stages.seeds()
        if not self._alone:
            seeds = stages.exchanged(seeds).cache()
        self._laid = Laid(seeds, not self._alone, pinned)
        return self._laid

    def _await_slots(self) -> None:
        """Executors of a new context come one after another: wait while they do, and for the first a little longer.

        Slots that began in whatever workers there are would begin again, with their state, in workers of their own."""
        latest, known = time.monotonic(), 0
        while (running := running_slots(self._context)) < self.slots:
            latest, known = (time.monotonic(), running) if running != known else (latest, known)
            if time.monotonic() - latest > (_NEXT if known else _FIRST):
                return
            time.sleep(_LOOK)

    def _holders(self) -> int:
        """How many executors hold an anchor."""
        assert self._laid is not None
        scala, anchors = self._context._jsc.sc(), self._laid.seeds
        return len({scala.getPreferredLocs(anchors, slot).mkString(",") for slot in range(self.slots)} - {""})

    def close(self) -> None:
        """Let go of the cached partitions."""
        if self._laid is not None and self._laid.anchored:
            self._laid.seeds.unpersist(False)
        self._laid = None


def running_slots(context: SparkContext) -> int:
    """The tasks that can run at once now."""
    scala = context._jsc.sc()
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def _on_demand(context: SparkContext) -> bool:
    """Whether executors come only when there are tasks for them."""
    return str(context.getConf().get("spark.dynamicAllocation.enabled", "false")).lower() == "true"


def _executors(context: SparkContext) -> int:
    """How many executors live; the driver is among those that hold blocks."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


def is_one_process(master: str) -> bool:
    """Whether driver and executor are the same process."""
    return master == "local" or master.startswith("local[")

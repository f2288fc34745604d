"""Places slots near their state: a slot runs again where it ran before, while that executor and worker live.

Promises: on one machine nothing is added to an epoch's job. On a cluster every stage prefers, for each slot, the
executor that holds the slot's anchor. An anchor whose executor died is cached again where the slot runs next; when
executors are added, all anchors are placed again. Slots are pinned to workers of their own once all can run at once.
Does not know: what runs in a slot. Correctness does not depend on the placement.

An anchor is one cached partition with an empty block. A stage is the union of its blocks and the anchors: Spark unites
RDDs with the same partitioner partition by partition, and prefers the host where most parents of a partition are."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark import SparkContext

from millstream.engine.choice import is_one_process
from millstream.engine.spark.settings import CORES
from millstream.engine.spark.stage_builder import BlockRdd
from millstream.engine.spark.stages import Stages

_FIRST_EXECUTOR, _NEXT_EXECUTOR = 10.0, 1.0  # seconds to wait for
_POLL_INTERVAL = 0.02  # seconds


@dataclass(frozen=True)
class SlotPlacement:
    """Where slots run. `seeds` are the input of the first stage; if `anchored`, they are the anchors. If `pinned`, each
    slot has workers of its own."""

    seeds: BlockRdd
    anchored: bool
    pinned: bool

    @classmethod
    def anywhere(cls, stages: Stages) -> SlotPlacement:
        """Return a placement in which slots run on any executor."""
        return cls(stages.seeds(), anchored=False, pinned=False)

    def near_anchors(self, blocks: BlockRdd) -> BlockRdd:
        """Return the blocks of a stage, so that each slot prefers the executor of its anchor."""
        return blocks.union(self.seeds) if self.anchored else blocks


class SlotAnchors:
    """The anchors of the slots of a job, on one Spark context."""

    def __init__(self, context: SparkContext, slots: int) -> None:
        self.slots = slots
        self._context = context
        self._one_process = is_one_process(str(context.master))
        self._list_executors = 0
        self._placement: SlotPlacement | None = None

    def place(self, stages: Stages) -> SlotPlacement:
        """Return the placement; anchors are placed again if there are executors without one."""
        if not stages.can_pin:
            self._placement = self._placement or SlotPlacement.anywhere(stages)
            return self._placement
        if self._placement is None and not self._one_process and not _on_demand(self._context):
            await_slots(self._context, self.slots)
        executors = 1 if self._one_process else _list_executors(self._context)
        before, self._list_executors = self._list_executors, executors
        if self._placement is not None and executors == before:
            return self._placement
        # once pinned, slots stay pinned when an executor dies: the slots of the others keep their workers
        pinned = (self._placement is not None and self._placement.pinned) or count_running_slots(
            self._context
        ) >= self.slots
        if self._placement is not None and (executors < before or self._count_holders() >= min(executors, self.slots)):
            self._placement = replace(self._placement, pinned=pinned)
            return self._placement
        self.close()
        seeds = stages.seeds()
        if not self._one_process:
            seeds = stages.exchange(seeds).cache()
        self._placement = SlotPlacement(seeds, not self._one_process, pinned)
        return self._placement

    def _count_holders(self) -> int:
        """Return how many executors hold an anchor."""
        assert self._placement is not None
        scala, anchors = self._context._jsc.sc(), self._placement.seeds
        return len({scala.getPreferredLocs(anchors, slot).mkString(",") for slot in range(self.slots)} - {""})

    def close(self) -> None:
        """Remove the cached partitions."""
        if self._placement is not None and self._placement.anchored:
            self._placement.seeds.unpersist(False)
        self._placement = None


def await_slots(context: SparkContext, slots: int) -> None:
    """Wait for executors: those of a new context start one after another, and the first takes longer.

    Slots that start in shared workers would start again, with their state, in workers of their own."""
    latest, known_count = time.monotonic(), 0
    while (running := count_running_slots(context)) < slots:
        latest, known_count = (time.monotonic(), running) if running != known_count else (latest, known_count)
        if time.monotonic() - latest > (_NEXT_EXECUTOR if known_count else _FIRST_EXECUTOR):
            return
        time.sleep(_POLL_INTERVAL)


def count_running_slots(context: SparkContext) -> int:
    """Return how many tasks can run at once now without sharing a core. A local Spark may have more task slots than
    that, see `count_task_slots`."""
    cores = context.getConf().get(CORES)
    return count_task_slots(context) if cores is None else int(cores)


def count_task_slots(context: SparkContext) -> int:
    """Return how many tasks can run at once now; if Spark does not report it, how many the cluster manager promised."""
    try:
        scala = context._jsc.sc()
        return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))
    except (AttributeError, TypeError, Py4JError):
        return context.defaultParallelism


def _on_demand(context: SparkContext) -> bool:
    """Whether executors start only when there are tasks for them."""
    return str(context.getConf().get("spark.dynamicAllocation.enabled", "false")).lower() == "true"


def _list_executors(context: SparkContext) -> int:
    """Return how many executors live; Spark lists the driver, too."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1

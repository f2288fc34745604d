"""Slot tasks as one Spark job with one stage.

Promises: the tasks of a slot run in the slot's own worker where slots are pinned, one after the other; those of
different slots run in parallel. The files and packages of the job are in place before a task is unpacked.
Does not know: what tasks do."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence

import cloudpickle

from millstream.connector.slot_task import SlotTask
from millstream.engine.dependencies import at_work
from millstream.engine.slot_tasks import run_task
from millstream.engine.spark.placement import Laid
from millstream.engine.spark.stage import Parts, activate_parts
from millstream.engine.spark.stages import Stages


class SlotTasks:
    """What Spark calls for a slot: for `own`, or for that of the partition."""

    def __init__(self, parts: Parts, by_slot: dict[int, bytes], own: int | None = None) -> None:
        self._parts = parts
        self._by_slot = by_slot if own is None else {own: by_slot[own]} if own in by_slot else {}
        self._own = own

    def __call__(self, index: int, frames: Iterable[bytes]) -> Iterator[bytes]:
        """Run the slot's tasks."""
        list(frames)  # all input is read: Spark ends a worker that leaves some
        packed = self._by_slot.get(index if self._own is None else self._own)
        if packed is None:
            return
        activate_parts(self._parts)
        with at_work(self._parts.dependencies):
            tasks: list[tuple[int, SlotTask]] = pickle.loads(packed)
            for number, task in tasks:
                yield run_task(number, task)


def tasks_job(stages: Stages, laid: Laid, parts: Parts, tasks: Sequence[SlotTask]) -> list[bytes]:
    """Run the job; gives the outcomes of the tasks."""
    numbered: dict[int, list[tuple[int, SlotTask]]] = {}
    for number, task in enumerate(tasks):
        numbered.setdefault(task.slot % stages.slots, []).append((number, task))
    by_slot = {slot: cloudpickle.dumps(mine, 5) for slot, mine in numbered.items()}
    if laid.pinned:
        blocks = stages.pinned(laid.seeds, [SlotTasks(parts, by_slot, own) for own in range(stages.slots)])
    else:
        blocks = stages.staged(laid.seeds, SlotTasks(parts, by_slot))
    return stages.collected(blocks)

"""Slot tasks as one Spark job with one stage; how they are packed is the same on resident slots.

Promises: the tasks of a slot run in the slot's own worker where slots are pinned, one after the other; those of
different slots run in parallel. The files and packages of the job are in place before a task is unpickled.
Does not know: what tasks do."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence

import cloudpickle

from millstream.connector.slot_task import SlotTask
from millstream.engine.dependencies import in_working_directory
from millstream.engine.slot_tasks import run_task
from millstream.engine.spark.level_command import DeployedProgram, activate_dependencies
from millstream.engine.spark.placement import SlotPlacement
from millstream.engine.spark.stage_builder import StageBuilder
from millstream.engine.spark.stages import Stages


class SlotTasksCommand:
    """Runs the tasks of one slot: `pinned_slot`, or the slot with the index of the partition."""

    def __init__(self, program: DeployedProgram, by_slot: dict[int, bytes], pinned_slot: int | None = None) -> None:
        self._program = program
        self._by_slot = (
            by_slot if pinned_slot is None else {pinned_slot: by_slot[pinned_slot]} if pinned_slot in by_slot else {}
        )
        self._pinned_slot = pinned_slot

    def __call__(self, index: int, frames: Iterable[bytes]) -> Iterator[bytes]:
        """Run the slot's tasks."""
        list(frames)  # all input is read: Spark ends a worker that leaves some
        packed = self._by_slot.get(index if self._pinned_slot is None else self._pinned_slot)
        if packed is not None:
            yield from run_packed_tasks(self._program, packed)


def pack_tasks(tasks: Sequence[SlotTask], slots: int) -> dict[int, bytes]:
    """Return the tasks of each slot that has some, with their indexes, as bytes."""
    numbered: dict[int, list[tuple[int, SlotTask]]] = {}
    for number, task in enumerate(tasks):
        numbered.setdefault(task.slot % slots, []).append((number, task))
    return {slot: cloudpickle.dumps(slot_tasks, 5) for slot, slot_tasks in numbered.items()}


def run_packed_tasks(program: DeployedProgram, packed: bytes) -> Iterator[bytes]:
    """Run the tasks of a slot in its worker; yield their outcomes."""
    activate_dependencies(program)
    with in_working_directory(program.dependencies):
        tasks: list[tuple[int, SlotTask]] = pickle.loads(packed)
        for number, task in tasks:
            yield run_task(number, task)


def run_tasks_job(
    stages: Stages, placement: SlotPlacement, program: DeployedProgram, tasks: Sequence[SlotTask]
) -> list[bytes]:
    """Run the job and return the outcomes of the tasks."""
    by_slot = pack_tasks(tasks, stages.slots)
    if placement.pinned:
        assert isinstance(stages, StageBuilder)
        blocks = stages.add_pinned_stage(
            placement.seeds, [SlotTasksCommand(program, by_slot, slot) for slot in range(stages.slots)]
        )
    else:
        blocks = stages.add_stage(placement.seeds, SlotTasksCommand(program, by_slot))
    return stages.collect(blocks)

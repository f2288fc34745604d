"""An epoch as one Spark job: a stage per level, blocks through Spark's shuffle.

Promises: Spark sees pairs (target slot, bytes) and nothing else; the last stage sends the reports to the driver.
Does not know: what is inside a block or a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from millstream.engine.epoch_level import LevelRequest, run_level
from millstream.engine.spark.level_command import DeployedProgram, LevelCommand, attempt_name
from millstream.engine.spark.placement import SlotPlacement
from millstream.engine.spark.stage_builder import StageBuilder
from millstream.engine.spark.stage_frames import pack_targets
from millstream.engine.spark.stages import Stages


class EpochLevelCommand(LevelCommand):
    """Runs one slot of a level: `pinned_slot`, or the slot with the index of the partition."""

    def __init__(
        self, program: DeployedProgram, level: int, request: LevelRequest, pinned_slot: int | None = None
    ) -> None:
        super().__init__(
            program, level, request if pinned_slot is None else {pinned_slot: request.get(pinned_slot, [])}
        )
        self._pinned_slot = pinned_slot

    def __call__(self, index: int, frames: Iterable[bytes]) -> Iterator[bytes]:
        """Run the slot."""
        deployment = self._load_deployment()
        # Anchors are empty blocks. All input is read, even if there is no other: Spark ends a worker that leaves input.
        inbox = filter(None, frames) if self._level else iter(list(frames)[:0])
        slot = index if self._pinned_slot is None else self._pinned_slot
        outgoing_blocks = run_level(deployment, self._level, slot, inbox, self._request(), attempt_name())
        return (
            pack_targets(outgoing_blocks)
            if self._level + 1 < deployment.plan.levels
            else (block for _, block in outgoing_blocks)
        )


def run_epoch_job(
    stages: Stages, placement: SlotPlacement, program: DeployedProgram, requests: list[LevelRequest]
) -> list[bytes]:
    """Run the job and return the blocks for the driver."""
    blocks = placement.seeds
    for level, request in enumerate(requests):
        if level:
            blocks = placement.near_anchors(stages.exchange(blocks))
        if placement.pinned:
            assert isinstance(stages, StageBuilder)
            blocks = stages.add_pinned_stage(
                blocks, [EpochLevelCommand(program, level, request, slot) for slot in range(stages.slots)]
            )
        else:
            blocks = stages.add_stage(blocks, EpochLevelCommand(program, level, request))
    return stages.collect(blocks)

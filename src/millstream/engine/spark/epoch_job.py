"""An epoch as one Spark job: a stage per level, blocks through Spark's shuffle.

Promises: Spark sees pairs (target slot, bytes) and nothing else; the last stage gives the reports to the driver.
Does not know: what is inside a block or a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from millstream.engine import slot
from millstream.engine.spark.placement import Laid
from millstream.engine.spark.stage import Parts, Stage, attempt_name
from millstream.engine.spark.stages import Stages, addressed


class Level(Stage):
    """What Spark calls for a slot of a stage: for `own`, or for that of the partition."""

    def __init__(self, parts: Parts, level: int, request: slot.LevelRequest, own: int | None = None) -> None:
        super().__init__(parts, level, request if own is None else {own: request.get(own, [])})
        self._own = own

    def __call__(self, index: int, frames: Iterable[bytes]) -> Iterator[bytes]:
        """Run the slot."""
        deployment = self._deployed()
        # Anchors are empty blocks. All input is read, even if there is nothing else: Spark ends a worker that does not.
        inbox = filter(None, frames) if self._level else iter(list(frames)[:0])
        own = index if self._own is None else self._own
        made = slot.run_level(deployment, self._level, own, inbox, self._request(), attempt_name())
        return addressed(made) if self._level + 1 < deployment.plan.levels else (block for _, block in made)


def epoch_job(stages: Stages, laid: Laid, parts: Parts, requests: list[slot.LevelRequest]) -> list[bytes]:
    """Run the job; gives the blocks that are for the driver."""
    blocks = laid.seeds
    for level, request in enumerate(requests):
        if level:
            blocks = laid.held(stages.exchanged(blocks))
        if laid.pinned:
            blocks = stages.pinned(blocks, [Level(parts, level, request, own) for own in range(stages.slots)])
        else:
            blocks = stages.staged(blocks, Level(parts, level, request))
    return stages.collected(blocks)

"""Jobs that die in the middle of a simulation, to be started again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.cluster.job_events import CheckpointDone, EpochDone, JobEvent
from millstream_chaos.storage.faulty_files import SimulatedCrash


def dies_after(checkpoints: int) -> Callable[[JobEvent, Any], None]:
    """Lets an epoch more than `checkpoints` checkpoints pass."""
    seen = [0]

    def listen(observation: JobEvent, _master: Any) -> None:
        if isinstance(observation, CheckpointDone):
            seen[0] += 1
        elif isinstance(observation, EpochDone) and seen[0] >= checkpoints:
            raise SimulatedCrash

    return listen

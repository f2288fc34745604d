"""Jobs that fail during a simulation and are started again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.cluster.job_events import CheckpointDone, EpochDone, JobEvent
from millstream_chaos.storage.faulty_files import SimulatedCrash


def fail_after(checkpoints: int) -> Callable[[JobEvent, Any], None]:
    """Return a listener that fails the job in the epoch after a number of checkpoints."""
    completed = [0]

    def listen(observation: JobEvent, _master: Any) -> None:
        if isinstance(observation, CheckpointDone):
            completed[0] += 1
        elif isinstance(observation, EpochDone) and completed[0] >= checkpoints:
            raise SimulatedCrash

    return listen

"""The environment of simulated processes, which outlives them: the disk, the clock, and the local stores of workers.

Promises: a world can be set back to an earlier disk and time, and can lose power.
Does not know: jobs, engines, real time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence

import numpy as np

from millstream.engine import epoch_level
from millstream.testing.clock import ManualClock
from millstream_chaos.outputs.simulated_sinks import SINKS
from millstream_chaos.storage.faulty_files import FaultyFileSystem
from millstream_chaos.storage.memory_files import MemoryFileSystem, Named
from millstream_chaos.storage.power import PowerLoss

ROOT = "/checkpoints"
OUTPUT = "/output"


class World:
    """What outlives a process. `faulty` is the file system with faults that the current process uses."""

    BEGIN = 1_000_000

    def __init__(self) -> None:
        self.disk = self.empty()
        self.files = Named.of(self.disk)
        self.faulty: FaultyFileSystem | None = None
        self.clock = ManualClock(self.BEGIN)
        self.sink = "visible"
        self.past: Sequence[
            MemoryFileSystem
        ] = ()  # the disk before each of the last operations of the previous process
        self.local = tempfile.mkdtemp(prefix="millstream-simulation-")

    @staticmethod
    def empty() -> MemoryFileSystem:
        """Return the disk of a new world."""
        disk = MemoryFileSystem()
        disk.make_dirs(ROOT)
        disk.make_dirs(OUTPUT)
        return disk

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        epoch_level.dispose_tasks()
        self.files.unregister()
        shutil.rmtree(self.local, ignore_errors=True)

    def rewind(self, disk: MemoryFileSystem, millis: float, past: Sequence[MemoryFileSystem] = ()) -> None:
        """Set the world back to a disk and a time, without workers."""
        epoch_level.dispose_tasks()
        shutil.rmtree(self.local, ignore_errors=True)
        self.disk, self.clock = disk, ManualClock(millis)
        self.past = past
        self.files.replace_target(disk)

    def lose_power(self, how: PowerLoss, seed: int) -> None:
        """Lose power: the disk keeps what was synced and what `how` says of the rest; workers lose their stores."""
        chance = np.random.default_rng([seed, 19])
        self.disk.lose_power(how, lambda count: int(chance.integers(count)))
        shutil.rmtree(self.local, ignore_errors=True)

    def visible(self) -> list[str]:
        """Return the visible rows of the output."""
        return SINKS[self.sink].visible(self.disk, OUTPUT)

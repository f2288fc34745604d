"""What a process that dies leaves behind, for every storage operation of one run.

Promises: `recorded` lives a life without faults once; `left` puts a world into the state that a crash at any of its
operations leaves, before it, after it or half-way, without living up to there again: a life without faults is a
function of the world, and a crash does nothing but end it.
Does not know: what comes after a crash."""

from __future__ import annotations

import os
import re
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from millstream.cluster.job_master import JobMaster
from millstream.cluster.observations import Observation, StatusChanged
from millstream.model.job_status import JobStatus
from millstream.testing.faults import Mode, Operation
from millstream.testing.memory_files import MemoryFileSystem
from millstream.testing.simulation import Setup, World, run


class Listener(Protocol):
    """What is told of a job, and asks things of it; a copy remembers what the original had been told."""

    def __call__(self, observation: Observation, master: JobMaster) -> None: ...  # noqa: D102


Told = TypeVar("Told", bound=Listener)


@dataclass(frozen=True)
class _Frame(Generic[Told]):
    """All that outlives the process, before an operation."""

    disk: MemoryFileSystem
    millis: float
    listener: Told
    finished: bool


@dataclass(frozen=True)
class Left(Generic[Told]):
    """What a crash leaves beside the world: the listener as it was, and whether the job had told its end."""

    listener: Told
    finished: bool


@dataclass(frozen=True)
class History(Generic[Told]):
    """One life without faults, operation by operation."""

    world: World
    operations: tuple[Operation, ...]
    frames: tuple[_Frame[Told], ...]  # one more than operations: the last is the end

    def left(self, number: int, mode: Mode) -> Left[Told]:
        """Put the world into the state after a crash at an operation."""
        before, after = self.frames[number], self.frames[number + 1].disk
        disk = (after if mode == "after" else before.disk).copy()
        if mode == "torn":
            _tear(disk, self.operations[number], after)
        self.world.rewind(disk, before.millis)
        return Left(copy(before.listener), before.finished)


def _tear(disk: MemoryFileSystem, operation: Operation, after: MemoryFileSystem) -> None:
    """Do half of an operation; those that are atomic are not done at all."""
    path = operation.path
    whole = after.files.get(path, b"")
    if operation.kind == "write_bytes":
        disk.files[path] = whole[: len(whole) // 2]
    elif operation.kind == "append_bytes":
        old = disk.files.get(path, b"")
        disk.files[path] = whole[: len(old) + (len(whole) - len(old)) // 2]
    elif operation.kind == "make_dirs":
        disk.make_dirs(os.path.dirname(path))


def recorded(setup: Setup, world: World, listener: Told) -> History[Told]:
    """Live a life without faults."""
    frames: list[_Frame[Told]] = []
    finished = False

    def listen(observation: Observation, master: JobMaster) -> None:
        nonlocal finished
        finished = finished or (isinstance(observation, StatusChanged) and observation.status is JobStatus.FINISHED)
        listener(observation, master)

    def note(_: int) -> None:
        frames.append(_Frame(world.disk.copy(), world.clock.millis, copy(listener), finished))

    life = run(setup, world, listen=listen, meanwhile=note)
    note(len(frames))
    return History(world, tuple(life.operations), tuple(frames))


_TEMPORARY = re.compile(r"-\d+-\d+-\d+\.tmp$")  # process, thread and attempt: nobody reads them back


def fingerprint(world: World) -> Any:
    """A value that is equal for worlds in which the same will happen."""
    files = sorted((_TEMPORARY.sub(".tmp", name), data) for name, data in world.disk.files.items())
    return tuple(files), frozenset(world.disk.directories), world.clock.millis

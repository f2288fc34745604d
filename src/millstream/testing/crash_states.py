"""What a process that dies leaves behind, for every storage operation of one run.

Promises: `recorded` lives a life without faults once; `left` puts a world into the state that a crash at any of its
operations leaves, before it, after it or half-way, or with a loss of power before it, without living up to there
again: a life without faults is a function of the world, and a crash does nothing but end it. `shape` tells which
operations do the same to the same kind of file; `damaged` names checkpoints that exist and are not whole.
Does not know: what comes after a crash."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from millstream.checkpoint.savepoint import open_snapshot
from millstream.checkpoint.storage import METADATA, CheckpointStorage
from millstream.cluster.job_events import CheckpointDone, JobEvent, StatusChanged
from millstream.cluster.job_master import JobMaster
from millstream.errors import MillstreamError
from millstream.job.job_status import JobStatus
from millstream.testing.faults import Mode, Operation
from millstream.testing.memory_files import MemoryFileSystem
from millstream.testing.power import POWER_LOSSES
from millstream.testing.simulation import Faults, Setup, World, run


class Listener(Protocol):
    """What is told of a job, and asks things of it; a copy remembers what the original had been told."""

    def __call__(self, observation: JobEvent, master: JobMaster) -> None: ...  # noqa: D102


Told = TypeVar("Told", bound=Listener)


@dataclass(frozen=True)
class _Frame(Generic[Told]):
    """All that outlives the process, before an operation."""

    disk: MemoryFileSystem
    millis: float
    listener: Told
    finished: bool
    secured: bool


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
    reads: tuple[Operation, ...]

    @property
    def secured(self) -> int:
        """How many operations it took until there was a checkpoint, its output was visible and older ones were gone."""
        return next((n for n, frame in enumerate(self.frames) if frame.secured), len(self.operations))

    def since(self, asked: Callable[[Told], bool]) -> int:
        """The first operation after the listener had come to be such a one."""
        return next(number for number, frame in enumerate(self.frames) if asked(frame.listener))

    def left(self, number: int, mode: Mode) -> Left[Told]:
        """Put the world into the state after a crash at an operation."""
        before, after = self.frames[number], self.frames[number + 1].disk
        disk = (after if mode == "after" else before.disk).copy()
        if mode == "torn":
            _tear(disk, self.operations[number], after)
        past = [frame.disk for frame in self.frames[max(0, number - _PAST) : number + 1]]
        self.world.rewind(disk, before.millis, past)
        if mode in POWER_LOSSES:
            self.world.lose_power(mode, number)
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


def recorded(setup: Setup, world: World, listener: Told, faults: Faults | None = None) -> History[Told]:
    """Live a life, without faults unless some are given: none that ends it."""
    frames: list[_Frame[Told]] = []
    finished = secured = False

    def listen(observation: JobEvent, master: JobMaster) -> None:
        nonlocal finished, secured
        finished = finished or (isinstance(observation, StatusChanged) and observation.status is JobStatus.FINISHED)
        secured = secured or isinstance(observation, CheckpointDone)
        listener(observation, master)

    def note(_: int) -> None:
        frames.append(_Frame(world.disk.copy(), world.clock.millis, copy(listener), finished, secured))

    life = run(setup, world, faults, listen=listen, meanwhile=note)
    note(len(frames))
    return History(world, tuple(life.operations), tuple(frames), tuple(life.reads))


_PAST = 30  # operations before a crash that a stale answer may go back to
_TEMPORARY = re.compile(r"\.[^./]+-\d+-\d+-\d+\.tmp$")  # host, process, thread, attempt: nobody reads them back
_STATE = re.compile(r"/operators/[^/]+/[^/]+")
_NUMBER = re.compile(r"[0-9a-f]{8,}|\d+")


def fingerprint(world: World) -> Any:
    """A value that is equal for worlds in which the same will happen."""
    files = sorted((_TEMPORARY.sub(".tmp", name), data) for name, data in world.disk.files.items())
    return tuple(files), frozenset(world.disk.directories), world.clock.millis


def damaged(disk: MemoryFileSystem, *, old: bool = True) -> list[str]:
    """Checkpoints and savepoints that were published, but name what is not there: no crash may leave one. Without
    `old`, those that a later checkpoint of the same job makes worthless do not count."""
    storage, broken = CheckpointStorage("/", fs=disk), {}
    intact: dict[str, int] = {}
    for path in sorted(path for path in disk.files if os.path.basename(path) == METADATA):
        job, _, name = os.path.dirname(path).rpartition("/")
        number = int(name.removeprefix("chk-")) if name.startswith("chk-") else None
        try:
            open_snapshot(path, storage).verify()
            intact[job] = max(intact.get(job, 0), number or 0)
        except MillstreamError as problem:
            broken[path] = job, number, problem
    return [
        f"{path}: {problem}"
        for path, (job, number, problem) in broken.items()
        if old or number is None or number > intact.get(job, 0)
    ]


def shape(operation: Operation) -> tuple[str, str]:
    """What is done, and to which kind of file: the path without numbers, hashes and names of operators and states."""
    path = _TEMPORARY.sub(".tmp", operation.target or operation.path)
    return operation.kind, _NUMBER.sub("N", _STATE.sub("/operators/*/*", path))

"""The states that a crash leaves behind, for every storage operation of one run.

Promises: `record_life` runs a life without faults once. `History.restore_crash` sets the world to the state that a
crash at any of its operations leaves: before it, after it, half-way, or with a loss of power before it. It does not run
the life again, because a life without faults is a function of the world, and a crash only ends it. `operation_shape`
groups operations that do the same to the same type of file; `find_damaged` finds incomplete checkpoints.
Does not know: what happens after a crash."""

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
from millstream_chaos.simulation import Faults, Setup, World, run
from millstream_chaos.storage.faulty_files import Mode, Operation
from millstream_chaos.storage.memory_files import MemoryFileSystem
from millstream_chaos.storage.power import POWER_LOSSES


class Listener(Protocol):
    """A listener of a job, which may also send requests to it; a copy has the state of the original."""

    def __call__(self, event: JobEvent, master: JobMaster) -> None: ...  # noqa: D102


ListenerT = TypeVar("ListenerT", bound=Listener)


@dataclass(frozen=True)
class _Frame(Generic[ListenerT]):
    """The state that outlives the process, before an operation."""

    disk: MemoryFileSystem
    millis: float
    listener: ListenerT
    finished: bool
    secured: bool


@dataclass(frozen=True)
class CrashState(Generic[ListenerT]):
    """What a crash leaves beside the world: the listener at that time, and whether the job had reported its end."""

    listener: ListenerT
    finished: bool


@dataclass(frozen=True)
class History(Generic[ListenerT]):
    """One life without faults, operation by operation."""

    world: World
    operations: tuple[Operation, ...]
    frames: tuple[_Frame[ListenerT], ...]  # one more than operations: the last is the end
    reads: tuple[Operation, ...]

    @property
    def secured(self) -> int:
        """The number of operations until a checkpoint was complete, its output visible and older ones deleted."""
        return next((n for n, frame in enumerate(self.frames) if frame.secured), len(self.operations))

    def find_first(self, condition: Callable[[ListenerT], bool]) -> int:
        """Return the first operation before which the listener meets a condition."""
        return next(number for number, frame in enumerate(self.frames) if condition(frame.listener))

    def restore_crash(self, number: int, mode: Mode) -> CrashState[ListenerT]:
        """Set the world to the state after a crash at an operation."""
        before, after = self.frames[number], self.frames[number + 1].disk
        disk = (after if mode == "after" else before.disk).copy()
        if mode == "torn":
            _tear(disk, self.operations[number], after)
        past = [frame.disk for frame in self.frames[max(0, number - _PAST) : number + 1]]
        self.world.rewind(disk, before.millis, past)
        if mode in POWER_LOSSES:
            self.world.lose_power(mode, number)
        return CrashState(copy(before.listener), before.finished)


def _tear(disk: MemoryFileSystem, operation: Operation, after: MemoryFileSystem) -> None:
    """Do half of an operation; an atomic operation is not done at all."""
    path = operation.path
    whole = after.files.get(path, b"")
    if operation.name == "write_bytes":
        disk.files[path] = whole[: len(whole) // 2]
    elif operation.name == "append_bytes":
        old = disk.files.get(path, b"")
        disk.files[path] = whole[: len(old) + (len(whole) - len(old)) // 2]
    elif operation.name == "make_dirs":
        disk.make_dirs(os.path.dirname(path))


def record_life(setup: Setup, world: World, listener: ListenerT, faults: Faults | None = None) -> History[ListenerT]:
    """Run and record one life; its faults, if there are any, must not end it."""
    frames: list[_Frame[ListenerT]] = []
    finished = secured = False

    def listen(event: JobEvent, master: JobMaster) -> None:
        nonlocal finished, secured
        finished = finished or (isinstance(event, StatusChanged) and event.status is JobStatus.FINISHED)
        secured = secured or isinstance(event, CheckpointDone)
        listener(event, master)

    def add_frame(_: int) -> None:
        frames.append(_Frame(world.disk.copy(), world.clock.millis, copy(listener), finished, secured))

    life = run(setup, world, faults, listen=listen, meanwhile=add_frame)
    add_frame(len(frames))
    return History(world, tuple(life.operations), tuple(frames), tuple(life.reads))


_PAST = 30  # how many operations a stale read may be behind
# names of temporary files, with host, process, thread and attempt; these files are never read
_TEMPORARY = re.compile(r"\.[^./]+-\d+-\d+-\d+\.tmp$")
_STATE = re.compile(r"/operators/[^/]+/[^/]+")
_NUMBER = re.compile(r"[0-9a-f]{8,}|\d+")


def fingerprint(world: World) -> Any:
    """Return a value that is equal for worlds in which a job behaves the same."""
    files = sorted((_TEMPORARY.sub(".tmp", name), data) for name, data in world.disk.files.items())
    return tuple(files), frozenset(world.disk.directories), world.clock.millis


def find_damaged(disk: MemoryFileSystem, *, old: bool = True) -> list[str]:
    """Find published checkpoints and savepoints that name missing or damaged files; no crash may leave one.

    Without `old`, checkpoints are left out if the same job has a later intact one."""
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


def operation_shape(operation: Operation) -> tuple[str, str]:
    """Return the operation and its path without numbers, hashes and names of operators and states."""
    path = _TEMPORARY.sub(".tmp", operation.target or operation.path)
    return operation.name, _NUMBER.sub("N", _STATE.sub("/operators/*/*", path))

"""Which checkpoint a job recovers from.

Promises: the newest one; storage that fails is tried again and is no damage; a file that cannot be seen, or not as a
whole, is read again before it counts as missing or damaged. A damaged checkpoint is passed over only if no output was
committed with it, or if going back is allowed: output that was committed after the older checkpoint would be made, and
shown, again. What a checkpoint needs is named when it is refused.
Does not know: plans, schedules, engines. State files are verified by the tasks that read them, which report damage."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from millstream import options
from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.savepoint import NoSuchCheckpoint, Snapshot, open_snapshot
from millstream.checkpoint.storage import CheckpointStorage
from millstream.checkpoint.storage_errors import VoidCheckpoint
from millstream.errors import ExternalError, MillstreamError
from millstream.files.errors import CorruptFile, MissingFile, StorageFailure
from millstream.state.snapshot import StateFileDamaged

T = TypeVar("T")

_log = logging.getLogger("millstream.checkpoints")


class CannotRecover(ExternalError):
    """There is no checkpoint that the job may go on from: trying again would not help."""


class AllCheckpointsDamaged(CannotRecover):
    """There are checkpoints, but nothing to go on from."""

    hint = "restore the files from a copy, or start a new job from a savepoint"

    def __init__(self, job: str, problems: Mapping[int, MillstreamError]) -> None:
        self.problems = dict(problems)
        told = "; ".join(f"chk-{number}: {problem.message}" for number, problem in problems.items())
        super().__init__(f"no checkpoint of job {job} is intact: {told}")


class SnapshotDamaged(CannotRecover):
    """The checkpoint or savepoint that the job was told to start from is damaged."""

    hint = "restore the file from a copy, or start from another checkpoint or savepoint"

    def __init__(self, path: str, problem: MillstreamError) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"the job cannot start from {path}: {problem.message}")


class OlderCheckpointRefused(CannotRecover):
    """The newest checkpoint is damaged, and output was committed after the one before it."""

    def __init__(self, job: str, older: CheckpointMetadata, passed: Mapping[int, Passed]) -> None:
        self.job, self.older, self.checkpoint = job, older.checkpoint, max(passed)
        self.problems = {number: each.problem for number, each in passed.items()}
        damage = "; ".join(f"checkpoint {number} is damaged: {each.problem.message}" for number, each in passed.items())
        committed = "; ".join(_committed(number, each.metadata, older) for number, each in passed.items())
        super().__init__(
            f"job {job} cannot recover from its newest checkpoint. {damage}. The newest intact one is "
            f"{older.checkpoint}, after epoch {older.epoch}, but going back to it may repeat output: {committed}",
            hint=f"restore the file from a copy; or set {options.RECOVERY_ALLOW_OLDER.key} to true to go on from "
            f"checkpoint {older.checkpoint}: the output that was committed after it may then appear twice",
        )


@dataclass(frozen=True)
class Passed:
    """A damaged checkpoint; its metadata if that can be read."""

    problem: MillstreamError
    metadata: CheckpointMetadata | None = None

    @property
    def committed_nothing(self) -> bool:
        """Whether no output became visible with it."""
        return self.metadata is not None and not any(self.metadata.committables.values())


def _committed(number: int, metadata: CheckpointMetadata | None, older: CheckpointMetadata) -> str:
    if metadata is None:
        return f"what was committed with checkpoint {number} is not known, because its metadata cannot be read"
    names = {operator.operator: operator.name for operator in metadata.operators}
    sinks = [f"'{names.get(sink, sink)}' ({len(staged)})" for sink, staged in metadata.committables.items() if staged]
    if not sinks:
        return f"nothing was committed with checkpoint {number}"
    epochs = f"epochs {older.epoch + 1} to {metadata.epoch}"
    return f"with checkpoint {number} output of {epochs} was committed to {', '.join(sinks)}"


class Damage:
    """The state files that tasks could not use."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage
        self._files: dict[str, StateFileDamaged] = {}

    def note(self, damaged: StateFileDamaged) -> bool:
        """Remember a file; False if it is missing for a worker only, which may not see the directory."""
        if damaged.missing and self._storage.has_file(damaged.file):
            return False
        self._files[damaged.file] = damaged
        return True

    def of(self, metadata: CheckpointMetadata) -> StateFileDamaged | None:
        """What is known to be wrong with a checkpoint."""
        return next((self._files[handle.file] for handle in metadata.handles if handle.file in self._files), None)


def find_newest(
    storage: CheckpointStorage,
    newest: int,
    damage: Damage,
    *,
    allow_older: bool,
    patience: Sequence[float],
) -> tuple[CheckpointMetadata | None, int]:
    """The checkpoint to recover from, and the greatest number that was seen. `newest` is the greatest number that is
    known to have existed; pauses of `patience` seconds are made while a file that should be there cannot be read."""
    numbers = _numbers(storage, newest, patience)
    passed: dict[int, Passed] = {}
    for number in reversed(numbers):
        try:
            metadata = CheckpointMetadata.from_bytes(_read(storage, number, patience))
        except VoidCheckpoint:
            continue
        except StorageFailure:
            raise
        except MillstreamError as problem:
            passed[number] = Passed(problem)
            continue
        damaged = damage.of(metadata)
        if damaged is None:
            return _go_back(storage.job, metadata, passed, allow_older=allow_older), max(numbers)
        passed[number] = Passed(damaged, metadata)
    if passed:
        raise AllCheckpointsDamaged(storage.job, {number: each.problem for number, each in passed.items()})
    return None, max(numbers, default=0)


def _numbers(storage: CheckpointStorage, newest: int, patience: Sequence[float]) -> list[int]:
    """The numbers that should be taken: from the oldest that is to the newest that was."""
    found = storage.list_checkpoints()
    for pause in patience:
        if max(found, default=0) >= newest:
            break
        time.sleep(pause)
        found = storage.list_checkpoints()
    return list(range(min(found, default=newest or 1), max([newest, *found]) + 1))


def _read(storage: CheckpointStorage, number: int, patience: Sequence[float]) -> bytes:
    """The metadata of a checkpoint."""
    return _repeat(lambda: storage.read_metadata(number), (MissingFile, CorruptFile), patience)


def find_snapshot(path: str, storage: CheckpointStorage, patience: Sequence[float]) -> Snapshot:
    """Open the checkpoint or savepoint that a job starts from, with the same pauses."""
    return _repeat(lambda: open_snapshot(path, storage), (NoSuchCheckpoint, MissingFile, CorruptFile), patience)


def _repeat(read: Callable[[], T], problems: tuple[type[Exception], ...], patience: Sequence[float]) -> T:
    """Read, and read again: a network mount may show a file late, or only its beginning for a moment."""
    for pause in patience:
        try:
            return read()
        except problems:
            time.sleep(pause)
    return read()


def _go_back(
    job: str, older: CheckpointMetadata, passed: Mapping[int, Passed], *, allow_older: bool
) -> CheckpointMetadata:
    """The checkpoint to go on from. Raises `OlderCheckpointRefused` unless nothing was committed after `older`, or
    going back is allowed: then the job gets another incarnation, for its output is not what was committed."""
    repeats = not all(each.committed_nothing for each in passed.values())
    if repeats and not allow_older:
        raise OlderCheckpointRefused(job, older, passed)
    for number, each in passed.items():
        _log.warning("checkpoint %s is damaged and passed over: %s", number, each.problem)
    if passed:
        _log.warning(
            "the job goes back to checkpoint %s; %s",
            older.checkpoint,
            "; ".join(_committed(number, each.metadata, older) for number, each in passed.items()),
        )
    if not repeats:
        return older
    told = f"{older.incarnation}/{older.checkpoint}/{max(passed)}"
    return dataclasses.replace(older, incarnation=hashlib.blake2b(told.encode(), digest_size=6).hexdigest())

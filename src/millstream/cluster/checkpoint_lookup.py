"""Lookup of the checkpoint that a job recovers from.

Promises: the newest checkpoint is used. A failure of storage is retried and is not damage; a file that is missing or
incomplete is read again before it counts as missing or damaged. A damaged checkpoint is skipped only if no output was
committed with it, or if this is allowed: output that was committed after the older checkpoint would be committed twice.
The error names the damaged files.
Does not know: plans, schedules, engines. Tasks verify state files when they read them, and report damage."""

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
    """There is no checkpoint that the job can recover from: a restart cannot help."""


class AllCheckpointsDamaged(CannotRecover):
    """All checkpoints of the job are damaged."""

    hint = "restore the files from a copy, or start a new job from a savepoint"

    def __init__(self, job: str, problems: Mapping[int, MillstreamError]) -> None:
        self.problems = dict(problems)
        problems_text = "; ".join(f"chk-{number}: {problem.message}" for number, problem in problems.items())
        super().__init__(f"no checkpoint of job {job} is intact: {problems_text}")


class SnapshotDamaged(CannotRecover):
    """The checkpoint or savepoint that the job is configured to start from is damaged."""

    hint = "restore the file from a copy, or start from another checkpoint or savepoint"

    def __init__(self, path: str, problem: MillstreamError) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"the job cannot start from {path}: {problem.message}")


class OlderCheckpointRefused(CannotRecover):
    """The newest checkpoint is damaged, and output was committed after the one before it."""

    def __init__(self, job: str, older: CheckpointMetadata, passed: Mapping[int, DamagedCheckpoint]) -> None:
        self.job, self.older, self.checkpoint = job, older.checkpoint, max(passed)
        self.problems = {number: damaged.problem for number, damaged in passed.items()}
        damage = "; ".join(
            f"checkpoint {number} is damaged: {damaged.problem.message}" for number, damaged in passed.items()
        )
        committed = "; ".join(_describe_output(number, damaged.metadata, older) for number, damaged in passed.items())
        super().__init__(
            f"job {job} cannot recover from its newest checkpoint. {damage}. The newest intact one is "
            f"{older.checkpoint}, after epoch {older.epoch}, but recovering from it may repeat output: {committed}",
            hint=f"restore the file from a copy; or set {options.RECOVERY_ALLOW_OLDER.key} to true to recover from "
            f"checkpoint {older.checkpoint}: the output that was committed after it may then appear twice",
        )


@dataclass(frozen=True)
class DamagedCheckpoint:
    """A checkpoint that cannot be restored; its metadata if that can be read."""

    problem: MillstreamError
    metadata: CheckpointMetadata | None = None

    @property
    def committed_nothing(self) -> bool:
        """Whether no output became visible with this checkpoint."""
        return self.metadata is not None and not any(self.metadata.committables.values())


def _describe_output(number: int, metadata: CheckpointMetadata | None, older: CheckpointMetadata) -> str:
    if metadata is None:
        return f"what was committed with checkpoint {number} is not known, because its metadata cannot be read"
    names = {operator.operator: operator.name for operator in metadata.operators}
    sinks = [f"'{names.get(sink, sink)}' ({len(staged)})" for sink, staged in metadata.committables.items() if staged]
    if not sinks:
        return f"nothing was committed with checkpoint {number}"
    epochs = f"epochs {older.epoch + 1} to {metadata.epoch}"
    return f"with checkpoint {number} output of {epochs} was committed to {', '.join(sinks)}"


class Damage:
    """The damaged state files that tasks have reported."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage
        self._files: dict[str, StateFileDamaged] = {}

    def note(self, damaged: StateFileDamaged) -> bool:
        """Remember a damaged file; return False if the driver can read it, so that only the worker could not."""
        if damaged.missing and self._storage.has_file(damaged.file):
            return False
        self._files[damaged.file] = damaged
        return True

    def of(self, metadata: CheckpointMetadata) -> StateFileDamaged | None:
        """Return the first known damage of a checkpoint's files; None if there is none."""
        return next((self._files[handle.file] for handle in metadata.handles if handle.file in self._files), None)


def find_newest_checkpoint(
    storage: CheckpointStorage,
    newest: int,
    damage: Damage,
    *,
    allow_older: bool,
    patience: Sequence[float],
) -> tuple[CheckpointMetadata | None, int]:
    """Return the checkpoint to recover from, and the greatest number that exists. `newest` is the greatest number that
    is known to have existed. A file that should exist and cannot be read is read again after each pause in `patience`
    (seconds)."""
    numbers = _numbers(storage, newest, patience)
    passed: dict[int, DamagedCheckpoint] = {}
    for number in reversed(numbers):
        try:
            metadata = CheckpointMetadata.from_bytes(_read(storage, number, patience))
        except VoidCheckpoint:
            continue
        except StorageFailure:
            raise
        except MillstreamError as problem:
            passed[number] = DamagedCheckpoint(problem)
            continue
        damaged = damage.of(metadata)
        if damaged is None:
            return _skip_damaged(storage.job, metadata, passed, allow_older=allow_older), max(numbers)
        passed[number] = DamagedCheckpoint(damaged, metadata)
    if passed:
        raise AllCheckpointsDamaged(storage.job, {number: damaged.problem for number, damaged in passed.items()})
    return None, max(numbers, default=0)


def _numbers(storage: CheckpointStorage, newest: int, patience: Sequence[float]) -> list[int]:
    """Return the numbers that should exist: from the oldest to the newest that is listed or known."""
    numbers = storage.list_checkpoints()
    for pause in patience:
        if max(numbers, default=0) >= newest:
            break
        time.sleep(pause)
        numbers = storage.list_checkpoints()
    known = [*numbers, newest] if newest else numbers  # storage may not list a file that exists
    return list(range(min(known, default=1), max(known, default=0) + 1))


def _read(storage: CheckpointStorage, number: int, patience: Sequence[float]) -> bytes:
    """Read the metadata of a checkpoint."""
    return _repeat(lambda: storage.read_metadata(number), (MissingFile, CorruptFile), patience)


def find_snapshot(path: str, storage: CheckpointStorage, patience: Sequence[float]) -> Snapshot:
    """Open the checkpoint or savepoint that a job starts from; reads are repeated after each pause in `patience`."""
    return _repeat(lambda: open_snapshot(path, storage), (NoSuchCheckpoint, MissingFile, CorruptFile), patience)


def _repeat(read: Callable[[], T], problems: tuple[type[Exception], ...], patience: Sequence[float]) -> T:
    """Read, and repeat the read if it fails: a network mount may show a new file late, or only its beginning."""
    for pause in patience:
        try:
            return read()
        except problems:
            time.sleep(pause)
    return read()


def _skip_damaged(
    job: str, older: CheckpointMetadata, passed: Mapping[int, DamagedCheckpoint], *, allow_older: bool
) -> CheckpointMetadata:
    """Return the checkpoint to recover from, if the damaged ones in `passed` can be skipped. Raises
    `OlderCheckpointRefused` if output was committed after `older` and `allow_older` is false. If it is true, the job
    gets another incarnation, because its output differs from what was committed."""
    repeats = not all(damaged.committed_nothing for damaged in passed.values())
    if repeats and not allow_older:
        raise OlderCheckpointRefused(job, older, passed)
    for number, damaged in passed.items():
        _log.warning("checkpoint %s is damaged and skipped: %s", number, damaged.problem)
    if passed:
        _log.warning(
            "the job recovers from the older checkpoint %s; %s",
            older.checkpoint,
            "; ".join(_describe_output(number, damaged.metadata, older) for number, damaged in passed.items()),
        )
    if not repeats:
        return older
    seed = f"{older.incarnation}/{older.checkpoint}/{max(passed)}"
    return dataclasses.replace(older, incarnation=hashlib.blake2b(seed.encode(), digest_size=6).hexdigest())

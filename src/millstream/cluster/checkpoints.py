"""Checkpoints of one job on storage: published, looked up, retained and deleted, with the log of epoch plans.

Promises: a checkpoint exists completely or not at all (see `publishing`). Recovery takes the newest one (see
`checkpoint_lookup`) and reads its metadata only, because tasks verify state files when they read them. A state file is
deleted only when no retained checkpoint and no running epoch needs it.
Does not know: engines, sources, sinks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, takewhile
from typing import Any, TypeVar

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.savepoint import NoSuchCheckpoint, open_snapshot
from millstream.checkpoint.state_files import PATIENCE, JobStateFiles
from millstream.checkpoint.storage import CheckpointStorage
from millstream.checkpoint.storage_errors import CheckpointTaken, VoidCheckpoint
from millstream.cluster.checkpoint_lookup import Damage, SnapshotDamaged, find_newest_checkpoint, find_snapshot
from millstream.cluster.checkpoint_schedule import CheckpointSchedule
from millstream.cluster.deadlines import run_within
from millstream.cluster.failures import CheckpointExpired
from millstream.cluster.leadership import GENERATIONS
from millstream.cluster.publishing import Publisher
from millstream.errors import ExternalError, MillstreamError
from millstream.state.handles import Handle
from millstream.state.snapshot import StateFileDamaged
from millstream.times import Clock

T = TypeVar("T")

EPOCHS = "epochs.log"
_NEWEST = "checkpoint"  # in a logged plan: the number of the checkpoint before it


class PlansMissing(ExternalError):
    """The log has no plans of epochs after the checkpoint."""

    hint = "restore epochs.log and the checkpoints from a backup, or start a new job from a savepoint"

    def __init__(self, epoch: int, next_epoch: int) -> None:
        super().__init__(f"the job resumes after epoch {epoch}, but the next plan in its log is of epoch {next_epoch}")


class NewerCheckpointExists(CheckpointTaken):
    """A job has published a checkpoint, but there is a newer one that its recovery did not see."""

    hint = "storage did not list all checkpoints; the job restarts from the newest one"

    def __init__(self, path: str, newer: int) -> None:
        self.path, self.newer = path, newer
        ExternalError.__init__(
            self, f"{path} was published, but there is a checkpoint {newer} that recovery did not see"
        )


@dataclass(frozen=True)
class RetainedCheckpoint:
    """The epoch of a retained checkpoint, and the files it needs."""

    epoch: int
    files: frozenset[str]

    @classmethod
    def of(cls, metadata: CheckpointMetadata) -> RetainedCheckpoint:
        """Create the entry of a checkpoint."""
        return cls(metadata.epoch, frozenset(handle.file for handle in metadata.handles))


class Checkpoints:
    """Storage, numbers and schedule of one job's checkpoints."""

    def __init__(self, storage: CheckpointStorage, schedule: CheckpointSchedule, *, temporary: bool) -> None:
        """`temporary`: the storage is a scratch directory that is deleted with the job."""
        self.storage = storage
        self._schedule = schedule
        self._temporary = temporary
        self._published_files: set[str] = set()
        self._retained: dict[int, RetainedCheckpoint | None] = {}  # by number, None for a void one; each is read once
        self._restored_from: CheckpointStorage | None = None
        self._opened: CheckpointMetadata | None = None
        self._opened_path = ""
        self._claimed: str | None = None
        self._pins: dict[int, frozenset[str]] = {}
        self._pin_numbers = count()
        self._term = 0
        self._newest = 0  # the number of the newest checkpoint that is known to exist
        self._late: set[int] = set()  # the numbers of those that failed or expired, but exist
        self._seen = 0  # the greatest number that recovery saw
        self._confirmed = False  # whether the first checkpoint since the start was the newest
        self._publisher = Publisher(storage)
        self._damage = Damage(storage)
        self.merges = True
        self.allow_older = False
        self.timeout: int | None = None  # milliseconds after which a checkpoint has expired
        self.patience: tuple[float, ...] = PATIENCE

    def lead(self, term: int) -> None:
        """Begin a term: from now on nothing is deleted that a later term may need."""
        self._term = term

    @property
    def _log_name(self) -> str:
        """The name of the plan log. Each term has its own, because an earlier leader may still write to its log."""
        return f"epochs-{self._term}.log" if self._term else EPOCHS

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are taken."""
        return self._schedule.interval is not None

    def files(self) -> JobStateFiles:
        """Return the state files as tasks read and write them."""
        tasks = self.storage.of(self.storage.root, self.storage.job, sync=self.enabled)
        return JobStateFiles(tasks, self._restored_from, self.patience)

    # ------------------------------------------------------------------------------------------------- finding

    def open(self, path: str) -> CheckpointMetadata:
        """Open the checkpoint or savepoint at a path; it may be of another job."""
        snapshot = find_snapshot(path, self.storage, self.patience)
        self._restored_from = snapshot.storage
        problem = self._damage.of(snapshot.metadata)
        if problem is not None:
            raise SnapshotDamaged(path, problem)
        self._opened, self._opened_path = snapshot.metadata, path
        return snapshot.metadata

    def claim(self, path: str) -> None:
        """Claim the snapshot that this job starts from: it is deleted when it is subsumed (Flink's claim mode)."""
        self._claimed = path

    def latest_intact(self) -> CheckpointMetadata | None:
        """Return the newest checkpoint of this job. Raises `OlderCheckpointRefused` if it is damaged and output was
        committed with it, unless an older one is allowed.

        Storage that cannot be read now is not damage: the error makes the job restart."""
        log = self._newest_log()
        records = self.storage.read_log(log) if log is not None else []
        self._newest = max([self._newest, *(json.loads(record).get(_NEWEST, 0) for record in records)])
        newest, self._seen = find_newest_checkpoint(
            self.storage, self._newest, self._damage, allow_older=self.allow_older, patience=self.patience
        )
        if newest is not None:
            self.storage.sync_checkpoint(newest.checkpoint)  # its output will be committed next
            self._newest = max(self._newest, newest.checkpoint)
            self._retained[newest.checkpoint] = RetainedCheckpoint.of(newest)
        return newest

    def note_damage(self, damaged: StateFileDamaged) -> bool:
        """Note a state file that a task could not use; return whether the checkpoint to restart from is damaged."""
        used = [entry.files for entry in self._retained.values() if entry is not None]
        if self._opened is not None:
            used.append(RetainedCheckpoint.of(self._opened).files)
        return any(damaged.file in files for files in used) and self._damage.note(damaged)

    def newest_term(self) -> int:
        """Return the last term that left a checkpoint; 0 if there is none."""
        for number in reversed(self.storage.list_checkpoints()):
            with suppress(MillstreamError):  # the term of a void or damaged checkpoint is not known
                return CheckpointMetadata.from_bytes(self.storage.read_metadata(number)).generation // GENERATIONS
        return 0

    def is_superseded(self, checkpoint: int) -> bool:
        """Whether there is a checkpoint with a greater number."""
        return max(self.storage.list_checkpoints(), default=0) > checkpoint

    # ---------------------------------------------------------------------------------------------- the plan log

    def log_plan(self, plan: dict[str, Any]) -> None:
        """Make a plan durable. Without checkpoints nothing is logged, because nothing is replayed."""
        if self.enabled:
            self.storage.append_log(self._log_name, json.dumps({**plan, _NEWEST: self._newest}).encode())

    def logged_plans(self, epoch: int, sources: Collection[str]) -> list[dict[str, Any]]:
        """Return the logged plans after an epoch, in order: a planned epoch is replayed as planned.

        Plans of the job that this one was restored from are copied to its log first. A plan with other sources is of
        another program: it and the plans after it are not replayed."""
        log = self._newest_log()
        records = self.storage.read_log(log) if log is not None else []
        if log is None and self._restored_from is not None:
            records = self._restored_from.read_log(EPOCHS)
        plans: list[dict[str, Any]] = []
        for record in records:
            plan = json.loads(record)
            if log is None:
                plan.pop(_NEWEST, None)  # the number belongs to the other job
            if plan["epoch"] <= epoch:
                continue
            # these epochs were planned again after an earlier recovery
            while plans and plans[-1]["epoch"] >= plan["epoch"]:
                plans.pop()
            plans.append(plan)
        for expected, plan in enumerate(plans, epoch + 1):
            if plan["epoch"] != expected:
                raise PlansMissing(expected - 1, plan["epoch"])
        operators = set(sources)  # a stop that was not completed is not repeated
        replayed = list(takewhile(lambda plan: plan["sources"].keys() == operators and not plan.get("stop"), plans))
        # a leader creates a log even if it is empty, so that older logs are not read again
        if log != self._log_name and (replayed or self._term):
            self.storage.truncate_log(self._log_name, [json.dumps(plan).encode() for plan in replayed])
        return replayed

    def _newest_log(self) -> str | None:
        logs = [self._log_name, *(f"epochs-{term}.log" for term in range(self._term - 1, 0, -1))]
        return next((name for name in logs if self.storage.has_log(name)), None)

    # -------------------------------------------------------------------------------------------------- taking

    @property
    def next_id(self) -> int:
        """The number of the next checkpoint."""
        return self._publisher.next_id

    def skip(self, now: int) -> None:
        """Schedule the next checkpoint after one failed and the job continues."""
        self._schedule = self._schedule.after_failure(now)

    def start(self, now: int, epoch: int) -> None:
        """Start the schedule and the numbers after the job restored a checkpoint of `epoch`, or began at 0."""
        self._schedule = self._schedule.after_start(now, epoch)
        self._confirmed = False
        # A leader's numbers continue its own checkpoints, so that they collide with a later term's fence. Without terms
        # there is no other listing: a checkpoint that recovery did not see must collide with the next number.
        if not self._term:
            self._publisher.next_id = max(self.next_id - 1, self._newest, self._seen) + 1

    def is_due(self, now: int, epoch: int) -> bool:
        """Whether to take a checkpoint of `epoch` now."""
        return self._schedule.is_due(now, epoch)

    def new_bytes(self, operators: Iterable[OperatorSnapshot]) -> int:
        """Return the bytes of state files written since the last checkpoint."""
        return sum(handle.size for handle in _handles(operators) if handle.name not in self._published_files)

    def complete(self, metadata: CheckpointMetadata, clock: Clock) -> tuple[CheckpointMetadata, str]:
        """Publish a checkpoint, and return it as it was published, and its path. Raises `CheckpointExpired` when that
        takes too long; until the checkpoint is resolved, it may still come to exist."""
        deadline = partial(self._in_time, metadata.checkpoint)
        metadata = self._publisher.publish(metadata, deadline, merges=self.merges, confirm=self._confirm)
        self._published_files = {handle.name for handle in metadata.handles}
        self._retained[metadata.checkpoint] = RetainedCheckpoint.of(metadata)
        self._newest = metadata.checkpoint
        self._schedule = self._schedule.after_checkpoint(metadata.timestamp, clock.now(), metadata.epoch)
        return metadata, self.path_of(metadata.checkpoint)

    def path_of(self, checkpoint: int) -> str:
        """Return the path of a checkpoint of this job."""
        return os.path.join(self.storage.root, self.storage.job, f"chk-{checkpoint}")

    def path_after_end(self, checkpoint: int) -> str | None:
        """Return the path of a checkpoint of this job, or of the snapshot it started from, if it can be kept after the
        end of the job; else None."""
        opened = self._opened
        if opened is not None and opened.checkpoint == checkpoint and checkpoint not in {*self._retained, *self._late}:
            return self._opened_path
        return self.path_of(checkpoint) if self.enabled and not self._temporary else None

    def _confirm(self, published: int) -> None:
        """Delete a job's first checkpoint if there is a newer one: the epochs since the recovery ran before, and their
        output may be visible. A leader needs no such check, because its checkpoints follow the fence of its term."""
        newer = 0 if self._confirmed or self._term else max(self.storage.list_checkpoints(), default=0)
        if newer > published:
            self.storage.delete_checkpoint(published)
            raise NewerCheckpointExists(self.path_of(published), newer)
        self._confirmed = True

    def resolve(self) -> list[CheckpointMetadata]:
        """Resolve checkpoints that failed or expired, before output that they name is aborted: those that are returned
        exist, the others never will. Each is returned once: the caller must remember it."""
        existing = self._publisher.resolve(partial(self._in_time, self.next_id - 1))
        self._late.update(metadata.checkpoint for metadata in existing)
        self._newest = max([self._newest, *self._late])  # a later recovery must find it
        return existing

    def _in_time(self, checkpoint: int, work: Callable[[], T]) -> T:
        if self.timeout is None:
            return work()
        return run_within(self.timeout, work, CheckpointExpired(checkpoint, self.timeout))

    def is_unresolved(self, checkpoint: int) -> bool:
        """Whether a checkpoint failed or expired, and may still come to exist."""
        return self._publisher.is_unresolved(checkpoint)

    def pin(self, handles: Iterable[Handle]) -> Callable[[], None]:
        """Keep files until the returned function is called; from any thread."""
        number = next(self._pin_numbers)
        self._pins[number] = frozenset(handle.file for handle in handles)
        return partial(self._unpin, number)

    def _unpin(self, number: int) -> None:
        self._pins.pop(number, None)

    def numbers(self) -> list[int]:
        """Return the numbers of the checkpoints that exist."""
        return self.storage.list_checkpoints()

    def publish_new(self, metadata: CheckpointMetadata) -> None:
        """Publish the fence that begins a term; raises `CheckpointTaken` if its number is taken."""
        self.storage.publish(metadata.checkpoint, metadata.to_bytes())
        self._publisher.next_id = metadata.checkpoint + 1
        self._retained[metadata.checkpoint] = RetainedCheckpoint.of(metadata)
        self._newest = metadata.checkpoint

    def discard(self, checkpoint: int) -> None:
        """Delete a checkpoint that a driver created after its term."""
        self.storage.delete_checkpoint(checkpoint)

    # ------------------------------------------------------------------------------------------------- keeping

    def retire(self, keep: int) -> None:
        """Delete all but the newest `keep` checkpoints, the state files that only the deleted ones needed, and plans
        older than the kept ones.

        A void number stays while a checkpoint before it is kept. A known checkpoint is kept even if storage does not
        list it, because a listing may be stale."""
        directories = self.storage.list_directories()
        numbers = sorted({*filter(self.storage.exists, directories), *self._retained})
        needs: dict[int, RetainedCheckpoint | None] = {}
        for number in reversed(numbers):
            if sum(needed is not None for needed in needs.values()) == keep:
                break
            needs[number] = self._needs(number)
        for number in sorted({*directories, *numbers}):
            if number < min(needs, default=0):
                self.storage.delete_checkpoint(number)
        self._retained = needs
        retained = [needed for needed in needs.values() if needed is not None]
        self._sweep(frozenset[str]().union(*(needed.files for needed in retained)))
        if len(retained) >= keep:
            self._dispose_of_claimed()
        oldest = min((needed.epoch for needed in retained), default=0)
        records = self.storage.read_log(self._log_name)
        needed = [record for record in records if json.loads(record)["epoch"] > oldest]
        if len(records) - len(needed) > 100:
            self.storage.truncate_log(self._log_name, needed)

    def sweep(self, needed: Sequence[Handle]) -> None:
        """Delete the state files that are not needed. Must not be called while an epoch runs."""
        self._sweep({handle.file for handle in needed})

    def _needs(self, checkpoint: int) -> RetainedCheckpoint | None:
        """Return what a checkpoint needs; None for a void number. Metadata of other drivers' checkpoints is read."""
        if checkpoint not in self._retained:
            try:
                self._retained[checkpoint] = RetainedCheckpoint.of(
                    CheckpointMetadata.from_bytes(self.storage.read_metadata(checkpoint))
                )
            except VoidCheckpoint:
                self._retained[checkpoint] = None
        return self._retained[checkpoint]

    def _sweep(self, needed: Collection[str]) -> None:
        names = set(needed).union(*list(self._pins.values()))
        for name in self.storage.files("shared"):
            if name not in names and not self._of_later_term(name):
                self.storage.delete(name)

    def _of_later_term(self, name: str) -> bool:
        """Whether a state file was written by an attempt of a later term: `<operator>-<subtask>-<epoch>-<attempt>`."""
        parts = name.rsplit("-", 2)
        return self._term > 0 and parts[-2].isdecimal() and int(parts[-2]) // GENERATIONS > self._term

    def _dispose_of_claimed(self) -> None:
        path, self._claimed = self._claimed, None
        if path is not None:
            with suppress(NoSuchCheckpoint):  # an earlier run of this job has already deleted it
                open_snapshot(path, self.storage).dispose()

    def close(self, *, keep: bool) -> None:
        """Delete checkpoints, state files and logs at the end of the job, unless they are to be kept."""
        if not keep:
            self._pins.clear()  # savepoints are complete without these files; readers of a checkpoint get an error
            self._dispose_of_claimed()
        if not keep and not self._temporary:
            for number in sorted({*self.storage.list_directories(), *self._retained}):
                self.storage.delete_checkpoint(number)
            self.sweep([])
            for term in range(1, self._term):
                self.storage.delete_log(f"epochs-{term}.log")
            self.storage.delete_log(self._log_name)


def _handles(operators: Iterable[OperatorSnapshot]) -> Iterable[Handle]:
    return (handle for operator in operators for lineage in operator.lineages for handle in lineage.handles)

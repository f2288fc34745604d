"""The checkpoints of one job: taken, found, kept and deleted.

Promises: a checkpoint exists wholly or not at all (see `publishing`); recovery takes the newest one (see `finding`) and
reads its metadata only, because tasks verify state files when they read them; a state file is deleted only when no kept
checkpoint and no running epoch needs it.
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
from millstream.cluster.checkpoint_schedule import CheckpointSchedule
from millstream.cluster.deadlines import within
from millstream.cluster.failures import CheckpointExpired
from millstream.cluster.finding import Damage, SnapshotDamaged, find_newest, find_snapshot
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
    """The log does not say what was read after the checkpoint."""

    hint = "restore epochs.log and the checkpoints from a copy, or start a new job from a savepoint"

    def __init__(self, epoch: int, found: int) -> None:
        super().__init__(f"the job goes on after epoch {epoch}, but the next plan in its log is of epoch {found}")


class NewerCheckpointExists(CheckpointTaken):
    """A checkpoint was made by a job that had not seen a newer one when it recovered."""

    hint = "storage did not list all checkpoints; the job starts again from the newest one"

    def __init__(self, path: str, newer: int) -> None:
        self.path, self.newer = path, newer
        ExternalError.__init__(self, f"{path} was made, but there is a checkpoint {newer} that recovery did not see")


@dataclass(frozen=True)
class Kept:
    """What has to be known of a kept checkpoint."""

    epoch: int
    files: frozenset[str]

    @classmethod
    def of(cls, metadata: CheckpointMetadata) -> Kept:
        """Of a checkpoint."""
        return cls(metadata.epoch, frozenset(handle.file for handle in metadata.handles))


class Checkpoints:
    """Storage and schedule of a job's checkpoints."""

    def __init__(self, storage: CheckpointStorage, schedule: CheckpointSchedule, *, temporary: bool) -> None:
        """`temporary`: the storage is a scratch directory that ends with the job."""
        self.storage = storage
        self._schedule = schedule
        self._temporary = temporary
        self._known: set[str] = set()
        self._kept: dict[
            int, Kept | None
        ] = {}  # what each checkpoint that exists needs, so that it is read once at most
        self._restored_from: CheckpointStorage | None = None
        self._opened: CheckpointMetadata | None = None
        self._opened_path = ""
        self._claimed: str | None = None
        self._pins: dict[int, frozenset[str]] = {}
        self._pin_numbers = count()
        self._term = 0
        self._newest = 0  # the number of the checkpoint that the job goes on from
        self._landed: set[int] = set()  # the numbers of those that failed or expired, and exist all the same
        self._seen = 0  # the greatest number that recovery saw
        self._confirmed = False  # whether there was none greater when the first checkpoint was made
        self._publisher = Publisher(storage)
        self._damage = Damage(storage)
        self.merges = True
        self.allow_older = False
        self.timeout: int | None = None  # milliseconds after which a checkpoint has expired
        self.patience: tuple[float, ...] = PATIENCE

    def lead(self, term: int) -> None:
        """Several drivers may run this job: from now on nothing is done that could harm a later term's."""
        self._term = term

    @property
    def _log_name(self) -> str:
        """The plan log; each term has its own, because an earlier leader may still write to its."""
        return f"epochs-{self._term}.log" if self._term else EPOCHS

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are taken at all."""
        return self._schedule.interval is not None

    def files(self) -> JobStateFiles:
        """State files for the tasks."""
        tasks = self.storage.of(self.storage.root, self.storage.job, sync=self.enabled)
        return JobStateFiles(tasks, self._restored_from, self.patience)

    # ------------------------------------------------------------------------------------------------- finding

    def open(self, path: str) -> CheckpointMetadata:
        """The checkpoint or savepoint at a path; it may be of another job."""
        snapshot = find_snapshot(path, self.storage, self.patience)
        self._restored_from = snapshot.storage
        problem = self._damage.of(snapshot.metadata)
        if problem is not None:
            raise SnapshotDamaged(path, problem)
        self._opened, self._opened_path = snapshot.metadata, path
        return snapshot.metadata

    def claim(self, path: str) -> None:
        """What this job starts from is its own: it goes when it is subsumed, as the job's own checkpoints do."""
        self._claimed = path

    def latest_intact(self) -> CheckpointMetadata | None:
        """The newest checkpoint of this job; `OlderCheckpointRefused` if that is damaged and output was committed with
        it, unless going back is allowed.

        Storage that cannot be read now is no damage: the job tries again."""
        log = self._newest_log()
        records = self.storage.read_log(log) if log is not None else []
        self._newest = max([self._newest, *(json.loads(record).get(_NEWEST, 0) for record in records)])
        found, self._seen = find_newest(
            self.storage, self._newest, self._damage, allow_older=self.allow_older, patience=self.patience
        )
        if found is not None:
            self.storage.sync_checkpoint(found.checkpoint)  # its output is committed next
            self._newest = max(self._newest, found.checkpoint)
            self._kept[found.checkpoint] = Kept.of(found)
        return found

    def blame(self, damaged: StateFileDamaged) -> bool:
        """A task cannot use a state file: whether what the job would restart from needs it, and is damaged."""
        used = [kept.files for kept in self._kept.values() if kept is not None]
        if self._opened is not None:
            used.append(Kept.of(self._opened).files)
        return any(damaged.file in files for files in used) and self._damage.note(damaged)

    def newest_term(self) -> int:
        """The last term of a leader that left a checkpoint; 0 if there is none."""
        for number in reversed(self.storage.list_checkpoints()):
            with suppress(MillstreamError):  # one that is void or damaged does not say
                return CheckpointMetadata.from_bytes(self.storage.read_metadata(number)).generation // GENERATIONS
        return 0

    def is_superseded(self, checkpoint: int) -> bool:
        """Whether there is a later one."""
        return max(self.storage.list_checkpoints(), default=0) > checkpoint

    # ---------------------------------------------------------------------------------------------- the plan log

    def log_plan(self, plan: dict[str, Any]) -> None:
        """Make a plan durable; without checkpoints there is nothing to replay it from."""
        if self.enabled:
            self.storage.append_log(self._log_name, json.dumps({**plan, _NEWEST: self._newest}).encode())

    def logged_plans(self, epoch: int, sources: Collection[str]) -> list[dict[str, Any]]:
        """The plans that follow an epoch, in order: an epoch that was planned is replayed as planned.

        Plans of the job this one was restored from become its own first. A plan for other sources is of another
        program: it and what follows is planned anew."""
        log = self._newest_log()
        records = self.storage.read_log(log) if log is not None else []
        if log is None and self._restored_from is not None:
            records = self._restored_from.read_log(EPOCHS)
        found: list[dict[str, Any]] = []
        for record in records:
            plan = json.loads(record)
            if log is None:
                plan.pop(_NEWEST, None)  # a number of the other job
            if plan["epoch"] <= epoch:
                continue
            while found and found[-1]["epoch"] >= plan["epoch"]:  # planned anew after an older recovery
                found.pop()
            found.append(plan)
        for expected, plan in enumerate(found, epoch + 1):
            if plan["epoch"] != expected:
                raise PlansMissing(expected - 1, plan["epoch"])
        wanted = set(sources)  # an attempt to stop that did not come to its end is not repeated
        known = list(takewhile(lambda plan: plan["sources"].keys() == wanted and not plan.get("stop"), found))
        if log != self._log_name and (known or self._term):  # a leader has a log, be it empty: older ones are not asked
            self.storage.truncate_log(self._log_name, [json.dumps(plan).encode() for plan in known])
        return known

    def _newest_log(self) -> str | None:
        logs = [self._log_name, *(f"epochs-{term}.log" for term in range(self._term - 1, 0, -1))]
        return next((name for name in logs if self.storage.has_log(name)), None)

    # -------------------------------------------------------------------------------------------------- taking

    @property
    def next_id(self) -> int:
        """The number of the next checkpoint."""
        return self._publisher.next_id

    def missed(self, now: int) -> None:
        """A checkpoint failed and the job goes on."""
        self._schedule = self._schedule.after_failure(now)

    def started(self, now: int, epoch: int) -> None:
        """The job runs from here: from a checkpoint of `epoch`, or 0."""
        self._schedule = self._schedule.after_start(now, epoch)
        self._confirmed = False
        if not self._term:  # else numbers follow from this leader's own checkpoints, so as to meet a later term's fence
            # not from another listing: a checkpoint that recovery did not see must be met by the next one of its number
            self._publisher.next_id = max(self.next_id - 1, self._newest, self._seen) + 1

    def due(self, now: int, epoch: int) -> bool:
        """Whether to take a checkpoint."""
        return self._schedule.is_due(now, epoch)

    def new_bytes(self, operators: Iterable[OperatorSnapshot]) -> int:
        """The bytes of state written since the last checkpoint."""
        return sum(handle.size for handle in _handles(operators) if handle.name not in self._known)

    def complete(self, metadata: CheckpointMetadata, clock: Clock) -> tuple[CheckpointMetadata, str]:
        """Publish a checkpoint; gives it as it was published, and its path. `CheckpointExpired` when that takes too
        long; until it is resolved, it may still come to exist."""
        deadline = partial(self._in_time, metadata.checkpoint)
        metadata = self._publisher.publish(metadata, deadline, merges=self.merges, confirm=self._confirm)
        self._known = {handle.name for handle in metadata.handles}
        self._kept[metadata.checkpoint] = Kept.of(metadata)
        self._newest = metadata.checkpoint
        self._schedule = self._schedule.after_checkpoint(metadata.timestamp, clock.now(), metadata.epoch)
        return metadata, self.path_of(metadata.checkpoint)

    def path_of(self, checkpoint: int) -> str:
        """Where a checkpoint of this job is."""
        return os.path.join(self.storage.root, self.storage.job, f"chk-{checkpoint}")

    def path_after_end(self, checkpoint: int) -> str | None:
        """Where a checkpoint is that the job made or started from, if it can be kept after the end of the job."""
        opened = self._opened
        if opened is not None and opened.checkpoint == checkpoint and checkpoint not in {*self._kept, *self._landed}:
            return self._opened_path
        return self.path_of(checkpoint) if self.enabled and not self._temporary else None

    def _confirm(self, made: int) -> None:
        """Take a job's first checkpoint back if there is a newer one: whatever the job did since it recovered has been
        done before, and may be visible already. A leader's checkpoints follow the fence of its term."""
        newer = 0 if self._confirmed or self._term else max(self.storage.list_checkpoints(), default=0)
        if newer > made:
            self.storage.delete_checkpoint(made)
            raise NewerCheckpointExists(self.path_of(made), newer)
        self._confirmed = True

    def resolve(self) -> list[CheckpointMetadata]:
        """Settle what came of checkpoints that failed or expired, before output that they name is taken back: those
        that are returned exist, the others never will. Each is returned once: the caller must remember it."""
        landed = self._publisher.resolve(partial(self._in_time, self.next_id - 1))
        self._landed.update(each.checkpoint for each in landed)
        self._newest = max([self._newest, *self._landed])  # recovery must not overlook it
        return landed

    def _in_time(self, checkpoint: int, work: Callable[[], T]) -> T:
        if self.timeout is None:
            return work()
        return within(self.timeout, work, CheckpointExpired(checkpoint, self.timeout))

    def is_unresolved(self, checkpoint: int) -> bool:
        """Whether a checkpoint failed or expired, and may still come to exist."""
        return self._publisher.is_unresolved(checkpoint)

    def pin(self, handles: Iterable[Handle]) -> Callable[[], None]:
        """Keep files, whoever else needs them or not, until what is returned is called; from any thread."""
        number = next(self._pin_numbers)
        self._pins[number] = frozenset(handle.file for handle in handles)
        return partial(self._unpin, number)

    def _unpin(self, number: int) -> None:
        self._pins.pop(number, None)

    def numbers(self) -> list[int]:
        """The checkpoints that exist."""
        return self.storage.list_checkpoints()

    def publish_new(self, metadata: CheckpointMetadata) -> None:
        """Make a checkpoint that must not exist yet, to begin a term with."""
        self.storage.publish(metadata.checkpoint, metadata.to_bytes())
        self._publisher.next_id = metadata.checkpoint + 1
        self._kept[metadata.checkpoint] = Kept.of(metadata)
        self._newest = metadata.checkpoint

    def discard(self, checkpoint: int) -> None:
        """Take back a checkpoint that a driver made after its term."""
        self.storage.delete_checkpoint(checkpoint)

    # ------------------------------------------------------------------------------------------------- keeping

    def retire(self, keep: int) -> None:
        """Delete all but the newest checkpoints, the files only they needed, and plans older than all of them.

        A void number stays while a checkpoint before it is kept. One that is known is kept even if it is not listed: a
        listing may be stale."""
        directories = self.storage.list_directories()
        numbers = sorted({*filter(self.storage.exists, directories), *self._kept})
        needs: dict[int, Kept | None] = {}
        for number in reversed(numbers):
            if sum(needed is not None for needed in needs.values()) == keep:
                break
            needs[number] = self._needs(number)
        for number in sorted({*directories, *numbers}):
            if number < min(needs, default=0):
                self.storage.delete_checkpoint(number)
        self._kept = needs
        kept = [needed for needed in needs.values() if needed is not None]
        self._sweep(frozenset[str]().union(*(needed.files for needed in kept)))
        if len(kept) >= keep:
            self._dispose_of_claimed()
        oldest = min((needed.epoch for needed in kept), default=0)
        records = self.storage.read_log(self._log_name)
        needed = [record for record in records if json.loads(record)["epoch"] > oldest]
        if len(records) - len(needed) > 100:
            self.storage.truncate_log(self._log_name, needed)

    def sweep(self, needed: Sequence[Handle]) -> None:
        """Delete the state files that are not needed. Must not be called while an epoch runs."""
        self._sweep({handle.file for handle in needed})

    def _needs(self, checkpoint: int) -> Kept | None:
        """What a checkpoint needs; None for a void number. Metadata is read for those that another driver made."""
        if checkpoint not in self._kept:
            try:
                self._kept[checkpoint] = Kept.of(CheckpointMetadata.from_bytes(self.storage.read_metadata(checkpoint)))
            except VoidCheckpoint:
                self._kept[checkpoint] = None
        return self._kept[checkpoint]

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
            with suppress(NoSuchCheckpoint):  # an earlier life of this job has done it
                open_snapshot(path, self.storage).dispose()

    def close(self, *, keep: bool) -> None:
        """The job is over."""
        if not keep:
            self._dispose_of_claimed()
        if not keep and not self._temporary:
            for number in sorted({*self.storage.list_directories(), *self._kept}):
                self.storage.delete_checkpoint(number)
            self.sweep([])
            for term in range(1, self._term):
                self.storage.delete_log(f"epochs-{term}.log")
            self.storage.delete_log(self._log_name)


def _handles(operators: Iterable[OperatorSnapshot]) -> Iterable[Handle]:
    return (handle for each in operators for lineage in each.lineages for handle in lineage.handles)

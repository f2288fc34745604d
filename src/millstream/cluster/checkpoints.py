"""The checkpoints of one job: taken, found, kept and deleted.

Promises: a checkpoint exists wholly or not at all; recovery takes the newest one that is intact and names those that
are not; a state file is deleted only when no kept checkpoint and no running epoch needs it.
Does not know: engines, sources, sinks."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.state_files import JobStateFiles
from millstream.checkpoint.storage import CheckpointStorage, StorageFailure
from millstream.cluster.checkpoint_machine import Schedule
from millstream.errors import ExternalError, MillstreamError, UserError
from millstream.model.time import Clock
from millstream.state.handles import Handle

_log = logging.getLogger("millstream.checkpoints")

EPOCHS = "epochs.log"


class NoSuchCheckpoint(UserError):
    """A path that names no checkpoint."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"'{path}' is not a checkpoint: {why}",
            hint="give the chk-N directory; `millstream checkpoints DIR` lists them",
        )


class AllCheckpointsDamaged(ExternalError):
    """There are checkpoints, but nothing to go on from."""

    hint = "restore the files from a copy, or start a new job from a savepoint"

    def __init__(self, job: str, problems: Mapping[int, MillstreamError]) -> None:
        self.problems = dict(problems)
        told = "; ".join(f"chk-{number}: {problem.message}" for number, problem in problems.items())
        super().__init__(f"no checkpoint of job {job} is intact: {told}")


class PlansMissing(ExternalError):
    """The log does not say what was read after the checkpoint."""

    hint = "restore epochs.log and the checkpoints from a copy, or start a new job from a savepoint"

    def __init__(self, epoch: int, found: int) -> None:
        super().__init__(f"the job goes on after epoch {epoch}, but the next plan in its log is of epoch {found}")


class Checkpoints:
    """Storage and schedule of a job's checkpoints."""

    def __init__(self, storage: CheckpointStorage, schedule: Schedule, *, temporary: bool) -> None:
        """`temporary`: the storage is a scratch directory that ends with the job."""
        self.storage = storage
        self._schedule = schedule
        self._temporary = temporary
        self._known: set[str] = set()
        self._restored_from: CheckpointStorage | None = None
        self.next_id = 1

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are taken at all."""
        return self._schedule.interval is not None

    def files(self) -> JobStateFiles:
        """State files for the tasks."""
        tasks = self.storage.of(self.storage.root, self.storage.job, sync=self.enabled)
        return JobStateFiles(tasks, self._restored_from)

    # ------------------------------------------------------------------------------------------------- finding

    def open(self, path: str) -> CheckpointMetadata:
        """The checkpoint at a path, verified; it may be of another job."""
        directory = Path(path.removeprefix("file://")).absolute()
        if directory.name == "_metadata":
            directory = directory.parent
        job = directory.parent
        storage = self.storage.of(str(job.parent), job.name)
        if not directory.name or not storage.exists(directory.name):
            raise NoSuchCheckpoint(path, "it has no _metadata file")
        metadata = CheckpointMetadata.from_bytes(storage.read_metadata(directory.name))
        self._restored_from = storage
        self._verify(storage, metadata)
        return metadata

    def latest_intact(self) -> CheckpointMetadata | None:
        """The newest checkpoint of this job that is whole; damaged ones are named in the log.

        Storage that cannot be read now is no damage: going back for that could show output twice."""
        damaged: dict[int, MillstreamError] = {}
        for number in reversed(self.storage.list_checkpoints()):
            try:
                metadata = CheckpointMetadata.from_bytes(self.storage.read_metadata(number))
                self._verify(self.storage, metadata)
            except StorageFailure:
                raise
            except MillstreamError as problem:
                _log.warning("checkpoint %s is damaged and passed over: %s", number, problem)
                damaged[number] = problem
                continue
            return metadata
        if damaged:
            raise AllCheckpointsDamaged(self.storage.job, damaged)
        return None

    def _verify(self, storage: CheckpointStorage, metadata: CheckpointMetadata) -> None:
        for handle in metadata.handles:
            storage.read(handle)

    # ---------------------------------------------------------------------------------------------- the plan log

    def log_plan(self, plan: dict[str, Any]) -> None:
        """Make a plan durable."""
        self.storage.append_log(EPOCHS, json.dumps(plan).encode())

    def logged_plans(self, epoch: int, sources: Collection[str]) -> list[dict[str, Any]]:
        """The plans that follow an epoch, in order: an epoch that was planned is replayed as planned.

        Plans of the job this one was restored from become its own first. A plan for other sources is of another
        program: it and what follows is planned anew."""
        records = self.storage.read_log(EPOCHS)
        adopted = not records and self._restored_from is not None
        if adopted and self._restored_from is not None:
            records = self._restored_from.read_log(EPOCHS)
        found: list[dict[str, Any]] = []
        for record in records:
            plan = json.loads(record)
            if plan["epoch"] <= epoch:
                continue
            while found and found[-1]["epoch"] >= plan["epoch"]:  # planned anew after an older recovery
                found.pop()
            found.append(plan)
        for expected, plan in enumerate(found, epoch + 1):
            if plan["epoch"] != expected:
                raise PlansMissing(expected - 1, plan["epoch"])
        known = list(takewhile(lambda plan: plan["sources"].keys() == set(sources), found))
        if adopted and known:
            self.storage.truncate_log(EPOCHS, [json.dumps(plan).encode() for plan in known])
        return known

    # -------------------------------------------------------------------------------------------------- taking

    def missed(self, now: int) -> None:
        """A checkpoint failed and the job goes on."""
        self._schedule = self._schedule.missed(now)

    def started(self, now: int, epoch: int) -> None:
        """The job runs from here: from a checkpoint of `epoch`, or 0."""
        self._schedule = self._schedule.started(now, epoch)
        self.next_id = max([self.next_id - 1, *self.storage.list_checkpoints()]) + 1

    def due(self, now: int, epoch: int) -> bool:
        """Whether to take a checkpoint."""
        return self._schedule.due(now, epoch)

    def new_bytes(self, operators: Iterable[OperatorSnapshot]) -> int:
        """The bytes of state written since the last checkpoint."""
        return sum(handle.size for handle in _handles(operators) if handle.name not in self._known)

    def complete(self, metadata: CheckpointMetadata, clock: Clock) -> str:
        """Publish a checkpoint; gives its path."""
        try:
            self.storage.publish(metadata.checkpoint, metadata.to_bytes())
        except ExternalError:
            if metadata.checkpoint not in self.storage.list_checkpoints():
                raise  # else it exists all the same: only its directory could not be synced
        self._known = {handle.name for handle in metadata.handles}
        self._schedule = self._schedule.completed(metadata.timestamp, clock.now(), metadata.epoch)
        self.next_id = metadata.checkpoint + 1
        return str(Path(self.storage.root, self.storage.job, f"chk-{metadata.checkpoint}"))

    # ------------------------------------------------------------------------------------------------- keeping

    def retire(self, keep: int) -> None:
        """Delete all but the newest checkpoints, the files only they needed, and plans older than all of them."""
        numbers = self.storage.list_checkpoints()
        kept = [CheckpointMetadata.from_bytes(self.storage.read_metadata(number)) for number in numbers[-keep:]]
        for number in numbers[:-keep]:
            self.storage.delete_checkpoint(number)
        self.sweep([handle for metadata in kept for handle in metadata.handles])
        oldest = min((metadata.epoch for metadata in kept), default=0)
        records = self.storage.read_log(EPOCHS)
        needed = [record for record in records if json.loads(record)["epoch"] > oldest]
        if len(records) - len(needed) > 100:
            self.storage.truncate_log(EPOCHS, needed)

    def sweep(self, needed: Sequence[Handle]) -> None:
        """Delete the state files that are not needed. Must not be called while an epoch runs."""
        names = {handle.name for handle in needed}
        for name in self.storage.files("shared"):
            if name not in names:
                self.storage.delete(name)

    def close(self, *, keep: bool) -> None:
        """The job is over."""
        if not keep and not self._temporary:
            for number in self.storage.list_checkpoints():
                self.storage.delete_checkpoint(number)
            self.sweep([])
            self.storage.delete(f"{self.storage.job}/{EPOCHS}")


def _handles(operators: Iterable[OperatorSnapshot]) -> Iterable[Handle]:
    return (handle for each in operators for lineage in each.lineages for handle in lineage.handles)

"""Exactly-once commits of staged files to tables, and removal of files that will never be committed.

Promises: output counts as committed only if the same attempt committed it; output of the same epochs by another attempt
is an error. Only files of dead attempts are removed, after the output of their epochs was committed: file names contain
the owner and the attempt.
Does not know: table formats."""

from __future__ import annotations

import logging
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from millstream.connector.sink import Committer, OutputRefused, ThisProcess
from millstream.connectors.lakehouse.staging import StagedDataFile, open_location, remove_files, tag

_log = logging.getLogger("millstream.lakehouse")

_NAME = re.compile(r"part-(?P<epoch>\d+)-\d+-\d+-(?P<owner>[0-9a-f]{16})-(?P<attempt>[0-9a-f]{16})\.parquet")
# commits between two sweeps; others follow the first commit after a start, a recovery or a rescale, and the last one
_SWEEP_EVERY = 50


class CommittedByAnother(OutputRefused):
    """The table has output of the same epochs from another attempt than the one to be committed."""

    hint = (
        "the job was restored from a checkpoint before output that it had committed; to write the output again, start "
        "a new job from the checkpoint (execution.state-recovery.path)"
    )

    def __init__(self, table: str, epoch: int, committed: int, files: int) -> None:
        self.table, self.epoch, self.committed = table, epoch, committed
        super().__init__(
            f"{files} files up to epoch {epoch} cannot be committed to {table}: the job has committed up to epoch "
            f"{committed} there, and these files were not part of it"
        )


def group_by_owner(committables: Sequence[Any]) -> dict[str, list[StagedDataFile]]:
    """Group staged files by owner; there is one owner, unless the job was restored from a savepoint of another."""
    owners: dict[str, list[StagedDataFile]] = {}
    for data in committables:
        file = StagedDataFile.from_json(data)
        owners.setdefault(file.owner, []).append(file)
    return owners


def warn_of_repeat(table: str, checkpoint: int, files: Sequence[StagedDataFile]) -> None:
    """Log that files are in the table already and are not committed again."""
    rows = sum(file.rows for file in files)
    _log.warning(
        "checkpoint %s: %d files with %d rows were committed to %s before, and are not committed again",
        checkpoint,
        len(files),
        rows,
        table,
    )


class TableCommitter(Committer, ABC):
    """Commits the staged files of a table: one change of the table for each owner.

    `replaces` is the version of the table whose rows the output replaces, if the sink overwrites. With
    `removes_staged`, staged files are changes that no table names, and are removed when they are applied."""

    def __init__(self, *, overwrites: bool, replaces: int | None, removes_staged: bool = False) -> None:
        self._overwrites, self._replaces, self._removes_staged = overwrites, replaces, removes_staged
        self._orphans = Orphans()
        self.workers = ThisProcess()

    @property
    @abstractmethod
    def location(self) -> str:
        """The directory of the table."""

    @abstractmethod
    def commit_files(self, checkpoint: int, owner: str, files: list[StagedDataFile]) -> None:
        """Make the staged files of one owner part of the table, if they are not part of it already."""

    def snapshot(self) -> Any:
        """Return the version that is replaced, because a driver that takes over would read a newer one from the
        table."""
        return {"replaces": self._replaces} if self._overwrites else None

    def restore(self, state: Any) -> None:
        """Restore the version that is replaced from a checkpoint."""
        self._replaces = state["replaces"]

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Commit the files of each owner."""
        for owner, files in group_by_owner(committables).items():
            self.commit_files(checkpoint, owner, files)
            self._orphans.remember_committed(self.location, owner, files)
            if self._removes_staged:
                remove_files(self.location, files)

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove files that will never be committed."""
        remove_files(self.location, [StagedDataFile.from_json(data) for data in committables])

    def finish(self) -> None:
        """Remove the files of dead attempts."""
        self._orphans.finish(self.location)


class Orphans:
    """Finds and removes the files of dead attempts below the location of a table."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[str, int]] = {}  # by owner: path and epoch, since the last sweep
        self._generations: dict[str, int] = {}
        self._commits = 0

    def remember_committed(self, location: str, owner: str, files: Sequence[StagedDataFile]) -> None:
        """Remember committed files; from time to time, remove all other files of the same epochs."""
        self._committed.setdefault(owner, {}).update({file.path: file.epoch for file in files})
        self._commits += 1
        generation = max(file.generation for file in files)
        if self._commits % _SWEEP_EVERY == 0 or self._generations.get(owner) != generation:
            self._generations[owner] = generation
            self._sweep(location, owner, self._committed.pop(owner))

    def finish(self, location: str) -> None:
        """Remove the remaining files: the job is finished, and no other driver runs it."""
        for owner, committed in self._committed.items():
            self._sweep(location, owner, committed)

    def _sweep(self, location: str, owner: str, committed: Mapping[str, int]) -> None:
        epochs = range(min(committed.values()), max(committed.values()) + 1)
        files, base = open_location(location)
        removed = 0
        for directory in {os.path.dirname(path) for path in committed}:
            try:
                for file in files.get_file_info(pafs.FileSelector(f"{base}/{directory}".rstrip("/"))):
                    path = f"{directory}/{file.base_name}".lstrip("/")
                    if path not in committed and _is_staged_by(file.base_name, tag(owner), epochs):
                        files.delete_file(file.path)
                        removed += 1
            except (pa.ArrowException, OSError) as problem:
                _log.warning("files of dead attempts are left in %s: %s", directory or location, problem)
        if removed:
            _log.info("%d files of dead attempts were removed from %s", removed, location)


def _is_staged_by(name: str, owner: str, epochs: range) -> bool:
    match = _NAME.fullmatch(name)
    return match is not None and match["owner"] == owner and int(match["epoch"]) in epochs

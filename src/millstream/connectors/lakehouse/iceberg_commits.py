"""Commits to Iceberg tables: the mark of a commit, and how a repeated commit is recognised.

Promises: the mark is a property of the table, set in the same change of the table, and names the staged output. The
number of marks is bounded. Before a commit is retried on a newer version of the table, the marks of that version are
checked.
Does not know: what a commit changes in the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from millstream.connectors.lakehouse.commits import CommittedByAnother
from millstream.connectors.lakehouse.iceberg_catalog import pyiceberg
from millstream.connectors.lakehouse.staging import StagedDataFile, digest
from millstream.files.errors import ConnectorStorageFailure

#: Changes a table in a transaction, with properties for the snapshot.
Change = Callable[[Any, Any, dict[str, str]], None]

_STAGED, _CHECKPOINT, _EPOCH = "millstream.staged", "millstream.checkpoint", "millstream.epoch"
_TRIES = 5  # attempts of a commit while others change the table
_MAX_MARKS = 50  # a table keeps the mark of the last commit of this many jobs


def commit_once(
    location: str, table: Any, checkpoint: int, owner: str, files: list[StagedDataFile], change: Change
) -> None:
    """Change the table in one commit with its mark. If others changed the table meanwhile, check the marks and
    retry."""
    exceptions = pyiceberg("exceptions")
    for attempt in range(_TRIES):
        try:
            with without_retries(table).transaction() as transaction:
                # one change of the table: the files, and up to which epoch this job has committed
                change(table, transaction, set_mark(transaction, table, checkpoint, owner, files))
        except (
            exceptions.CommitFailedException, exceptions.ValidationException, ConnectorStorageFailure
        ) as problem:  # fmt: skip
            # another driver of the same job, or another attempt, may have been faster
            if is_committed(location, table.refresh(), owner, files):
                return
            if attempt == _TRIES - 1 or isinstance(problem, ConnectorStorageFailure):
                raise ConnectorStorageFailure(location, f"commit checkpoint {checkpoint} to", problem) from problem
        else:
            return


def without_retries(table: Any) -> Any:
    """Return a table whose commits fail if the table has changed meanwhile.

    pyiceberg would retry such a commit on the new version, which may already have this output from another driver."""
    table.metadata.properties["commit.retry.num-retries"] = "0"  # changed in memory only: a commit does not write it
    return table


def set_mark(transaction: Any, table: Any, checkpoint: int, owner: str, files: list[StagedDataFile]) -> dict[str, str]:
    """Set the mark of a commit in its transaction; return the properties of its snapshot."""
    epoch, staged = max(file.epoch for file in files), digest(files)
    mark = {"epoch": epoch, "staged": staged, "at": max(file.at for file in files)}
    transaction.set_properties({f"{_EPOCH}.{owner}": json.dumps(mark)})
    expired = _expired_marks(table.properties, f"{_EPOCH}.{owner}")
    if expired:
        transaction.remove_properties(*expired)
    return {_CHECKPOINT: str(checkpoint), _STAGED: staged, _EPOCH: str(epoch)}


def is_committed(location: str, table: Any, owner: str, files: list[StagedDataFile]) -> bool:
    """Whether exactly these files were committed, by the mark of their owner, a snapshot, or the table's files.
    Raises `CommittedByAnother` if other files of the same epochs were.

    The number of marks is bounded; without one, a snapshot or the files of the table show the commit."""
    epoch, staged = max(file.epoch for file in files), digest(files)
    text = table.properties.get(f"{_EPOCH}.{owner}")
    mark = None if text is None else _parse_mark(text)
    if mark is not None and mark["epoch"] < epoch:
        return False
    if mark is not None and mark["staged"] == staged:
        return True
    snapshots = table.metadata.snapshots
    if any(entry.summary is not None and entry.summary.get(_STAGED) == staged for entry in snapshots):
        return True
    live = _live_paths(table)
    present = [file for file, path in zip(files, paths_of(location, files), strict=True) if path in live]
    if len(present) == len(files):
        return True
    if mark is None and not present:
        return False
    committed = max(file.epoch for file in present) if mark is None else int(mark["epoch"])
    raise CommittedByAnother(".".join(table.name()[-2:]), epoch, committed, len(files))


def paths_of(location: str, files: Sequence[StagedDataFile]) -> list[str]:
    """Return the paths of files as tables name them."""
    scheme = "" if "://" in location else "file://"
    return [f"{scheme}{location}/{file.path}" for file in files]


def add_name_mapping(transaction: Any) -> None:
    """Set the mapping of names to fields, which files without field ids need."""
    if transaction.table_metadata.name_mapping() is None:
        names = transaction.table_metadata.schema().name_mapping.model_dump_json()
        transaction.set_properties({"schema.name-mapping.default": names})


def _parse_mark(text: str) -> dict[str, Any]:
    """Parse the mark of the last commit of a job; earlier releases wrote only the epoch."""
    mark = json.loads(text)
    return mark if isinstance(mark, dict) else {"epoch": mark, "staged": "", "at": 0}


def _live_paths(table: Any) -> set[str]:
    """Return the data files of a table from its manifests, because a scan refuses tables with equality deletes."""
    snapshot, data = table.current_snapshot(), pyiceberg("manifest").ManifestContent.DATA
    manifests = [] if snapshot is None else snapshot.manifests(table.io)
    return {
        entry.data_file.file_path
        for manifest in manifests
        if manifest.content == data
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }


def _expired_marks(properties: dict[str, str], current: str) -> list[str]:
    """Return the properties of the jobs that committed longest ago, if there are too many."""
    others = [name for name in properties if name.startswith(f"{_EPOCH}.") and name != current]
    others.sort(key=lambda name: int(_parse_mark(properties[name])["at"]))
    return others[: max(0, len(others) + 1 - _MAX_MARKS)]

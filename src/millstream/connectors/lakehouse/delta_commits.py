"""Commits to Delta tables: their properties, and how a repeated commit is recognised.

Promises: a commit has Delta's transaction identifiers, which name the staged output that it contains.
Does not know: what a commit changes in the table."""

from __future__ import annotations

import importlib
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from millstream.connectors.lakehouse.commits import CommittedByAnother
from millstream.connectors.lakehouse.staging import StagedDataFile, as_texts, digest
from millstream.errors import UserError

_STAGED, _CHECKPOINT = "millstream.staged", "millstream.checkpoint"
_MAX_CLOCK_SKEW = 3_600_000  # milliseconds by which the clocks of writers may differ


class MissingDelta(UserError):
    """deltalake is not installed."""

    hint = "pip install 'millstream[delta]'"

    def __init__(self, problem: ImportError) -> None:
        super().__init__(f"Delta tables need the package deltalake, which cannot be imported: {problem}")


def deltalake() -> Any:
    """Import deltalake."""
    try:
        return importlib.import_module("deltalake")
    except ImportError as problem:
        raise MissingDelta(problem) from problem


def commit_properties(package: Any, checkpoint: int, owner: str, files: list[StagedDataFile]) -> Any:
    """Return the properties of the commit of staged files: the checkpoint, and transaction identifiers."""
    epoch = max(file.epoch for file in files)
    transactions = [
        package.Transaction(owner, epoch),
        package.Transaction(f"{owner}:staged", _digest_number(files)),
    ]
    return package.CommitProperties(
        custom_metadata={_CHECKPOINT: str(checkpoint), _STAGED: digest(files)}, app_transactions=transactions
    )


def is_committed(location: str, table: Any, owner: str, files: list[StagedDataFile]) -> bool:
    """Whether exactly these files were committed, by the last commit of their owner, the files of the table, or its
    history. Raises `CommittedByAnother` if other files of the same epochs were.

    Transaction identifiers may expire; then the files or the history show the commit."""
    epoch, committed = max(file.epoch for file in files), table.transaction_version(owner)
    if committed is not None and committed < epoch:
        return False
    if table.transaction_version(f"{owner}:staged") == _digest_number(files):
        return True
    live = live_files(table)
    present = [file for file in files if file.path in live]
    if len(present) == len(files) or _is_in_history(table, files):
        return True
    if committed is None and not present:
        return False
    if committed is None:
        committed = max(file.epoch for file in present)
    raise CommittedByAnother(location, epoch, committed, len(files))


def _is_in_history(table: Any, files: list[StagedDataFile]) -> bool:
    """Return whether the history has a commit of these files. The history is read back to the time when they were
    staged."""
    staged, since, limit = digest(files), min(file.at for file in files) - _MAX_CLOCK_SKEW, 64
    while True:
        entries = table.history(limit)  # the newest first
        if any(entry.get(_STAGED) == staged for entry in entries):
            return True
        if len(entries) < limit or entries[-1].get("timestamp", since) < since:
            return False
        limit *= 8


def _digest_number(files: list[StagedDataFile]) -> int:
    """Return the digest of a commit as a transaction version, which Delta keeps when it cleans up its history."""
    return int(digest(files)[:15], 16)


def live_files(table: Any) -> dict[str, dict[str, str | None]]:
    """Return the paths of the files of a table, with the values of their partitions as text."""
    actions, prefix = pa.table(table.get_add_actions(flatten=True)), "partition."
    by = [name for name in actions.column_names if name.startswith(prefix)]
    names = [name.removeprefix(prefix) for name in by]
    paths, *values = (as_texts(actions.column(name)) for name in ("path", *by))
    rows = zip(*values, strict=True) if values else [()] * len(paths)
    return {unquote(str(path)): dict(zip(names, row, strict=True)) for path, row in zip(paths, rows, strict=True)}

"""What a subtask writes at the end of an epoch: its changes, and with them parts of its base if it is told to.

Promises: an epoch of state on disk writes what it changed and at most as many parts as it was told, one after another;
what was restored from elsewhere, and state in memory, is written anew as a whole; what an epoch wrote, added to the
chain it began from, is its state.
Does not know: operators, engines, where files go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from millstream.errors import ExternalError
from millstream.state import deltas
from millstream.state.backend import OperatorState
from millstream.state.cutting import Cutter
from millstream.state.handles import Chain, Handle, Lineage, Part
from millstream.state.parts import Compaction, Rewrite, is_renewed, next_groups

_EVERYTHING = Rewrite(1 << 15)  # as many parts as there can be key groups


class StoredFile(Protocol):
    """A file as storage knows it."""

    @property
    def name(self) -> str:
        """Its name in the storage."""

    @property
    def size(self) -> int:
        """Its bytes."""

    @property
    def sha256(self) -> str:
        """Its checksum."""


class StateFileDamaged(ExternalError):
    """A state file is missing, or does not hold what was written to it. `file` is its name in the storage."""

    hint = "restore it from a copy, or start from another checkpoint or savepoint"

    def __init__(self, file: str, problem: str, *, missing: bool) -> None:
        self.file, self.problem, self.missing = file, problem, missing
        super().__init__(problem)


class StateFiles(Protocol):
    """Where state files go; the engine provides it."""

    def write(self, name: str, data: bytes) -> StoredFile:
        """Store a file; the answer has its full name, size and SHA-256."""

    def read(self, handle: Handle) -> bytes:
        """The verified content of a file; `StateFileDamaged` if there is none."""


def save(
    state: OperatorState,
    lineage: Lineage,
    wanted: Compaction | None,
    files: StateFiles,
    epoch: int,
    name: Callable[[str], str],
) -> Chain:
    """Write the end of an epoch that began from `lineage`; gives the files, as `Lineage.extended` takes them.

    `name` makes the name of a file from what tells it from others of this epoch."""
    if wanted == 0:
        wanted = _EVERYTHING
    if isinstance(wanted, Rewrite) and (state.changed or lineage.restored):
        return _renew(state, lineage, wanted, files, epoch, name)
    since = max(wanted, len(lineage.bases)) if isinstance(wanted, int) else None
    changed = state.delta() if since is None else state.merged(lineage, files.read, since)
    if changed is None:
        state.unchanged()
        return ()
    data, rows = changed
    handle = _written(files, name(""), data, rows, epoch)
    if since is not None:
        replaced = lineage.own[since:]
        follows = replaced[0].follows if replaced else ""
        handle = replace(handle, covers=tuple(old.name for old in replaced), follows=follows)
    state.settle(handle.name)
    return (handle,)


def _renew(
    state: OperatorState,
    lineage: Lineage,
    wanted: Rewrite,
    files: StateFiles,
    epoch: int,
    name: Callable[[str], str],
) -> Chain:
    """Parts of the base, then what changed. Values in memory that are all in the base need no file of changes."""
    before, ours = state.version, state.key_range
    limits = replace(wanted, rows=_rows(lineage, wanted))
    at_once = lineage.restored or state.is_in_memory
    after, most = (Lineage(), _EVERYTHING.parts) if at_once else (lineage, wanted.parts)
    cutter = Cutter(state)
    written: list[Handle] = []
    while len(written) < most and not is_renewed(after, epoch):
        groups, data, rows, chunks = cutter.cut(next_groups(after, ours, limits), limits)
        part = None if groups == ours else Part(groups, groups, ours, chunks)
        handle = replace(_written(files, name(f".{len(written)}"), data, rows, epoch), base=True, part=part)
        written.append(handle)
        after = after.extended(handle)
    if state.is_in_memory and is_renewed(after, epoch):
        state.settle(after.version)
        return tuple(written)
    data, rows = state.delta() or (deltas.encode(()), 0)
    changes = replace(_written(files, name(""), data, rows, epoch), follows=before)
    state.settle(changes.name)
    return (*written, changes)


def _rows(lineage: Lineage, wanted: Rewrite) -> int:
    """How many entries a part may have, by what entries weigh so far."""
    handles = lineage.handles
    rows = sum(handle.rows for handle in handles)
    average = sum(handle.size for handle in handles) // rows if rows else 1
    return max(1, min(wanted.rows, wanted.size // max(1, average)))


def _written(files: StateFiles, name: str, data: bytes, rows: int, epoch: int) -> Handle:
    stored = files.write(name, data)
    return Handle(stored.name, stored.size, stored.sha256, epoch, rows)

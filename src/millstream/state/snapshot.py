"""The snapshot of a subtask's state at the end of an epoch: a delta, and on request parts of a new base.

Promises: state on disk writes a delta and at most the requested number of parts, one after another; restored state and
state in memory is written as one complete base; the lineage before the epoch, extended by the files of the epoch, is
the state after it.
Does not know: operators, engines, where files are stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from millstream.errors import ExternalError
from millstream.state import deltas
from millstream.state.backend import OperatorState
from millstream.state.compaction import Compaction, Rewrite, is_rewritten, select_next_groups
from millstream.state.handles import Chain, Handle, Lineage, Part
from millstream.state.part_encoder import PartEncoder

_ALL_PARTS = Rewrite(1 << 15)  # more parts than there can be key groups: rewrite everything


class StoredFile(Protocol):
    """A file that was written to storage."""

    @property
    def name(self) -> str:
        """Its name in the storage."""

    @property
    def size(self) -> int:
        """Its size in bytes."""

    @property
    def sha256(self) -> str:
        """Its SHA-256 checksum in hexadecimal digits."""


class StateFileDamaged(ExternalError):
    """A state file is missing, or its content is not what was written. `file` is its name in the storage."""

    hint = "restore the file from a copy, or start the job from another checkpoint or savepoint"

    def __init__(self, file: str, problem: str, *, missing: bool) -> None:
        self.file, self.problem, self.missing = file, problem, missing
        super().__init__(problem)


class StateFiles(Protocol):
    """Storage of state files; the engine provides it."""

    def write(self, name: str, data: bytes) -> StoredFile:
        """Write a file and return its full name, size and checksum."""

    def read(self, handle: Handle) -> bytes:
        """Return the content of a file after checking it; raises `StateFileDamaged`."""


def write_snapshot(
    state: OperatorState,
    lineage: Lineage,
    compaction: Compaction | None,
    files: StateFiles,
    epoch: int,
    name: Callable[[str], str],
) -> Chain:
    """Write the state files of an epoch that began at `lineage`; returns their handles for `Lineage.extend`.

    `name` makes the name of a file from a suffix, which differs between the files of this epoch."""
    if compaction == 0:
        compaction = _ALL_PARTS
    if isinstance(compaction, Rewrite) and (state.has_changes or lineage.restored):
        return _rewrite(state, lineage, compaction, files, epoch, name)
    first = max(compaction, len(lineage.bases)) if isinstance(compaction, int) else None
    delta = state.encode_delta() if first is None else state.encode_merged_delta(lineage, files.read, first)
    if delta is None:
        state.end_epoch(state.version)
        return ()
    data, rows = delta
    handle = _write(files, name(""), data, rows, epoch)
    if first is not None:
        replaced = lineage.own[first:]
        follows = replaced[0].follows if replaced else ""
        handle = replace(handle, covers=tuple(old.name for old in replaced), follows=follows)
    state.end_epoch(handle.name)
    return (handle,)


def _rewrite(
    state: OperatorState,
    lineage: Lineage,
    rewrite: Rewrite,
    files: StateFiles,
    epoch: int,
    name: Callable[[str], str],
) -> Chain:
    """Write parts of the base, then the delta. State in memory needs no delta if the base is complete."""
    version, key_range = state.version, state.key_range
    limits = replace(rewrite, rows=_limit_rows(lineage, rewrite))
    is_complete_base = lineage.restored or state.is_in_memory
    after, max_parts = (Lineage(), _ALL_PARTS.parts) if is_complete_base else (lineage, rewrite.parts)
    encoder = PartEncoder(state)
    parts: list[Handle] = []
    while len(parts) < max_parts and not is_rewritten(after, epoch):
        groups, data, rows, chunks = encoder.encode(select_next_groups(after, key_range, limits), limits)
        part = None if groups == key_range else Part(groups, groups, key_range, chunks)
        handle = replace(_write(files, name(f".{len(parts)}"), data, rows, epoch), base=True, part=part)
        parts.append(handle)
        after = after.extend(handle)
    if state.is_in_memory and is_rewritten(after, epoch):
        state.end_epoch(after.version)
        return tuple(parts)
    data, rows = state.encode_delta() or (deltas.encode(()), 0)
    delta = replace(_write(files, name(""), data, rows, epoch), follows=version)
    state.end_epoch(delta.name)
    return (*parts, delta)


def _limit_rows(lineage: Lineage, rewrite: Rewrite) -> int:
    """Return the number of entries of a part, from the average size of the entries so far."""
    handles = lineage.handles
    rows = sum(handle.rows for handle in handles)
    average = sum(handle.size for handle in handles) // rows if rows else 1
    return max(1, min(rewrite.rows, rewrite.size // max(1, average)))


def _write(files: StateFiles, name: str, data: bytes, rows: int, epoch: int) -> Handle:
    stored = files.write(name, data)
    return Handle(stored.name, stored.size, stored.sha256, epoch, rows)

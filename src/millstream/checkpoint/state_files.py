"""State files of a job on the checkpoint storage, which every task can reach.

Promises: a file is read completely and its checksum is checked; a file that is missing or incomplete is read again a
few times, because network mounts can be behind, before it is an error; names are unique for each attempt, so two
writers never write the same file; packed files are read like any other.
Does not know: the content of files."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any

from millstream.checkpoint.storage import CheckpointStorage, Stored, StoredFile
from millstream.files.errors import CorruptFile, MissingFile
from millstream.state.snapshot import StateFileDamaged

PATIENCE = (0.1, 0.4, 1.0)  # seconds between reads of a file that is missing or incomplete


class StateReader:
    """Reads state files of one storage.

    The last pack is cached, because its files are usually read one after another."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage
        self._pack: tuple[str, bytes] | None = None

    def read(self, handle: Stored) -> bytes:
        """Return the content of a file after checking it."""
        name = getattr(handle, "pack", "")
        if not name:
            return self._storage.read(handle)
        if self._pack is None or self._pack[0] != name:
            self._pack = (name, self._storage.read_unverified(name))
        start = getattr(handle, "offset", 0)
        data = self._pack[1][start : start + handle.size]
        if hashlib.sha256(data).hexdigest() != handle.sha256:
            self._pack = None
            part, actual = f"{name} (from byte {start})", f"SHA-256 {hashlib.sha256(data).hexdigest()}"
            raise CorruptFile(part, f"SHA-256 {handle.sha256}", actual)
        return data

    def __getstate__(self) -> dict[str, Any]:
        return {"_storage": self._storage, "_pack": None}


class JobStateFiles:
    """Writes and reads the state files of a job; also reads those of the job it was restored from."""

    def __init__(
        self,
        storage: CheckpointStorage,
        restored: CheckpointStorage | None = None,
        patience: Sequence[float] = PATIENCE,
    ) -> None:
        self._storage = storage
        self._patience = tuple(patience)
        self._own = StateReader(storage)
        self._restored = None if restored is None else StateReader(restored)

    def write(self, name: str, data: bytes) -> StoredFile:
        """Write a state file of this job."""
        return self._storage.write(f"shared/{name}", data)

    def read(self, handle: Stored) -> bytes:
        """Return the content of a file after checking it; raises `StateFileDamaged`."""
        for pause in self._patience:
            try:
                return self._read(handle)
            except (MissingFile, CorruptFile):
                time.sleep(pause)
        try:
            return self._read(handle)
        except (MissingFile, CorruptFile) as problem:
            name = getattr(handle, "pack", "") or handle.name
            raise StateFileDamaged(name, problem.message, missing=isinstance(problem, MissingFile)) from problem

    def _read(self, handle: Stored) -> bytes:
        try:
            return self._own.read(handle)
        except MissingFile:
            if self._restored is None:
                raise
            return self._restored.read(handle)

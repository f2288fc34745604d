"""State files where every task of a job can reach them.

Promises: a file is read whole and verified, or not at all; one that cannot be seen, or not as a whole, is read again
before it counts as missing or damaged; names are unique per attempt, so writers never meet; files that were packed into
one are read as if they had not been.
Does not know: what is in a file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any

from millstream.checkpoint.storage import CheckpointStorage, Stored, StoredFile
from millstream.files.errors import CorruptFile, MissingFile
from millstream.state.saving import StateFileDamaged

PATIENCE = (0.1, 0.4, 1.0)  # seconds between reads of a file that a network mount may not show at once, or not whole


class StateReader:
    """Reads state files of one storage; a pack is kept while parts of it are asked for."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage
        self._pack: tuple[str, bytes] | None = None

    def read(self, handle: Stored) -> bytes:
        """The verified content of a file."""
        name = getattr(handle, "pack", "")
        if not name:
            return self._storage.read(handle)
        if self._pack is None or self._pack[0] != name:
            self._pack = (name, self._storage.read_unverified(name))
        start = getattr(handle, "offset", 0)
        data = self._pack[1][start : start + handle.size]
        if hashlib.sha256(data).hexdigest() != handle.sha256:
            self._pack = None
            place, found = f"{name} (from byte {start})", f"SHA-256 {hashlib.sha256(data).hexdigest()}"
            raise CorruptFile(place, f"SHA-256 {handle.sha256}", found)
        return data

    def __getstate__(self) -> dict[str, Any]:
        return {"_storage": self._storage, "_pack": None}


class JobStateFiles:
    """The state files of a job; also reads those of the job it was restored from."""

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
        """Store a file of this job."""
        return self._storage.write(f"shared/{name}", data)

    def read(self, handle: Stored) -> bytes:
        """The verified content of a file; `StateFileDamaged` if it is missing or not what was written."""
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

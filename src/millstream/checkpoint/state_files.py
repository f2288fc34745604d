"""State files where every task of a job can reach them.

Promises: a file is read whole and verified, or not at all; names are unique per attempt, so writers never meet.
Does not know: what is in a file."""

from __future__ import annotations

from millstream.checkpoint.storage import CheckpointStorage, MissingFile, Stored, StoredFile


class JobStateFiles:
    """The state files of a job; also reads those of the job it was restored from."""

    def __init__(self, storage: CheckpointStorage, restored: CheckpointStorage | None = None) -> None:
        self._storage = storage
        self._restored = restored

    def write(self, name: str, data: bytes) -> StoredFile:
        """Store a file of this job."""
        return self._storage.write(f"shared/{name}", data)

    def read(self, handle: Stored) -> bytes:
        """The verified content of a file."""
        try:
            return self._storage.read(handle)
        except MissingFile:
            if self._restored is None:
                raise
            return self._restored.read(handle)

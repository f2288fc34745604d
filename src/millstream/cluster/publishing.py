"""Publishes checkpoints on storage that may be slow: assigns their numbers, and determines whether they exist.

Promises: a number is used once. A checkpoint that expired or failed either exists in the end or never will, and which
of the two is known before anything is done that depends on it. Work that continues in another thread does not change
the job.
Does not know: schedules, sinks, which checkpoints are kept.

The protocol. Metadata is written with create-if-absent, so nothing that exists is ever replaced.

 1. The job's thread assigns number N, which is unresolved from now on.
 2. A thread with a deadline resolves the numbers before N, merges small state files and writes the metadata of N under
    a temporary name.
 3. It checks whether the attempt was given up; if not, it creates `chk-N/_metadata`.
 4. If the job's thread gets the result in time, N is resolved, and its output is committed.
 5. If it gets none in time, or a failure, it gives the attempt up. The thread of step 2 may have passed step 3 already
    and be blocked in the file system, so N may still appear, at any time.
 6. Before the next checkpoint, and before a recovery or a failed job aborts output, every unresolved number is
    resolved: a void file is created under it, if it is free. Of the void file and the late checkpoint exactly one
    exists. If the void file was first, the late attempt fails. If the checkpoint was first, it is a checkpoint like any
    other, and a recovery restores it if it is the newest.

So all numbers below one that exists are taken, and a leader of a later term that takes the next free number stops every
attempt of the leader before it (see `leadership`). A void file stays until every kept checkpoint is newer. A late
attempt that finds its number free after that deletes what it created; if it dies before, that is older than every kept
checkpoint, and is deleted with the next one.

A crash after 1 or 2: nothing exists but a temporary file. After 3, before 4 is complete: the checkpoint exists,
recovery restores it as the newest and commits its output. After 5: as after 2 or 3; the late attempt ended with the
process. After 6: the number is void, or the late checkpoint exists and names output that is still staged, because
output is aborted only afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.packing import pack_small_files
from millstream.checkpoint.storage import CheckpointStorage
from millstream.checkpoint.storage_errors import CheckpointTaken, VoidCheckpoint
from millstream.errors import ExternalError

T = TypeVar("T")
Deadline = Callable[[Callable[[], T]], T]  # runs some work, or raises if it takes too long


class AttemptGivenUp(ExternalError):
    """A checkpoint took too long, and the job stopped waiting for it."""

    def __init__(self, checkpoint: int) -> None:
        super().__init__(f"checkpoint {checkpoint} was given up before it was complete")


class PublishAttempt:
    """One attempt to publish one checkpoint. `run` may go on in another thread after the job gave it up."""

    def __init__(self, metadata: CheckpointMetadata, storage: CheckpointStorage, *, merges: bool) -> None:
        self.metadata = metadata
        self._storage = storage
        self._merges = merges
        self._lock = threading.Lock()
        self._given_up = False
        self._is_void = False
        self._tried: bytes | None = None  # the metadata that it may have published

    def run(self) -> CheckpointMetadata:
        """Publish, and return the checkpoint as it was published."""
        number = self.metadata.checkpoint
        metadata = pack_small_files(self.metadata, self._storage) if self._merges else self.metadata
        data = metadata.to_bytes()
        try:
            self._storage.publish(number, data, allowed=lambda: self._begin(data))
        except (AttemptGivenUp, CheckpointTaken):
            raise
        except ExternalError:
            if not self._storage.holds(number, data):
                raise
            # the checkpoint exists, and must be durable before its output is committed
            self._storage.sync_checkpoint(number)
        if self._is_void:  # the void file was deleted, with all checkpoints older than the kept ones
            self._storage.delete_checkpoint(number)
            raise AttemptGivenUp(number)
        return metadata

    def _begin(self, data: bytes) -> None:
        with self._lock:
            if self._given_up:
                raise AttemptGivenUp(self.metadata.checkpoint)
            self._tried = data

    def give_up(self) -> None:
        """Give up the attempt: it does not begin to publish; a publish that has begun may still succeed."""
        with self._lock:
            self._given_up = True

    def resolve(self) -> bool:
        """Return whether the checkpoint exists; if it does not, it never will, because its number is void.

        Raises `CheckpointTaken` when another driver's checkpoint has the number."""
        number = self.metadata.checkpoint
        try:
            self._storage.void(number)
        except CheckpointTaken:
            try:
                existing = self._storage.read_metadata(number)
            except VoidCheckpoint:
                return False
            if existing != self._tried:
                raise
            return True
        self._is_void = True
        return False


class Publisher:
    """The numbers of one job's checkpoints, and its unresolved attempts. For the job's thread only."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage
        self._unresolved: dict[int, PublishAttempt] = {}
        self.next_id = 1

    def publish(
        self,
        metadata: CheckpointMetadata,
        deadline: Deadline[CheckpointMetadata],
        *,
        merges: bool,
        confirm: Callable[[int], None] = lambda _: None,
    ) -> CheckpointMetadata:
        """Publish a checkpoint and return it as it was published. Its number is used even if that fails. `confirm`
        raises if the checkpoint is not valid, or if that is not known: then it is unresolved."""
        earlier = tuple(self._unresolved.values())
        attempt = PublishAttempt(metadata, self._storage, merges=merges)
        self.next_id = metadata.checkpoint + 1
        self._unresolved[metadata.checkpoint] = attempt

        def run() -> CheckpointMetadata:
            for other in earlier:
                other.resolve()
            return attempt.run()

        try:
            published = deadline(run)
        finally:
            attempt.give_up()
        confirm(published.checkpoint)
        self._unresolved.clear()
        return published

    def resolve(self, deadline: Deadline[list[CheckpointMetadata]]) -> list[CheckpointMetadata]:
        """Resolve every attempt that failed or expired, and return the checkpoints that exist."""
        attempts = tuple(self._unresolved.values())
        if not attempts:
            return []

        def resolve_all() -> list[CheckpointMetadata]:
            existing = []
            for attempt in attempts:
                # another driver has the number; the caller checks whether this driver still leads
                with suppress(CheckpointTaken):
                    if attempt.resolve():
                        existing.append(attempt.metadata)
            return existing

        existing = deadline(resolve_all)
        self._unresolved.clear()
        return existing

    def is_unresolved(self, checkpoint: int) -> bool:
        """Whether an attempt at this number failed or expired, and may still succeed."""
        return checkpoint in self._unresolved

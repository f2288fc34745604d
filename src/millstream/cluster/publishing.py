"""How checkpoints get their numbers and come to exist, when storage may be slow.

Promises: a number is used once; a checkpoint that expired or failed either exists in the end or never will, and which
of the two is known before anything is done that would contradict it; work that is left behind in another thread changes
nothing of the job.
Does not know: schedules, sinks, which checkpoints are kept.

The protocol. Metadata is written with create-if-absent, so nothing that exists is ever replaced.

 1. The job's thread allots number N and counts it as unresolved.
 2. A thread with a deadline resolves the numbers before N, merges small state files and writes the metadata of N under
    a temporary name.
 3. It looks whether the attempt was given up; if not, it creates `chk-N/_metadata`.
 4. The job's thread hears of it in time: N is resolved, and its output is committed.
 5. It does not, or hears of a failure: it gives the attempt up. The thread of step 2 may have passed step 3 already and
    be waiting inside the file system, so N may still appear, at any time.
 6. Before the next checkpoint, before a recovery takes back output, and before a failed job does, every unresolved
    number is resolved: a void file is created under it, if absent. Of the void file and the late checkpoint exactly one
    exists. If the void file was first, the late attempt fails. If the checkpoint was first, it is one like any other,
    and a recovery goes on from it if it is the newest.

So all numbers below one that exists are taken, and a leader of a later term that takes the next free number stops every
attempt of the leader before it (see `leadership`). A void file stays until every kept checkpoint is newer. A late
attempt that finds its number free after that deletes what it made; if it dies before, what is left is older than every
kept checkpoint, and is deleted with the next one.

A crash after 1 or 2: nothing exists but a temporary file. After 3, before 4 is complete: the checkpoint exists,
recovery takes it as the newest and commits its output. After 5: as after 2 or 3, whichever came; the process is gone
and with it the late attempt. After 6: the number is void, or the late checkpoint exists and names output that is still
staged, because output is taken back only afterwards."""

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
Deadline = Callable[[Callable[[], T]], T]  # does some work, or raises when it takes too long and leaves it behind


class AttemptGivenUp(ExternalError):
    """The job did not wait for this checkpoint any longer."""

    def __init__(self, checkpoint: int) -> None:
        super().__init__(f"checkpoint {checkpoint} was given up before it was complete")


class PublishAttempt:
    """One attempt to make one checkpoint exist. `run` may be left behind in another thread."""

    def __init__(self, metadata: CheckpointMetadata, storage: CheckpointStorage, *, merges: bool) -> None:
        self.metadata = metadata
        self._storage = storage
        self._merges = merges
        self._lock = threading.Lock()
        self._given_up = False
        self._voided = False
        self._tried: bytes | None = None  # what it may have published

    def run(self) -> CheckpointMetadata:
        """Publish; gives the checkpoint as it was published."""
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
            self._storage.sync_checkpoint(number)  # it exists all the same, and must before its output does
        if self._voided:  # the void file was deleted, with all checkpoints before the kept ones
            self._storage.delete_checkpoint(number)
            raise AttemptGivenUp(number)
        return metadata

    def _begin(self, data: bytes) -> None:
        with self._lock:
            if self._given_up:
                raise AttemptGivenUp(self.metadata.checkpoint)
            self._tried = data

    def give_up(self) -> None:
        """Do not begin to publish any more; what has begun may still succeed."""
        with self._lock:
            self._given_up = True

    def resolve(self) -> bool:
        """Whether the checkpoint exists; if it does not, it never will, because its number is void.

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
        self._voided = True
        return False


class Publisher:
    """The numbers of one job's checkpoints, and the attempts whose outcome is open. For the job's thread only."""

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
        """Make a checkpoint exist; gives it as it was published. Its number is used up, whatever comes of it. `confirm`
        raises if it does not count, or if that cannot be found out: then it is unresolved."""
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
        """Settle what came of every attempt that failed or expired; gives the checkpoints that exist after all."""
        attempts = tuple(self._unresolved.values())
        if not attempts:
            return []

        def resolve_all() -> list[CheckpointMetadata]:
            landed = []
            for attempt in attempts:
                with suppress(CheckpointTaken):  # by another driver: whether this one leads is asked elsewhere
                    if attempt.resolve():
                        landed.append(attempt.metadata)
            return landed

        landed = deadline(resolve_all)
        self._unresolved.clear()
        return landed

    def is_unresolved(self, checkpoint: int) -> bool:
        """Whether an attempt at this number failed or expired, and may still succeed."""
        return checkpoint in self._unresolved

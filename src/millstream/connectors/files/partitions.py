"""Partition commit: a bucket that is complete says so, by a file such as `_SUCCESS`.

Promises: the file appears after the part files of the checkpoint that completed the bucket, and is written again
harmlessly; a bucket that waits for its delay is remembered in a hidden file, across restarts.
Does not know: what a partition means to a catalog."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from millstream.connectors.files.commit import FileCommitter
from millstream.connectors.files.compaction import CompactingCommitter
from millstream.connectors.files.filesystems import Files, joined
from millstream.connectors.files.rolling import BadOutputFile
from millstream.connectors.files.staging import STAGING, OutputFailure, StagedFile
from millstream.model.sink import Committer

_MARKS = f"{STAGING}/partitions"


@dataclass(frozen=True)
class PartitionCommit:
    """A bucket is complete `delay` milliseconds of processing time after its first record: at once, by default."""

    delay: int = 0
    success_file: str = "_SUCCESS"

    def __post_init__(self) -> None:
        if self.delay < 0 or "/" in self.success_file or not self.success_file.startswith(("_", ".")):
            message = f"a partition commit with delay {self.delay} and success file {self.success_file!r}"
            raise BadOutputFile(message, hint="the delay is not negative; the file's name begins with _ and has no /")


class PartitionCommitter(Committer):
    """Commits files, then marks the buckets that are complete."""

    def __init__(
        self, base: str, files: Files, inner: FileCommitter | CompactingCommitter, policy: PartitionCommit
    ) -> None:
        self._base, self._files, self._inner, self._policy = base, files, inner, policy

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """As the inner committer; then note the buckets, and mark those whose time has come."""
        staged = [StagedFile.from_json(data) for data in committables]
        try:
            first: dict[str, int] = {}
            for part in staged:
                first[part.bucket] = min(first.get(part.bucket, part.time), part.time)
            for bucket, time in first.items():
                self._note(bucket, time)
            self._inner.commit(checkpoint, committables)
            self._mark(max((part.time for part in staged), default=0))
        except OSError as error:
            raise OutputFailure(str(error.filename or self._base), error, action="commit") from error

    def abort(self, committables: Sequence[Any]) -> None:
        """As the inner committer."""
        self._inner.abort(committables)

    def close(self) -> None:
        """As the inner committer; what waits only for compaction is marked after it."""
        self._inner.close()
        with suppress(OSError):
            self._mark(0)
            self._files.remove_directory(joined(self._base, _MARKS))
            self._files.remove_directory(joined(self._base, STAGING))

    def _note(self, bucket: str, time: int) -> None:
        path = joined(self._base, f"{_MARKS}/{quote(bucket, safe='') or '.'}@")
        if not self._files.exists(path):
            with self._files.writing(path) as stream:
                stream.write(str(time).encode())

    def _mark(self, now: int) -> None:
        for name in self._files.names(joined(self._base, _MARKS)):
            path = joined(self._base, f"{_MARKS}/{name}")
            with self._files.open(path) as stream:
                text = stream.read()
            begun = int(text) if text.isdigit() else 0
            bucket = "" if name == ".@" else unquote(name.removesuffix("@"))
            compacting = isinstance(self._inner, CompactingCommitter) and self._inner.waiting(bucket)
            if (self._policy.delay and begun + self._policy.delay > now) or compacting:
                continue
            whole = f"{bucket}/{self._policy.success_file}" if bucket else self._policy.success_file
            with self._files.writing(joined(self._base, whole)):
                pass
            self._files.remove(path)

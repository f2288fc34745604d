"""Compaction: committed files are kept hidden until there are enough of them for one large file.

Promises: what is committed is in exactly one place: waiting, or in a file that is seen; a crash between any two steps
does not show. Nothing waits longer than the strategy says, and nothing waits when the job is FINISHED, or CANCELED
after a commit that completed. What waits when it FAILED does so until a job goes on from its checkpoint. Only the
driver that runs the job compacts: one that was replaced may still have to close its committer.
Does not know: how a file is staged, or of another sink that writes below the same base path with compaction: there
must be none.

A file that is committed goes to `.staging/pending/`, under a name that begins with its checkpoint. When the files of a
bucket are large enough together, or the oldest has waited for enough checkpoints:

    1. write down which files become which file (`.staging/compacted/<name>`)
    2. write that file, under its final name
    3. remove the files it was made of
    4. remove what was written down

A note that is found means 2 while all its files are there, and 3 as soon as one is gone. The final name is made of the
names of the files and of nothing else, so writing it twice writes the same."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import quote, unquote

from millstream.connector.sink import Committer
from millstream.connectors.files.commit import FileCommitter, Merge, concatenate
from millstream.connectors.files.rolling import BadOutputFile, OutputFileConfig
from millstream.connectors.files.staging import STAGING, NotAPath
from millstream.files.contract import FileSystem
from millstream.files.errors import ConnectorStorageFailure
from millstream.files.locations import join_path

_log = logging.getLogger("millstream.files")

_PENDING = f"{STAGING}/pending"
_NOTES = f"{STAGING}/compacted"


@dataclass(frozen=True)
class FileCompactStrategy:
    """When files are compacted: once they have `size_threshold` bytes together, or after so many checkpoints."""

    size_threshold: int = -1
    num_checkpoints_before_compaction: int = -1
    num_compact_threads: int = 1

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        """Return a new builder."""
        return FileCompactStrategy.Builder()

    class Builder:
        """Builds a FileCompactStrategy."""

        def __init__(self) -> None:
            self._size, self._checkpoints, self._threads = -1, -1, 1

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Compact after so many checkpoints, however small the files are."""
            if num_checkpoints_before_compaction <= 0:
                message = f"compaction after {num_checkpoints_before_compaction} checkpoints"
                raise BadOutputFile(message, hint="give a number above 0")
            self._checkpoints = num_checkpoints_before_compaction
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Compact once the files of a bucket have that many bytes together."""
            self._size = size_threshold
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Accepted for compatibility with Flink: files are compacted one after the other."""
            if num_compact_threads <= 0:
                message = f"compaction with {num_compact_threads} threads"
                raise BadOutputFile(message, hint="give a number above 0")
            if num_compact_threads > 1:
                _log.warning("set_num_compact_threads has no effect: files are compacted one after the other")
            self._threads = num_compact_threads
            return self

        def build(self) -> FileCompactStrategy:
            """Build the strategy."""
            if self._size < 0 and self._checkpoints < 0:
                message = "a compaction strategy without a condition"
                raise BadOutputFile(message, hint="set a size threshold, or compact on checkpoints")
            return FileCompactStrategy(self._size, self._checkpoints, self._threads)


@dataclass(frozen=True)
class FileCompactor:
    """Merges several files into one."""

    kind: str
    delimiter: bytes = b""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """One file after the other, with the delimiter between them: for lines."""
        return FileCompactor("concat", file_delimiter or b"")

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Each file stays as it is."""
        return FileCompactor("identical")

    @staticmethod
    def record_wise_file_compactor() -> FileCompactor:
        """All records are written again into one file, by the sink's own format: for Parquet, ORC and Avro."""
        return FileCompactor("record-wise")

    def merge(self, of_format: Merge | None) -> Merge:
        """What merges files of the sink's format."""
        if self.kind == "record-wise":
            if of_format is None:
                message = "files of this format cannot be compacted record by record"
                raise BadOutputFile(message, hint="use a bulk format of millstream, or no compaction")
            return of_format
        return concatenate if not self.delimiter else self._delimited

    def _delimited(self, streams: Sequence[BinaryIO], into: BinaryIO) -> None:
        for index, stream in enumerate(streams):
            if index:
                into.write(self.delimiter)
            concatenate([stream], into)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A file that waits: its name below `pending`, and what that name says."""

    name: str
    checkpoint: int
    bucket: str
    size: int


class CompactingCommitter(Committer):
    """Commits files as pending, and compacts pending files."""

    def __init__(
        self,
        base: str,
        files: FileSystem,
        strategy: FileCompactStrategy,
        compactor: FileCompactor,
        merge: Merge,
        names: OutputFileConfig,
        of_format: Merge | None,
    ) -> None:
        self._base, self._files, self._strategy, self._names = base, files, strategy, names
        self._compactor, self._merge = compactor, compactor.merge(of_format)
        self._inner = FileCommitter(base, files, merge, place=_waiting_name)
        self._settled = False

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Bring what was begun to its end, let the new files wait, and compact what is due."""
        self._settled = False
        try:
            self._resume()
            self._inner.commit(checkpoint, committables)
            self._compact(checkpoint)
            self._settled = True
        except OSError as error:
            raise ConnectorStorageFailure(str(error.filename or self._base), "compact", error) from error

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove staged files that will never be committed."""
        self._inner.abort(committables)

    def waiting(self, bucket: str) -> bool:
        """Whether files of a bucket wait."""
        return any(each.bucket == bucket for each in self._pending())

    def finish(self) -> None:
        """Compact all that waits: it is committed, so it may be seen.

        Not after a commit that failed, nor before the first: a file that waits may still have its staged original then,
        and the commit that is to be repeated would let it wait again."""
        try:
            if self._settled:
                self._resume()
                self._compact(None)
        except OSError as error:
            raise ConnectorStorageFailure(str(error.filename or self._base), "compact", error) from error
        for name in (_PENDING, _NOTES):
            self._files.remove_empty_dir(join_path(self._base, name))
        self._inner.finish()

    def _pending(self) -> list[_Waiting]:
        found = []
        for name in self._files.list_if_exists(self._path(_PENDING)):
            checkpoint, _, final = name.partition("@")
            if checkpoint.isdigit() and final:
                size = self._files.status(self._path(f"{_PENDING}/{name}"))[0]
                found.append(_Waiting(name, int(checkpoint), unquote(final).rpartition("/")[0], size))
        return found

    def _compact(self, checkpoint: int | None) -> None:
        buckets: dict[str, list[_Waiting]] = {}
        for each in self._pending():
            buckets.setdefault(each.bucket, []).append(each)
        for bucket, members in buckets.items():
            if checkpoint is None or self._due(members, checkpoint):
                self._note(bucket, members)

    def _due(self, members: Sequence[_Waiting], checkpoint: int) -> bool:
        strategy = self._strategy
        after = strategy.num_checkpoints_before_compaction
        if after > 0 and min(each.checkpoint for each in members) <= checkpoint - after + 1:
            return True
        return 0 <= strategy.size_threshold <= sum(each.size for each in members)

    def _note(self, bucket: str, members: Sequence[_Waiting]) -> None:
        groups = [[each] for each in members] if self._compactor.kind == "identical" else [list(members)]
        for group in groups:
            names = [each.name for each in group]
            tag = hashlib.blake2b("\0".join(names).encode(), digest_size=8).hexdigest()
            final = f"compacted-{self._names.part_prefix}-{tag}{self._names.part_suffix}"
            note = {"final": f"{bucket}/{final}" if bucket else final, "files": names}
            path = self._path(f"{_NOTES}/{tag}")
            with self._files.writing(f"{path}.tmp" if self._files.has_atomic_rename else path) as stream:
                stream.write(json.dumps(note).encode())
            if self._files.has_atomic_rename:
                self._files.rename_durably(f"{path}.tmp", path)
            self._carry_out(path, note)

    def _resume(self) -> None:
        """Finish the compactions whose notes exist."""
        for name in self._files.list_if_exists(self._path(_NOTES)):
            path = self._path(f"{_NOTES}/{name}")
            if name.endswith(".tmp"):
                self._files.remove(path)
                continue
            with self._files.open(path) as stream:
                self._carry_out(path, json.loads(stream.read()))

    def _carry_out(self, path: str, note: dict[str, Any]) -> None:
        final = note["final"]
        if final.startswith("/") or ".." in final.split("/"):
            raise NotAPath(final)
        inputs = [self._path(f"{_PENDING}/{name}") for name in note["files"] if "/" not in name]
        there = [each for each in inputs if self._files.exists(each)]
        if len(there) == len(note["files"]):
            self._write(there, self._path(final))
        for each in there:
            with suppress(FileNotFoundError):
                self._files.remove(each)
        self._files.remove(path)

    def _write(self, inputs: Sequence[str], final: str) -> None:
        streams = [self._files.open(each) for each in inputs]
        hidden = self._path(f"{_NOTES}/.{hashlib.blake2b(final.encode(), digest_size=8).hexdigest()}.tmp")
        try:
            with self._files.writing(hidden if self._files.has_atomic_rename else final) as whole:
                (concatenate if len(streams) == 1 else self._merge)(streams, whole)
        finally:
            for stream in streams:
                stream.close()
        if self._files.has_atomic_rename:
            self._files.rename_durably(hidden, final)

    def _path(self, name: str) -> str:
        return join_path(self._base, name)


def _waiting_name(checkpoint: int, final: str) -> str:
    return f"{_PENDING}/{max(checkpoint, 0):012d}@{quote(final, safe='')}"

"""Compaction: committed files are pending, and hidden, until there are enough of them for one large file.

Promises: a committed record is in exactly one file, pending or visible, also after a crash between any two steps. No
file is pending longer than the strategy allows, and none is when the job is FINISHED, or CANCELED after a complete
commit. Pending files of a job that FAILED stay until a job continues from its checkpoint. Only the driver that runs the
job compacts: one that was replaced may still have to close its committer.
Does not know: how a file is staged. There must be no other sink with compaction below the same base path.

A committed file is moved to `.staging/pending/`, under a name that begins with its checkpoint. When the files of a
bucket are large enough together, or the oldest was pending for enough checkpoints:

    1. write a note of which files are merged into which file (`.staging/compacted/<name>`)
    2. write that file, under its final name
    3. remove the files that were merged
    4. remove the note

If a note exists, step 2 is next while all its files exist, and step 3 as soon as one is missing. The final name depends
only on the names of the files, so writing it twice writes the same file."""

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
    """When files are compacted: once they have `size_threshold` bytes together, or after so many checkpoints.

    Example:
        >>> strategy = FileCompactStrategy.builder().set_size_threshold(128 << 20).build()

    """

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
            """Compact after so many checkpoints, however small the files are.

            Args:
                num_checkpoints_before_compaction: The number of checkpoints.

            """
            if num_checkpoints_before_compaction <= 0:
                message = f"compaction after {num_checkpoints_before_compaction} checkpoints"
                raise BadOutputFile(message, hint="use a number above 0")
            self._checkpoints = num_checkpoints_before_compaction
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Compact once the files of a bucket have that many bytes together.

            Args:
                size_threshold: The number of bytes.

            """
            self._size = size_threshold
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Accept the setting without effect: files are compacted one after the other.

            Args:
                num_compact_threads: A number above 0; one above 1 has no effect but a warning.

            """
            if num_compact_threads <= 0:
                message = f"compaction with {num_compact_threads} threads"
                raise BadOutputFile(message, hint="use a number above 0")
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
    """Merges several files into one.

    Example:
        >>> from millstream.common import Encoder
        >>> from millstream.datastream.connectors.file_system import FileSink
        >>> strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(5).build()
        >>> builder = FileSink.for_row_format("/data/totals", Encoder.simple_string_encoder())
        >>> sink = builder.enable_compact(strategy, FileCompactor.concat_file_compactor()).build()

    """

    method: str
    delimiter: bytes = b""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """Concatenate files, with the delimiter between them: for files of lines.

        Args:
            file_delimiter: The bytes between two files; none by default.

        """
        return FileCompactor("concat", file_delimiter or b"")

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Keep each file unchanged."""
        return FileCompactor("identical")

    @staticmethod
    def record_wise_file_compactor() -> FileCompactor:
        """Write all records again into one file, in the format of the sink: for Parquet, ORC and Avro."""
        return FileCompactor("record-wise")

    def merge(self, of_format: Merge | None) -> Merge:
        """Return the function that merges files of the sink's format.

        Args:
            of_format: Merges files record by record; None if the format of the sink cannot.

        """
        if self.method == "record-wise":
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
class _PendingFile:
    """A pending file: its name below `pending`, and what the name contains."""

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
        self._inner = FileCommitter(base, files, merge, name_part_file=_pending_name)
        self._is_committed = False

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Finish interrupted compactions, make the new files pending, and compact what is due."""
        self._is_committed = False
        try:
            self._resume()
            self._inner.commit(checkpoint, committables)
            self._compact(checkpoint)
            self._is_committed = True
        except OSError as error:
            raise ConnectorStorageFailure(str(error.filename or self._base), "compact", error) from error

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove staged files that will never be committed."""
        self._inner.abort(committables)

    def has_pending(self, bucket: str) -> bool:
        """Return whether files of a bucket are pending."""
        return any(pending.bucket == bucket for pending in self._pending())

    def finish(self) -> None:
        """Compact all pending files: they are committed, so they may become visible.

        This is not done after a failed commit, nor before the first: then the staged original of a pending file may
        still exist, and the repeated commit would make the file pending again."""
        try:
            if self._is_committed:
                self._resume()
                self._compact(None)
        except OSError as error:
            raise ConnectorStorageFailure(str(error.filename or self._base), "compact", error) from error
        for name in (_PENDING, _NOTES):
            self._files.remove_empty_dir(join_path(self._base, name))
        self._inner.finish()

    def _pending(self) -> list[_PendingFile]:
        pending_files = []
        for name in self._files.list_if_exists(self._path(_PENDING)):
            checkpoint, _, final = name.partition("@")
            if checkpoint.isdigit() and final:
                size = self._files.status(self._path(f"{_PENDING}/{name}"))[0]
                pending_files.append(_PendingFile(name, int(checkpoint), unquote(final).rpartition("/")[0], size))
        return pending_files

    def _compact(self, checkpoint: int | None) -> None:
        buckets: dict[str, list[_PendingFile]] = {}
        for pending in self._pending():
            buckets.setdefault(pending.bucket, []).append(pending)
        for bucket, members in buckets.items():
            if checkpoint is None or self._due(members, checkpoint):
                self._note(bucket, members)

    def _due(self, members: Sequence[_PendingFile], checkpoint: int) -> bool:
        strategy = self._strategy
        after = strategy.num_checkpoints_before_compaction
        if after > 0 and min(member.checkpoint for member in members) <= checkpoint - after + 1:
            return True
        return 0 <= strategy.size_threshold <= sum(member.size for member in members)

    def _note(self, bucket: str, members: Sequence[_PendingFile]) -> None:
        groups = [[member] for member in members] if self._compactor.method == "identical" else [list(members)]
        for group in groups:
            names = [member.name for member in group]
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
        existing = [path_of_input for path_of_input in inputs if self._files.exists(path_of_input)]
        if len(existing) == len(note["files"]):
            self._write(existing, self._path(final))
        for path_of_input in existing:
            with suppress(FileNotFoundError):
                self._files.remove(path_of_input)
        self._files.remove(path)

    def _write(self, inputs: Sequence[str], final: str) -> None:
        streams = [self._files.open(input_path) for input_path in inputs]
        draft = self._path(f"{_NOTES}/.{hashlib.blake2b(final.encode(), digest_size=8).hexdigest()}.tmp")
        try:
            with self._files.writing(draft if self._files.has_atomic_rename else final) as merged:
                (concatenate if len(streams) == 1 else self._merge)(streams, merged)
        finally:
            for stream in streams:
                stream.close()
        if self._files.has_atomic_rename:
            self._files.rename_durably(draft, final)

    def _path(self, name: str) -> str:
        return join_path(self._base, name)


def _pending_name(checkpoint: int, final: str) -> str:
    return f"{_PENDING}/{max(checkpoint, 0):012d}@{quote(final, safe='')}"

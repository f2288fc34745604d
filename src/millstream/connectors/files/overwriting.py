"""A file sink that replaces existing files: INSERT OVERWRITE.

Promises: files that existed when the sink was built are removed when new files are committed: in the buckets that get
new files, or all of them if `whole`. Hidden files stay. A repeated commit, after a crash between any two steps, does
not remove new files.
Does not know: how files are written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.connectors.files.paths import list_files
from millstream.connectors.files.sink import FileSink
from millstream.connectors.files.staging import StagedFile
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.files.contract import FileSystem
from millstream.files.errors import ConnectorStorageFailure
from millstream.files.remote import get_file_system


@dataclass(frozen=True)
class Replaced:
    """A file and its version: a later file of the same name is another one."""

    path: str
    size: int
    version: int


@dataclass(frozen=True)
class OverwritingSink(Sink):
    """A file sink and the files that it replaces; with `whole`, all files are replaced, even if there is no output."""

    inner: FileSink
    replaced: tuple[Replaced, ...]
    whole: bool

    @classmethod
    def over(cls, sink: FileSink, *, whole: bool) -> Self:
        """Return a sink that replaces the files that are now below its base path."""
        files, base = get_file_system(sink.base_path), sink.base_path
        existing = list_files([base]) if files.is_directory(base) else ()
        return cls(sink, tuple(Replaced(path, *files.status(path)) for path in existing), whole)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer of the file sink."""
        return self.inner.create_writer(context)

    def create_committer(self) -> Committer:
        """Create a committer that removes replaced files, then commits."""
        return OverwritingCommitter(self, get_file_system(self.inner.base_path), self.inner.create_committer())

    def check(self) -> None:
        """Check the file sink."""
        self.inner.check()


class OverwritingCommitter(Committer):
    """Removes the files of the buckets that are written to, then commits.

    A crash between the two leaves staged files alone, which recovery commits."""

    def __init__(self, sink: OverwritingSink, files: FileSystem, inner: Committer) -> None:
        self._base, self._files, self._inner = sink.inner.base_path, files, inner
        self._whole = sink.whole
        self._remaining: dict[str, list[Replaced]] = {}  # by bucket
        for replaced_file in sink.replaced:
            bucket = replaced_file.path.removeprefix(self._base).strip("/").rpartition("/")[0]
            self._remaining.setdefault(bucket, []).append(replaced_file)

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Remove the replaced files, then call the inner committer."""
        written_buckets = {StagedFile.from_json(data).bucket for data in committables}
        for bucket in list(self._remaining):
            if self._whole or any(
                bucket == written_bucket or bucket.startswith(f"{written_bucket}/")
                for written_bucket in written_buckets
            ):
                self._clear(bucket)
        self._inner.commit(checkpoint, committables)

    def reached(self, watermark: int, now: int) -> None:
        """At the end of the input, remove the remaining files if the whole table is replaced."""
        if self._whole and watermark == MAX_WATERMARK:
            for bucket in list(self._remaining):
                self._clear(bucket)
        self._inner.reached(watermark, now)

    def _clear(self, bucket: str) -> None:
        for replaced_file in self._remaining[bucket]:
            try:
                if self._files.status(replaced_file.path) == (replaced_file.size, replaced_file.version):
                    self._files.remove(replaced_file.path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise ConnectorStorageFailure(replaced_file.path, "replace", error) from error
        folder = self._remaining.pop(bucket)[0].path.rpartition("/")[0]
        while folder != self._base and folder.startswith(self._base):
            with suppress(OSError):
                self._files.remove_empty_dir(folder)
            folder = folder.rpartition("/")[0]

    def abort(self, committables: Sequence[Any]) -> None:
        """Call the inner committer."""
        self._inner.abort(committables)

    def finish(self) -> None:
        """Call the inner committer."""
        self._inner.finish()

    def close(self) -> None:
        """Call the inner committer."""
        self._inner.close()

"""The committer of a file sink: turns staged files into part files.

Promises: a part file appears complete, under a name that no file had; a repeated commit, after a crash between any two
steps, shows nothing twice and loses nothing.
Does not know: records, files of checkpoints.

Small staged files of a group are merged into one file. On file systems with atomic renames, a bundle of several files
goes through these steps, and a bundle of one file only through the last:

    1. copy them into one hidden file with a temporary name
    2. rename it to `<first staged>.merged`: from here on it replaces all of them
    3. remove the staged files
    4. rename it to its final name

The existing files show which step is next: a merged file means 3, staged files alone mean 1, no files mean that the
commit is done. Final names contain the job's incarnation, as Flink's contain a random id. A final name never replaces
an existing file: if there is one, the next free number is used. Before the first step a commit intent is written; it
shows that a part file was visible even if it was removed since.

An object store makes an object visible when it is complete, and cannot rename. There the final name belongs to one
attempt only, so it can be written repeatedly:

    1. write the final object from the staged ones
    2. remove the staged ones

If all staged objects exist, step 1 is next; if some exist, the final one is complete and step 2 is next; if none exist,
the commit is done."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, BinaryIO

from millstream.connector.sink import Committer
from millstream.connector.staged import find_obsolete
from millstream.connectors.files.commit_intents import CommitIntents
from millstream.connectors.files.staging import STAGING, StagedFile
from millstream.errors import ExternalError
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.files.contract import FileSystem
from millstream.files.errors import ConnectorStorageFailure
from millstream.files.locations import join_path

_log = logging.getLogger("millstream.files")

#: Merges several files of one format into one.
Merge = Callable[[Sequence[BinaryIO], BinaryIO], None]

_MERGED = ".merged"


class OutputLost(ExternalError):
    """A staged file is missing, and so is its part file."""

    hint = "the directory '.staging' or the file may have been deleted; start from an older checkpoint or a savepoint"

    def __init__(self, staged: str, final: str) -> None:
        self.staged, self.final = staged, final
        super().__init__(f"neither the staged file {staged} nor its part file {final} with the same size exists")


class OutputDamaged(ExternalError):
    """A staged file does not have the size that was written."""

    hint = "another program wrote to it, or the disk is damaged; start from an older checkpoint"

    def __init__(self, staged: str, expected: int, found: int) -> None:
        self.staged, self.expected, self.found = staged, expected, found
        super().__init__(f"the staged file {staged} has {found} bytes, {expected} were written")


class StagedFileReappeared(ExternalError):
    """A staged file exists after its commit, although the file system had reported it missing."""

    hint = "the file system returned a wrong result for a moment, as a network mount may; the commit is repeated"

    def __init__(self, staged: str) -> None:
        self.staged = staged
        super().__init__(f"the staged file {staged} was reported missing when it was committed, but exists")


def concatenate(streams: Sequence[BinaryIO], into: BinaryIO) -> None:
    """Concatenate files."""
    for stream in streams:
        shutil.copyfileobj(stream, into)


class FileCommitter(Committer):
    """Makes files visible that were staged below one base path.

    `name_part_file` returns the name of a part file, if it is not the final name; such files may be removed later."""

    def __init__(
        self,
        base: str,
        files: FileSystem,
        merge: Merge = concatenate,
        name_part_file: Callable[[int, str], str] | None = None,
    ) -> None:
        self._base, self._files, self._merge_files = base, files, merge
        self._name_part_file = name_part_file
        self._intents = CommitIntents(base, files)
        self._has_intent = False
        self._checkpoint = self._removed_since = 0

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Turn staged files into part files, in order."""
        self._checkpoint = checkpoint
        staged = [StagedFile.from_json(data) for data in committables]
        bundles = list(bundle_files(staged))
        commit = self._rename if self._files.has_atomic_rename else self._write
        try:
            if staged and self._name_part_file is None:
                self._write_intent(staged)
            for number, bundle in enumerate(bundles):
                try:
                    commit(bundle)
                except (OutputLost, OutputDamaged):
                    if not number and not self._has_intent:
                        self._intents.withdraw(staged)  # nothing is visible yet
                    raise
        except OSError as error:
            raise ConnectorStorageFailure(str(error.filename or self._base), "commit", error) from error
        if self._removed_since:
            message = "checkpoint %s: %d part files were visible before, and have been removed since"
            _log.warning(message, checkpoint, self._removed_since)
        self._sweep(staged)

    def _write_intent(self, staged: Sequence[StagedFile]) -> None:
        """Write the commit intent, unless the commit has begun: files get their final names in order."""
        self._has_intent, self._removed_since = self._intents.has(staged), 0
        first = self._path(staged[0].staged)
        if not self._has_intent and (self._files.exists(first) or self._files.exists(first + _MERGED)):
            self._intents.write(staged)

    def reached(self, watermark: int, now: int) -> None:
        """Remove commit intents at the end of the input: nothing will be committed again."""
        if watermark == MAX_WATERMARK:
            self._intents.forget()

    def _rename(self, bundle: list[StagedFile]) -> None:
        first = bundle[0]
        ready = self._path(first.staged)
        if len(bundle) > 1:
            ready += _MERGED
            if not self._files.exists(ready) and any(self._files.exists(self._path(part.staged)) for part in bundle):
                self._merge(bundle, ready)
        if self._files.exists(ready):
            if len(bundle) > 1:
                self._remove_merged(bundle)
            if len(bundle) == 1 or self._merge_files is concatenate:
                self._check_size(ready, bundle)
            self._make_visible(ready, first)
        else:
            part_file = self._find_part_file(bundle)
            if part_file is None and self._name_part_file is None:
                self._handle_missing(first.staged, self._path(first.final))
            folder = (part_file or next(self._names(first))).rpartition("/")[0]
            if self._files.is_directory(folder):  # a driver that died may have renamed it without syncing the directory
                self._files.sync_dir(folder)

    def _remove_merged(self, bundle: Sequence[StagedFile]) -> None:
        """Remove staged files that a merged file replaces."""
        for part in bundle:
            with suppress(FileNotFoundError):
                self._files.remove(self._path(part.staged))
        self._files.sync_dir(join_path(self._base, STAGING))

    def _make_visible(self, ready: str, first: StagedFile) -> None:
        for final in self._names(first):
            try:
                self._files.move_new_durably(ready, final)
            except FileExistsError:
                if not self._files.is_same(ready, final):
                    continue
                self._files.remove(ready)  # a process died when the file had both names
                self._files.sync_dir(final.rpartition("/")[0])
            return

    def _handle_missing(self, staged: str, final: str) -> None:
        """Raise if a file is lost; count it if a commit intent shows that it was visible."""
        if not self._has_intent:
            raise OutputLost(self._path(staged), final)
        self._removed_since += 1

    def _write(self, bundle: list[StagedFile]) -> None:
        """Commit a bundle on a file system without atomic renames."""
        final = next(self._names(bundle[0]))
        existing = [part for part in bundle if self._files.exists(self._path(part.staged))]
        if len(existing) == len(bundle):
            for part in bundle:
                self._check_size(self._path(part.staged), [part])
            if len(bundle) == 1:
                self._files.copy_file(self._path(bundle[0].staged), final)
            else:
                self._merge_into(bundle, final)
        elif self._name_part_file is None and not self._files.exists(final):
            self._handle_missing(bundle[0].staged, final)
        for part in existing:
            with suppress(FileNotFoundError):
                self._files.remove(self._path(part.staged))

    def _check_size(self, path: str, bundle: Sequence[StagedFile]) -> None:
        size, expected = self._files.status(path)[0], sum(part.size for part in bundle)
        if size != expected:
            raise OutputDamaged(path, expected, size)

    def _merge(self, bundle: Sequence[StagedFile], ready: str) -> None:
        self._merge_into(bundle, f"{ready}.tmp")
        if (
            self._merge_files is concatenate
        ):  # checked before the staged files are removed, because they may have been read incompletely
            self._check_size(f"{ready}.tmp", bundle)
        self._files.rename_durably(f"{ready}.tmp", ready)

    def _merge_into(self, bundle: Sequence[StagedFile], path: str) -> None:
        streams: list[BinaryIO] = []
        try:
            for part in bundle:
                try:
                    streams.append(self._files.open(self._path(part.staged)))
                except FileNotFoundError:
                    raise OutputLost(self._path(part.staged), self._path(bundle[0].final)) from None
            with self._files.writing(path) as merged:
                self._merge_files(streams, merged)
        finally:
            for stream in streams:
                stream.close()

    def _find_part_file(self, bundle: Sequence[StagedFile]) -> str | None:
        """Return the part file of a bundle; None if there is none."""
        size = sum(part.size for part in bundle) if len(bundle) == 1 or self._merge_files is concatenate else None
        for name in self._names(bundle[0]):
            try:
                if self._files.status(name)[0] == size or size is None:
                    return name
            except FileNotFoundError:
                break
        return None

    def _names(self, first: StagedFile) -> Iterator[str]:
        """Yield the final name, then the names to use if it exists already."""
        name = first.final if self._name_part_file is None else self._name_part_file(self._checkpoint, first.final)
        final = self._path(name)
        yield final
        stem = final.removesuffix(first.suffix) if first.suffix else final
        yield from (f"{stem}-{number}{first.suffix}" for number in count(1))

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove staged files that will never be committed."""
        for data in committables:
            with suppress(OSError):
                self._files.remove(self._path(StagedFile.from_json(data).staged))

    def finish(self) -> None:
        """Remove the staging directory if it is empty."""
        self._intents.close()
        self._files.remove_empty_dir(join_path(self._base, STAGING))

    def _sweep(self, staged: Sequence[StagedFile]) -> None:
        """Remove files that dead attempts left behind: those of this sink and of epochs that are committed.

        Raises if a file that was committed, or merged from such files, still exists: it would not be visible."""
        committed = [part.staged.rpartition("/")[2] for part in staged]
        must_not_exist = {*committed, *(name + _MERGED for name in committed)}
        with suppress(OSError):
            for name in find_obsolete(self._files.list_if_exists(join_path(self._base, STAGING)), committed):
                path = join_path(self._base, f"{STAGING}/{name}")
                if name in must_not_exist:
                    raise StagedFileReappeared(path)
                self._files.remove(path)

    def _path(self, name: str) -> str:
        return join_path(self._base, name)


def bundle_files(staged: Sequence[StagedFile]) -> Iterator[list[StagedFile]]:
    """Yield bundles of consecutive files of a group, up to the size limit.

    A change of parallelism ends all bundles: a key that moved to another subtask and back must not be in one file
    before and after. Bundles depend only on the committables, so a repeated commit gets the same bundles."""
    groups: dict[str, list[StagedFile]] = {}
    parallelism = 0
    for part in staged:
        if part.parallelism != parallelism:
            yield from (bundle for bundle in groups.values() if bundle)
            groups, parallelism = {}, part.parallelism
        bundle = groups.setdefault(part.group, [])
        if bundle and sum(bundled_file.size for bundled_file in bundle) + part.size > part.limit:
            yield bundle
            bundle = groups[part.group] = []
        bundle.append(part)
    yield from (bundle for bundle in groups.values() if bundle)

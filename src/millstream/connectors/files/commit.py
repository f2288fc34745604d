"""The committer of a file sink: hidden files become part files.

Promises: a part file appears whole, under a name no file had; committing again, after a crash between any two steps,
shows nothing twice and loses nothing.
Does not know: records, checkpoints' files.

Staged files of a group that are small together become one file. Where names can be changed atomically, a bundle of
several goes these steps, and a bundle of one only the last:

    1. copy them into one hidden file, under a name that does not count yet
    2. give it the name that counts (`<first staged>.merged`): from here on it stands for all of them
    3. remove the staged files
    4. give it its final name

Which step comes next can be read from what is there: a merged file means 3, staged files alone mean 1, nothing at all
means that all is done. Final names contain the job's incarnation, as Flink's contain a random id, and a final name
never takes the place of a file that is there: if there is one nevertheless, the next free number is taken. Before the
first step a note is written; with it, a part file that somebody has taken away since is known to have been shown.

An object store shows an object when it is complete, and cannot rename. There the final name belongs to one attempt
alone, so it can be written again and again:

    1. write the final object from the staged ones
    2. remove the staged ones

All staged objects there mean 1; some mean that the final one is complete, so 2; none mean that all is done."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, BinaryIO

from millstream.connector.sink import Committer
from millstream.connector.staged import outlived
from millstream.connectors.files.commit_intents import CommitIntents
from millstream.connectors.files.staging import STAGING, StagedFile
from millstream.errors import ExternalError
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.files.contract import FileSystem
from millstream.files.errors import ConnectorStorageFailure
from millstream.files.locations import join_path

_log = logging.getLogger("millstream.files")

#: Makes one file of several of its format.
Merge = Callable[[Sequence[BinaryIO], BinaryIO], None]

_MERGED = ".merged"


class OutputLost(ExternalError):
    """A staged file is missing, and so is its part file."""

    hint = "was the directory '.staging' deleted, or the file by hand? start from an older checkpoint or a savepoint"

    def __init__(self, staged: str, final: str) -> None:
        self.staged, self.final = staged, final
        super().__init__(f"there is neither the staged file {staged} nor {final} of its size")


class OutputDamaged(ExternalError):
    """A staged file does not have the size that was written."""

    hint = "something else wrote to it, or the disk is damaged; start from an older checkpoint"

    def __init__(self, staged: str, expected: int, found: int) -> None:
        self.staged, self.expected, self.found = staged, expected, found
        super().__init__(f"the staged file {staged} has {found} bytes, {expected} were written")


class NotShown(ExternalError):
    """A staged file exists after its commit, although the file system reported it missing."""

    hint = "the file system gave a wrong answer for a moment, as a network mount may; the commit is repeated"

    def __init__(self, staged: str) -> None:
        self.staged = staged
        super().__init__(f"the staged file {staged} was reported missing when it was committed, but exists")


def concatenate(streams: Sequence[BinaryIO], into: BinaryIO) -> None:
    """Concatenate files."""
    for stream in streams:
        shutil.copyfileobj(stream, into)


class FileCommitter(Committer):
    """Shows what was staged below one base path.

    `place` says where a part file is to be, if not under its final name; then nobody asks where it has gone to."""

    def __init__(
        self, base: str, files: FileSystem, merge: Merge = concatenate, place: Callable[[int, str], str] | None = None
    ) -> None:
        self._base, self._files, self._merge_files = base, files, merge
        self._place = place
        self._notes = CommitIntents(base, files)
        self._noted = False
        self._checkpoint = self._taken = 0

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Turn staged files into part files, in order."""
        self._checkpoint = checkpoint
        staged = [StagedFile.from_json(data) for data in committables]
        bundles = list(bundled(staged))
        commit = self._rename if self._files.has_atomic_rename else self._write
        try:
            if staged and self._place is None:
                self._note(staged)
            for number, bundle in enumerate(bundles):
                try:
                    commit(bundle)
                except (OutputLost, OutputDamaged):
                    if not number and not self._noted:
                        self._notes.withdraw(staged)  # nothing is shown yet
                    raise
        except OSError as error:
            raise ConnectorStorageFailure(str(error.filename or self._base), "commit", error) from error
        if self._taken:
            told = "checkpoint %s: %d part files were shown before, and have been taken away since"
            _log.warning(told, checkpoint, self._taken)
        self._sweep(staged)

    def _note(self, staged: Sequence[StagedFile]) -> None:
        """Files get their final names in order: if the first has not, none has."""
        self._noted, self._taken = self._notes.has(staged), 0
        first = self._path(staged[0].staged)
        if not self._noted and (self._files.exists(first) or self._files.exists(first + _MERGED)):
            self._notes.write(staged)

    def reached(self, watermark: int, now: int) -> None:
        """At the end of the input, nothing will be committed again."""
        if watermark == MAX_WATERMARK:
            self._notes.forget()

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
            self._show(ready, first)
        else:
            shown = self._shown(bundle)
            if shown is None and self._place is None:
                self._miss(first.staged, self._path(first.final))
            folder = (shown or next(self._names(first))).rpartition("/")[0]
            if self._files.is_directory(folder):  # a driver that died may have renamed it and not synced the name
                self._files.sync_dir(folder)

    def _remove_merged(self, bundle: Sequence[StagedFile]) -> None:
        """Remove staged files for which a merged one stands."""
        for part in bundle:
            with suppress(FileNotFoundError):
                self._files.remove(self._path(part.staged))
        self._files.sync_dir(join_path(self._base, STAGING))

    def _show(self, ready: str, first: StagedFile) -> None:
        for final in self._names(first):
            try:
                self._files.move_new_durably(ready, final)
            except FileExistsError:
                if not self._files.is_same(ready, final):
                    continue
                self._files.remove(ready)  # a process died when it had both names
                self._files.sync_dir(final.rpartition("/")[0])
            return

    def _miss(self, staged: str, final: str) -> None:
        """Neither the staged file nor the final one is there."""
        if not self._noted:
            raise OutputLost(self._path(staged), final)
        self._taken += 1

    def _write(self, bundle: list[StagedFile]) -> None:
        """As `_rename`, where there is no renaming."""
        final = next(self._names(bundle[0]))
        there = [part for part in bundle if self._files.exists(self._path(part.staged))]
        if len(there) == len(bundle):
            for part in bundle:
                self._check_size(self._path(part.staged), [part])
            if len(bundle) == 1:
                self._files.copy_file(self._path(bundle[0].staged), final)
            else:
                self._merge_into(bundle, final)
        elif self._place is None and not self._files.exists(final):
            self._miss(bundle[0].staged, final)
        for part in there:
            with suppress(FileNotFoundError):
                self._files.remove(self._path(part.staged))

    def _check_size(self, path: str, bundle: Sequence[StagedFile]) -> None:
        size, expected = self._files.status(path)[0], sum(part.size for part in bundle)
        if size != expected:
            raise OutputDamaged(path, expected, size)

    def _merge(self, bundle: Sequence[StagedFile], ready: str) -> None:
        self._merge_into(bundle, f"{ready}.tmp")
        if self._merge_files is concatenate:  # before the staged files go: they may have been read incompletely
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
            with self._files.writing(path) as whole:
                self._merge_files(streams, whole)
        finally:
            for stream in streams:
                stream.close()

    def _shown(self, bundle: Sequence[StagedFile]) -> str | None:
        """The part file that a bundle has become; None if there is none."""
        size = sum(part.size for part in bundle) if len(bundle) == 1 or self._merge_files is concatenate else None
        for name in self._names(bundle[0]):
            try:
                if self._files.status(name)[0] == size or size is None:
                    return name
            except FileNotFoundError:
                break
        return None

    def _names(self, first: StagedFile) -> Iterator[str]:
        """The final name, then those to take when a file has it already."""
        name = first.final if self._place is None else self._place(self._checkpoint, first.final)
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
        self._notes.close()
        self._files.remove_empty_dir(join_path(self._base, STAGING))

    def _sweep(self, staged: Sequence[StagedFile]) -> None:
        """Remove what dead attempts left behind: files of this sink and of epochs that are committed by now.

        None of the files that were committed may be left, and none that was merged from them: it would not have been
        shown."""
        committed = [part.staged.rpartition("/")[2] for part in staged]
        unshown = {*committed, *(name + _MERGED for name in committed)}
        with suppress(OSError):
            for name in outlived(self._files.list_if_exists(join_path(self._base, STAGING)), committed):
                path = join_path(self._base, f"{STAGING}/{name}")
                if name in unshown:
                    raise NotShown(path)
                self._files.remove(path)

    def _path(self, name: str) -> str:
        return join_path(self._base, name)


def bundled(staged: Sequence[StagedFile]) -> Iterator[list[StagedFile]]:
    """Files of a group in order, those that follow one another together as far as the limit allows.

    A change of parallelism ends all: a key that went to another subtask and came back is not in one file before and
    after. Depends on the committables alone: a commit that is repeated meets the bundles it began with."""
    groups: dict[str, list[StagedFile]] = {}
    parallelism = 0
    for part in staged:
        if part.parallelism != parallelism:
            yield from (bundle for bundle in groups.values() if bundle)
            groups, parallelism = {}, part.parallelism
        bundle = groups.setdefault(part.group, [])
        if bundle and sum(other.size for other in bundle) + part.size > part.limit:
            yield bundle
            bundle = groups[part.group] = []
        bundle.append(part)
    yield from (bundle for bundle in groups.values() if bundle)

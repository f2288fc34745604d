"""The committer of a file sink: hidden files become part files.

Promises: a part file appears whole, under a name no file had; committing again, after a crash between any two steps,
shows nothing twice and loses nothing.
Does not know: records, checkpoints' files.

Staged files of a group that are small together become one file. For such a bundle:

    1. copy them into one hidden file, under a name that does not count yet
    2. give it the name that counts (`<first staged>.merged`): from here on it stands for all of them
    3. remove the staged files
    4. give it its final name

A bundle of one goes straight to 4. Which step comes next can be read from what is there: a merged file means 3, staged
files alone mean 1, nothing at all means that all is done. So there is no state beside the files, and a part file of an
earlier job, which may have the same name, is never mistaken for ours: the next free number is taken."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from millstream.connectors.files.staging import STAGING, OutputFailure, StagedFile, sync_directory
from millstream.errors import ExternalError
from millstream.model.sink import Committer

_MERGED = ".merged"
_NAME = re.compile(r"(?P<owner>[^@]+)@(?P<epoch>\d+)@.+")


class OutputLost(ExternalError):
    """Staged output is gone, and so is the file it should have become."""

    hint = "was it deleted or moved? a file may be taken away once a later checkpoint is complete"

    def __init__(self, staged: str, final: str) -> None:
        self.staged, self.final = staged, final
        super().__init__(f"there is neither the staged file {staged} nor {final} of its size")


class OutputDamaged(ExternalError):
    """Staged output is not what was written."""

    hint = "something else wrote to it, or the disk is damaged; start from an older checkpoint"

    def __init__(self, staged: str, expected: int, found: int) -> None:
        self.staged, self.expected, self.found = staged, expected, found
        super().__init__(f"the staged file {staged} has {found} bytes, {expected} were written")


class FileCommitter(Committer):
    """Shows what was staged below one base path."""

    def __init__(self, base: str) -> None:
        self._base = base

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Make part files of the staged files, in order."""
        staged = [StagedFile.from_json(data) for data in committables]
        bundles = list(bundled(staged))
        try:
            for bundle in bundles:
                self._commit(bundle)
        except OSError as error:
            raise OutputFailure(str(error.filename or self._base), error, action="commit") from error
        self._sweep(staged)

    def _commit(self, bundle: list[StagedFile]) -> None:
        first = bundle[0]
        ready = self._path(first.staged)
        hidden = os.path.dirname(ready)
        if len(bundle) > 1:
            ready += _MERGED
            if not os.path.exists(ready) and any(os.path.exists(self._path(part.staged)) for part in bundle):
                self._merge(bundle, ready)
            for part in bundle:
                with suppress(FileNotFoundError):
                    os.remove(self._path(part.staged))
            if os.path.exists(ready):
                sync_directory(hidden)
        if os.path.exists(ready):
            size, expected = os.stat(ready).st_size, sum(part.size for part in bundle)
            if size != expected:
                raise OutputDamaged(ready, expected, size)
            self._show(ready, first)
            sync_directory(hidden)
        elif not self._is_shown(bundle):
            raise OutputLost(self._path(first.staged), self._path(first.final))

    def _merge(self, bundle: Sequence[StagedFile], ready: str) -> None:
        with open(f"{ready}.tmp", "wb") as whole:
            for part in bundle:
                try:
                    with open(self._path(part.staged), "rb") as piece:
                        shutil.copyfileobj(piece, whole)
                except FileNotFoundError:
                    raise OutputLost(self._path(part.staged), self._path(bundle[0].final)) from None
            whole.flush()
            os.fsync(whole.fileno())
        os.replace(f"{ready}.tmp", ready)
        sync_directory(os.path.dirname(ready))

    def _show(self, ready: str, first: StagedFile) -> None:
        final = next(name for name in self._names(first) if not os.path.exists(name))
        folder = os.path.dirname(final)
        _make_directory(folder)
        os.rename(ready, final)
        sync_directory(folder)

    def _is_shown(self, bundle: Sequence[StagedFile]) -> bool:
        size = sum(part.size for part in bundle)
        for name in self._names(bundle[0]):
            try:
                if os.stat(name).st_size == size:
                    return True
            except FileNotFoundError:
                return False
        return False

    def _names(self, first: StagedFile) -> Iterator[str]:
        """The final name, then those to take when a file has it already."""
        final = self._path(first.final)
        yield final
        stem = final.removesuffix(first.suffix) if first.suffix else final
        yield from (f"{stem}-{number}{first.suffix}" for number in count(1))

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove staged files that will never be committed."""
        for data in committables:
            with suppress(OSError):
                os.remove(self._path(StagedFile.from_json(data).staged))

    def close(self) -> None:
        """Remove the directory of staged files if nothing waits in it."""
        with suppress(OSError):
            os.rmdir(os.path.join(self._base, STAGING))

    def _sweep(self, staged: Sequence[StagedFile]) -> None:
        """Remove what dead attempts left behind: files of this sink and of epochs that are committed by now."""
        latest: dict[str, int] = {}
        for part in staged:
            found = _NAME.fullmatch(os.path.basename(part.staged))
            if found is not None:
                owner = found["owner"]
                latest[owner] = max(latest.get(owner, -1), int(found["epoch"]))
        with suppress(OSError):
            for name in os.listdir(os.path.join(self._base, STAGING)):
                found = _NAME.fullmatch(name)
                if found is not None and int(found["epoch"]) <= latest.get(found["owner"], -1):
                    os.remove(os.path.join(self._base, STAGING, name))

    def _path(self, name: str) -> str:
        return os.path.join(self._base, name)


def bundled(staged: Sequence[StagedFile]) -> Iterator[list[StagedFile]]:
    """Files of a group in order, those that follow one another together as far as the limit allows.

    Depends on the committables alone: a commit that is repeated meets the bundles it began with."""
    groups: dict[str, list[StagedFile]] = {}
    for part in staged:
        bundle = groups.setdefault(part.group, [])
        if bundle and sum(other.size for other in bundle) + part.size > part.limit:
            yield bundle
            bundle = groups[part.group] = []
        bundle.append(part)
    yield from (bundle for bundle in groups.values() if bundle)


def _make_directory(path: str) -> None:
    """Make a directory with those above it; their names are on the device when this returns."""
    if not os.path.isdir(path):
        above = os.path.dirname(path)
        _make_directory(above)
        os.makedirs(path, exist_ok=True)
        sync_directory(above)

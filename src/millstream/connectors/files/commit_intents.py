"""Commit intents: which staged files are about to become part files.

Promises: an intent is durable before the first of its files gets its final name. So a missing staged file with an
intent was committed, even if the part file has been removed since. The number of intents is bounded.
Does not know: how files are committed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress

from millstream.connector.staged import StagedName
from millstream.connectors.files.staging import STAGING, StagedFile
from millstream.files.contract import FileSystem
from millstream.files.locations import join_path

_INTENTS = f"{STAGING}/commits"
_MAX_INTENTS = 50


class CommitIntents:
    """The intents below a base path: a file for each job and sink, `<time>@<owner>`, with a digest of the staged
    files."""

    def __init__(self, base: str, files: FileSystem) -> None:
        self._directory, self._files = join_path(base, _INTENTS), files
        self._owners: set[str] = set()

    def has(self, staged: Sequence[StagedFile]) -> bool:
        """Whether there is an intent for these files."""
        owner = _owner(staged)
        self._owners.add(owner)
        return any(self._read(name) == _digest(staged) for name in self._names(owner))

    def write(self, staged: Sequence[StagedFile]) -> None:
        """Write the intent to commit these files; it replaces an older one of the same owner."""
        owner = _owner(staged)
        name = f"{max(part.time for part in staged):015d}@{owner}"
        before = self._names(owner)
        with self._files.writing(self._path(name)) as stream:
            stream.write(_digest(staged).encode())
        self._files.sync_dir(self._directory)
        for old in [old_name for old_name in before if old_name != name]:
            self._remove(old)
        for old in sorted(self._files.list_if_exists(self._directory))[:-_MAX_INTENTS]:
            self._remove(old)

    def withdraw(self, staged: Sequence[StagedFile]) -> None:
        """Remove the intent, because none of these files was committed."""
        for name in self._names(_owner(staged)):
            self._remove(name)

    def forget(self) -> None:
        """Remove all intents of this job, because its input has ended."""
        for name in [name for owner in self._owners for name in self._names(owner)]:
            self._remove(name)

    def close(self) -> None:
        """Remove the directory if it is empty."""
        self._files.remove_empty_dir(self._directory)

    def _names(self, owner: str) -> list[str]:
        return [name for name in self._files.list_if_exists(self._directory) if name.partition("@")[2] == owner]

    def _read(self, name: str) -> str:
        try:
            with self._files.open(self._path(name)) as stream:
                return stream.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            self._files.remove(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"


def _owner(staged: Sequence[StagedFile]) -> str:
    name = StagedName.parse(staged[0].staged.rpartition("/")[2])
    return "" if name is None else name.owner


def _digest(staged: Sequence[StagedFile]) -> str:
    return hashlib.blake2b("\n".join(part.staged for part in staged).encode(), digest_size=16).hexdigest()

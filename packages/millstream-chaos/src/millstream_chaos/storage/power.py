"""Power loss: a model of the device behind the page cache of a file system.

Promises: data is durable after a sync of its file, and a name after a sync of its directory; `left` returns what a
power loss leaves, in one of three ways. A new directory is durable at once, because `make_dirs` syncs.
Does not know: what is stored.

Ways to lose power:
    lost     nothing that was not synced survives
    emptied  all names survive, new and old; data that was not synced reads as zeros, and a new file is empty
    mixed    of each directory some of the first unsynced changes survive, and half of the data that was not synced"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Literal

PowerLoss = Literal["lost", "emptied", "mixed"]
POWER_LOSSES: tuple[PowerLoss, ...] = ("lost", "emptied", "mixed")

_DIRECTORY = 0  # stands for a directory, in place of the number of a file's content
_Change = tuple[tuple[str, int | None], ...]  # the names that one operation sets, or removes (None)


class Device:
    """Durable names and data, and changes of names that are not synced yet."""

    def __init__(self) -> None:
        self._current: dict[str, int] = {}  # content numbers by name, directories included
        self._names: dict[str, int] = {}
        self._data: dict[int, bytes] = {}
        self._unsynced: list[tuple[str, _Change]] = []  # with the directory whose sync makes them durable
        self._next = _DIRECTORY + 1

    @classmethod
    def of(cls, files: Mapping[str, bytes], directories: set[str]) -> Device:
        """Create a device on which all of these are durable."""
        device = cls()
        for path, data in files.items():
            device._current[path] = device._next
            device._data[device._next] = data
            device._next += 1
        device._current |= dict.fromkeys(directories, _DIRECTORY)
        device._names = dict(device._current)
        return device

    def copy(self) -> Device:
        """Return another device with the same content."""
        device = Device()
        device._current, device._names, device._data = dict(self._current), dict(self._names), dict(self._data)
        device._unsynced, device._next = list(self._unsynced), self._next
        return device

    def write(self, path: str, data: bytes, *, synced: bool) -> None:
        """Set the content of a file."""
        if path not in self._current:
            self._change(path, (path, self._next))
            self._next += 1
        if synced:
            self._data[self._current[path]] = data

    def rename(self, source: str, target: str) -> None:
        """Rename a file."""
        self._change(target, (source, None), (target, self._current.get(source)))

    def remove(self, path: str) -> None:
        """Remove a name."""
        self._change(path, (path, None))

    def make_directory(self, path: str) -> None:
        """Create a directory, which is durable at once."""
        self._change(path, (path, _DIRECTORY))
        self.sync_directory(os.path.dirname(path))

    def sync_directory(self, path: str) -> None:
        """Make all changes of names in a directory durable."""
        for directory, change in self._unsynced:
            if directory == path:
                _apply(self._names, change)
        self._unsynced = [(directory, change) for directory, change in self._unsynced if directory != path]

    def _change(self, path: str, *change: tuple[str, int | None]) -> None:
        _apply(self._current, change)
        self._unsynced.append((os.path.dirname(path), change))

    def left(
        self, files: Mapping[str, bytes], how: PowerLoss, draw: Callable[[int], int]
    ) -> tuple[dict[str, bytes], set[str]]:
        """Return the files and directories after a power loss; `draw(n)` returns a random number from 0 to n - 1."""
        content = {self._current[path]: data for path, data in files.items() if path in self._current}
        names = dict(self._names)
        if how != "lost":
            unsynced: dict[str, list[_Change]] = {}
            for directory, change in self._unsynced:
                unsynced.setdefault(directory, []).append(change)
            for changes in unsynced.values():
                for change in changes if how == "emptied" else changes[: draw(len(changes) + 1)]:
                    _apply(names, change)
        directories = {path for path, number in names.items() if number == _DIRECTORY}
        left = {
            path: self._read(number, content, how)
            for path, number in names.items()
            if number != _DIRECTORY and os.path.dirname(path) in directories
        }
        return left, directories

    def _read(self, number: int, content: Mapping[int, bytes], how: PowerLoss) -> bytes:
        durable, written = self._data.get(number), content.get(number)
        if durable is None:
            return written[: len(written) // 2] if how == "mixed" and written is not None else b""
        if how == "lost" or written is None or written == durable:
            return durable
        if how == "emptied":
            return durable[: len(written)] + bytes(len(written) - len(durable))
        return written[: (len(durable) + len(written)) // 2]


def _apply(names: dict[str, int], change: _Change) -> None:
    for path, number in change:
        if number is None:
            names.pop(path, None)
        else:
            names[path] = number

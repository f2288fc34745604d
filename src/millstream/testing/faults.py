"""A file system that fails at a chosen operation: the crash points of a protocol, one by one.

Promises: operation `crash_at` (counted from 0, over all that change something) fails as `mode` says, all before it
succeed; after a crash nothing works any more, as in a process that died.
Does not know: what is stored, or which order of operations is right."""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from millstream.checkpoint.storage import FileSystem, LocalFileSystem

Mode = Literal["before", "after", "torn", "enospc", "eio", "erofs", "stall"]
CRASHES: tuple[Mode, ...] = ("before", "after", "torn")
ERRORS: tuple[Mode, ...] = ("enospc", "eio")
_NUMBERS = {"enospc": errno.ENOSPC, "eio": errno.EIO, "erofs": errno.EROFS}


class SimulatedCrash(BaseException):
    """The process died here. No handler of errors may see it, so it is not an `Exception`."""


class Operation(NamedTuple):
    """One change to the file system. `size` is what it writes, or cuts to; `synced` whether it waits for the device."""

    kind: str
    path: str
    target: str = ""
    size: int = 0
    synced: bool = False


@dataclass(eq=False)
class FaultyFileSystem:
    """`inner`, until operation `crash_at`: then a crash before it, after it, or half-way ("torn"), or an error.

    With an error ("enospc", "eio") half of the data is written too; with "erofs" nothing is. `lasting` operations fail,
    later ones succeed. With "stall" an operation succeeds, but `stall` is called before it. `meanwhile` is called with
    the number of every operation before it is done: what another process does in between."""

    inner: FileSystem
    crash_at: int | None = None
    mode: Mode = "before"
    lasting: int = 1
    stall: Callable[[], None] = lambda: None
    meanwhile: Callable[[int], None] | None = None

    def __post_init__(self) -> None:
        self.operations: builtins.list[Operation] = []
        self.crashed = False

    def _alive(self) -> FileSystem:
        if self.crashed:
            raise SimulatedCrash
        return self.inner

    def _change(
        self, operation: Operation, act: Callable[[FileSystem], None], half: Callable[[FileSystem], None] | None = None
    ) -> None:
        inner = self._alive()
        self.operations.append(operation)
        number = len(self.operations) - 1
        if self.meanwhile is not None:
            self.meanwhile(number)
        if self.crash_at is None or not self.crash_at <= number < self.crash_at + self.lasting:
            act(inner)
            return
        if self.mode == "stall":
            self.stall()
            act(inner)
            return
        if self.mode == "after":
            act(inner)
        elif self.mode not in ("before", "erofs") and half is not None:
            half(inner)
        if self.mode in _NUMBERS:
            code = _NUMBERS[self.mode]
            raise OSError(code, os.strerror(code), operation.path)
        self.crashed = True
        raise SimulatedCrash(operation)

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:
        """Count; "torn" leaves half of the data."""
        self._change(
            Operation("write_bytes", path, size=len(data), synced=sync),
            lambda inner: inner.write_bytes(path, data, sync),
            lambda inner: inner.write_bytes(path, data[: len(data) // 2], False),
        )

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:
        """Count; "torn" adds half of the data."""
        self._change(
            Operation("append_bytes", path, size=len(data), synced=sync),
            lambda inner: inner.append_bytes(path, data, sync),
            lambda inner: inner.append_bytes(path, data[: len(data) // 2], False),
        )

    def truncate(self, path: str, size: int, sync: bool) -> None:
        """Count."""
        self._change(
            Operation("truncate", path, size=size, synced=sync), lambda inner: inner.truncate(path, size, sync)
        )

    def replace(self, source: str, target: str) -> None:
        """Count; atomic in every mode, as file systems promise."""
        self._change(Operation("replace", source, target), lambda inner: inner.replace(source, target))

    def move_new(self, source: str, target: str) -> None:
        """Count; atomic in every mode, as file systems promise."""
        self._change(Operation("move_new", source, target), lambda inner: inner.move_new(source, target))

    def remove(self, path: str) -> None:
        """Count."""
        self._change(Operation("remove", path), lambda inner: inner.remove(path))

    def make_dirs(self, path: str) -> None:
        """Count; "torn" makes the directories above only."""
        self._change(
            Operation("make_dirs", path, synced=True),
            lambda inner: inner.make_dirs(path),
            lambda inner: inner.make_dirs(os.path.dirname(path)),
        )

    def sync_dir(self, path: str) -> None:
        """Count."""
        self._change(Operation("sync_dir", path, synced=True), lambda inner: inner.sync_dir(path))

    def read_bytes(self, path: str) -> bytes:
        """As `inner`, while alive."""
        return self._alive().read_bytes(path)

    def exists(self, path: str) -> bool:
        """As `inner`, while alive."""
        return self._alive().exists(path)

    def list(self, path: str) -> builtins.list[str]:
        """As `inner`, while alive."""
        return self._alive().list(path)

    def size(self, path: str) -> int:
        """As `inner`, while alive."""
        return self._alive().size(path)

    def resolve(self, path: str) -> str:
        """As `inner`, while alive."""
        return self._alive().resolve(path)


def crash_points(
    run: Callable[[FileSystem], None],
    inner: FileSystem | None = None,
    *,
    modes: tuple[Mode, ...] = (*CRASHES, *ERRORS),
) -> builtins.list[tuple[int, Mode]]:
    """Every operation that `run` does, with every mode: what to try one by one."""
    counted = FaultyFileSystem(inner if inner is not None else LocalFileSystem())
    run(counted)
    return [(index, mode) for index in range(len(counted.operations)) for mode in modes]

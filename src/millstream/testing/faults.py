"""A file system that fails at a chosen operation: the crash points of a protocol, one by one.

Promises: operation `crash_at` (counted from 0, over all that change something) fails as `mode` says, all before it
succeed; after a crash nothing works any more, as in a process that died. Reads, lists, `exists` and `size` are counted
apart, and fail or lie as `reading` says.
Does not know: what is stored, or which order of operations is right."""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar

from millstream.files.contract import FileSystem
from millstream.files.local import LocalFileSystem
from millstream.testing.memory_files import MemoryFileSystem
from millstream.testing.power import POWER_LOSSES, PowerLoss

T = TypeVar("T")

Mode = Literal["before", "after", "torn", "enospc", "eio", "erofs", "stall", "lost", "emptied", "mixed"]
ReadMode = Literal["enoent", "eio", "estale", "stale", "short"]
CRASHES: tuple[Mode, ...] = ("before", "after", "torn")
ERRORS: tuple[Mode, ...] = ("enospc", "eio")
READ_MODES: tuple[ReadMode, ...] = ("enoent", "eio", "estale", "stale", "short")
_NUMBERS = {
    "enospc": errno.ENOSPC,
    "eio": errno.EIO,
    "erofs": errno.EROFS,
    "estale": errno.ESTALE,
    "enoent": errno.ENOENT,
}


class SimulatedCrash(BaseException):
    """The process died here. No handler of errors may see it, so it is not an `Exception`."""


class Operation(NamedTuple):
    """One change to the file system. `size` is what it writes, or cuts to; `synced` whether it waits for the device."""

    kind: str
    path: str
    target: str = ""
    size: int = 0
    synced: bool = False


@dataclass
class Reading:
    """Which reads fail or lie: those from number `at` on, `lasting` of them, as `mode` says.

    enoent   what is asked for is not there
    eio, estale  an error
    stale    the answer that was right `behind` changes ago; `past` has the file system after each change
    short    half of the bytes, of the size, or of the names"""

    at: int
    mode: ReadMode
    lasting: int = 1
    behind: int = 1
    past: builtins.list[MemoryFileSystem] = field(default_factory=builtins.list)

    def affects(self, number: int) -> bool:
        """Whether this read fails or lies."""
        return self.at <= number < self.at + self.lasting

    def note(self, inner: FileSystem) -> None:
        """Something has changed."""
        if self.mode == "stale":
            assert isinstance(inner, MemoryFileSystem), "only a file system in memory has a past"
            self.past.append(inner.copy())


@dataclass(eq=False)
class FaultyFileSystem(FileSystem):
    """`inner`, until operation `crash_at`: then a crash before it, after it, or half-way ("torn"), or an error.

    With a loss of power ("lost", "emptied", "mixed") the process dies before the operation, and `lose_power` is called.

    With an error ("enospc", "eio") half of the data is written too; with "erofs" nothing is. `lasting` operations fail,
    later ones succeed. With "stall" an operation succeeds, but `stall` is called before it. `meanwhile` is called with
    the number of every operation before it is done: what another process does in between."""

    inner: FileSystem
    crash_at: int | None = None
    mode: Mode = "before"
    lasting: int = 1
    stall: Callable[[], None] = lambda: None
    meanwhile: Callable[[int], None] | None = None
    lose_power: Callable[[PowerLoss], None] = lambda _: None
    reading: Reading | None = None

    def __post_init__(self) -> None:
        self.operations: builtins.list[Operation] = []
        self.reads: builtins.list[Operation] = []
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
            if self.reading is not None:
                self.reading.note(inner)
            return
        if self.mode == "stall":
            self.stall()
            act(inner)
            return
        if self.mode in POWER_LOSSES:
            self.lose_power(self.mode)
        elif self.mode == "after":
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

    def _read(
        self, operation: Operation, ask: Callable[[FileSystem], T], half: Callable[[T], T], absent: Sequence[T] = ()
    ) -> T:
        """Ask `inner`, or fail or lie. `absent` has the answer for what is not there, if that is no error."""
        inner, reading = self._alive(), self.reading
        self.reads.append(operation)
        if reading is None or not reading.affects(len(self.reads) - 1):
            return ask(inner)
        if reading.mode == "stale":
            return ask(reading.past[-1 - reading.behind] if reading.behind < len(reading.past) else inner)
        if reading.mode == "short":
            return half(ask(inner))
        if reading.mode == "enoent" and absent:
            return absent[0]
        code = _NUMBERS[reading.mode]
        raise OSError(code, os.strerror(code), operation.path)

    def read_bytes(self, path: str) -> bytes:
        """Count; "short" gives the first half."""
        return self._read(Operation("read_bytes", path), lambda inner: inner.read_bytes(path), _first_half)

    def exists(self, path: str) -> bool:
        """Count; "enoent" and "short" say no."""
        return self._read(Operation("exists", path), lambda inner: inner.exists(path), lambda _: False, (False,))

    def list(self, path: str) -> builtins.list[str]:
        """Count; "short" gives the first half of the names."""
        return self._read(
            Operation("list", path), lambda inner: inner.list(path), lambda names: names[: len(names) // 2]
        )

    def size(self, path: str) -> int:
        """Count; "short" says half."""
        return self._read(Operation("size", path), lambda inner: inner.size(path), lambda size: size // 2)

    def resolve(self, path: str) -> str:
        """As `inner`, while alive."""
        return self._alive().resolve(path)


def _first_half(data: bytes) -> bytes:
    return data[: len(data) // 2]


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

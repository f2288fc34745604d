"""A file system that fails at a chosen operation, so that each crash point of a protocol can be tested.

Promises: the operation with the number `crash_at` (from 0, among those that change something) fails as `mode` says, and
all earlier ones succeed. After a crash every call fails, as in a process that died. Reads, lists, `exists` and `size`
have numbers of their own, and fail or return wrong data as `reading` says.
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
from millstream_chaos.storage.memory_files import MemoryFileSystem
from millstream_chaos.storage.power import POWER_LOSSES, PowerLoss

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
    """The simulated process died. It is not an `Exception`, so that no error handler catches it."""


class Operation(NamedTuple):
    """A call of the file system. `size` is that of the data or of the truncated file; `synced` is whether it syncs."""

    name: str
    path: str
    target: str = ""
    size: int = 0
    synced: bool = False


@dataclass
class Reading:
    """Which reads fail or return wrong data: `lasting` reads from number `at` on, as `mode` says.

    enoent       the file is missing
    eio, estale  an error
    stale        the state of `behind` changes ago; `past` has the file system after each change
    short        half of the bytes, of the size, or of the names"""

    at: int
    mode: ReadMode
    lasting: int = 1
    behind: int = 1
    past: builtins.list[MemoryFileSystem] = field(default_factory=builtins.list)

    def affects(self, number: int) -> bool:
        """Return whether a read fails or returns wrong data."""
        return self.at <= number < self.at + self.lasting

    def note(self, inner: FileSystem) -> None:
        """Remember the file system after a change."""
        if self.mode == "stale":
            assert isinstance(inner, MemoryFileSystem), "only a file system in memory has a past"
            self.past.append(inner.copy())


@dataclass(eq=False)
class FaultyFileSystem(FileSystem):
    """A file system that passes calls on to `inner`, and fails at the operation `crash_at`.

    The process crashes before the operation, after it, or half-way ("torn"). With a loss of power ("lost", "emptied",
    "mixed") it crashes before the operation, and `lose_power` is called. With an error ("enospc", "eio") half of the
    data is written; with "erofs" nothing is. `lasting` operations fail, later ones succeed. With "stall" an operation
    succeeds, but `stall` is called before it. `meanwhile` is called with the number of every operation before it
    happens, and can do what another process does at that time."""

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
        """Write; "torn" writes half of the data."""
        self._change(
            Operation("write_bytes", path, size=len(data), synced=sync),
            lambda inner: inner.write_bytes(path, data, sync),
            lambda inner: inner.write_bytes(path, data[: len(data) // 2], False),
        )

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:
        """Append; "torn" appends half of the data."""
        self._change(
            Operation("append_bytes", path, size=len(data), synced=sync),
            lambda inner: inner.append_bytes(path, data, sync),
            lambda inner: inner.append_bytes(path, data[: len(data) // 2], False),
        )

    def truncate(self, path: str, size: int, sync: bool) -> None:
        """Truncate."""
        self._change(
            Operation("truncate", path, size=size, synced=sync), lambda inner: inner.truncate(path, size, sync)
        )

    def replace(self, source: str, target: str) -> None:
        """Replace a file; atomic in every mode, as in a real file system."""
        self._change(Operation("replace", source, target), lambda inner: inner.replace(source, target))

    def move_new(self, source: str, target: str) -> None:
        """Move a file; atomic in every mode, as in a real file system."""
        self._change(Operation("move_new", source, target), lambda inner: inner.move_new(source, target))

    def remove(self, path: str) -> None:
        """Remove."""
        self._change(Operation("remove", path), lambda inner: inner.remove(path))

    def make_dirs(self, path: str) -> None:
        """Create directories; "torn" creates only the parents."""
        self._change(
            Operation("make_dirs", path, synced=True),
            lambda inner: inner.make_dirs(path),
            lambda inner: inner.make_dirs(os.path.dirname(path)),
        )

    def sync_dir(self, path: str) -> None:
        """Sync a directory."""
        self._change(Operation("sync_dir", path, synced=True), lambda inner: inner.sync_dir(path))

    def _read(
        self, operation: Operation, ask: Callable[[FileSystem], T], half: Callable[[T], T], absent: Sequence[T] = ()
    ) -> T:
        """Read, or fail or return wrong data. `absent` has the result for a missing file if that is no error."""
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
        """Read; "short" returns the first half."""
        return self._read(Operation("read_bytes", path), lambda inner: inner.read_bytes(path), _first_half)

    def exists(self, path: str) -> bool:
        """Return whether a path exists; False with "enoent" and "short"."""
        return self._read(Operation("exists", path), lambda inner: inner.exists(path), lambda _: False, (False,))

    def list(self, path: str) -> builtins.list[str]:
        """List; "short" returns the first half of the names."""
        return self._read(
            Operation("list", path), lambda inner: inner.list(path), lambda names: names[: len(names) // 2]
        )

    def size(self, path: str) -> int:
        """Return the size; half of it with "short"."""
        return self._read(Operation("size", path), lambda inner: inner.size(path), lambda size: size // 2)

    def resolve(self, path: str) -> str:
        """Resolve a path."""
        return self._alive().resolve(path)


def _first_half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def crash_points(
    run: Callable[[FileSystem], None],
    inner: FileSystem | None = None,
    *,
    modes: tuple[Mode, ...] = (*CRASHES, *ERRORS),
) -> builtins.list[tuple[int, Mode]]:
    """Return every operation of `run` with every mode, to be tested one by one."""
    counted = FaultyFileSystem(inner if inner is not None else LocalFileSystem())
    run(counted)
    return [(index, mode) for index in range(len(counted.operations)) for mode in modes]

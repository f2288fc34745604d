"""What a slot has received: blocks by run and level, and which slots have completed which levels.

Promises: blocks are returned in any order that keeps each channel's order; tasks sort them (law 1). Blocks beyond a
share of memory are written to a file on the slot's disk and mapped when they are read, so skewed input is slow, not an
error. `add`, `complete` and `lose` may be called from other threads than `take`.
Does not know: sockets, what is in a block."""

from __future__ import annotations

import mmap
import tempfile
import threading
from collections.abc import Collection, Iterable, Sequence
from typing import IO

from millstream.errors import ExternalError


class PeerLost(ExternalError):
    """The connection to another slot of the stage broke."""

    def __init__(self, slot: int, reason: str) -> None:
        self.slot = slot
        super().__init__(f"the connection to slot {slot} broke: {reason}")


class Inbox:
    """The inbox of one slot. `share` is how many bytes of blocks stay in memory; `directory` is for the others, by
    default that for temporary files."""

    def __init__(self, share: int, directory: str | None = None) -> None:
        self._share, self._directory = share, directory
        self._changed = threading.Condition()
        self._run = 0
        self._memory: dict[tuple[int, int], list[bytes]] = {}  # by run and level
        self._spooled: dict[tuple[int, int], list[tuple[int, int]]] = {}  # offsets and sizes
        self._completed: set[tuple[int, int, int]] = set()  # run, level, slot
        self._problem: PeerLost | None = None
        self._held = self._reading = 0  # bytes in memory of blocks that wait, and of those that the current level reads
        self._file: IO[bytes] | None = None
        self._written = 0
        self.spooled_bytes = 0

    def begin(self, run: int) -> None:
        """Discard what belongs to earlier runs."""
        with self._changed:
            self._run = run
            for key in [key for key in self._memory if key[0] < run]:
                self._held -= sum(map(len, self._memory.pop(key)))
            for key in [key for key in self._spooled if key[0] < run]:
                del self._spooled[key]
            self._completed = {entry for entry in self._completed if entry[0] >= run}
            self._reading = 0
            if self._file is not None and not self._spooled:
                self._file.close()
                self._file, self._written = None, 0

    def add(self, run: int, level: int, blocks: Sequence[bytes]) -> None:
        """Keep blocks for a level."""
        with self._changed:
            if run < self._run:
                return
            size = sum(map(len, blocks))
            if self._held + self._reading + size > self._share:
                self._spool((run, level), blocks)
            else:
                self._held += size
                self._memory.setdefault((run, level), []).extend(blocks)

    def _spool(self, key: tuple[int, int], blocks: Iterable[bytes]) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115 - closed in `begin`
        entries = self._spooled.setdefault(key, [])
        for block in blocks:
            self._file.write(block)
            entries.append((self._written, len(block)))
            self._written += len(block)
            self.spooled_bytes += len(block)

    def complete(self, run: int, level: int, slot: int) -> None:
        """Note that a slot has sent all its blocks of a level."""
        with self._changed:
            if run >= self._run:
                self._completed.add((run, level, slot))
                self._changed.notify()

    def lose(self, problem: PeerLost) -> None:
        """Note that the connection to a slot broke: waiting threads raise the error."""
        with self._changed:
            self._problem = self._problem or problem
            self._changed.notify()

    def take(self, run: int, level: int, senders: Collection[tuple[int, int]]) -> list[bytes | memoryview]:
        """Wait until all `senders`, pairs of level and slot, have completed; return the blocks of a level.

        The wait has no time limit of its own: the driver ends a stage whose epoch takes too long."""
        missing = {(run, sent_level, slot) for sent_level, slot in senders}
        with self._changed:
            while self._problem is None and not missing <= self._completed:
                self._changed.wait()
            if self._problem is not None:  # blocks may be missing even if all senders have completed
                raise self._problem
            blocks: list[bytes | memoryview] = list(self._memory.pop((run, level), ()))
            self._reading = sum(map(len, blocks))
            self._held -= self._reading
            return blocks + self._map(self._spooled.pop((run, level), []))

    def _map(self, entries: list[tuple[int, int]]) -> list[memoryview]:
        if not entries:
            return []
        assert self._file is not None
        self._file.flush()
        mapped = memoryview(mmap.mmap(self._file.fileno(), self._written, access=mmap.ACCESS_READ))
        return [mapped[offset : offset + size] for offset, size in entries]

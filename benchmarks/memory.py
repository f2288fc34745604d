"""The memory of a contestant: its own process and all it started.

Promises: the peak of what all of them held at once, each shared page counted once.
Does not know: what they did with it."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

_EVERY = 0.25


class Peak:
    """Samples while its block runs; `mib` is the highest sum seen, 0 where the system has no /proc."""

    def __init__(self) -> None:
        self.mib = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_EVERY):
            self.mib = max(self.mib, sum(map(_held, _family())) / 1024)


def _family() -> list[int]:
    """This process and its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [int(Path("/proc/self").resolve().name)] if parents else []
    for pid in found:
        found.extend(child for child, parent in parents.items() if parent == pid)
    return found


def _held(pid: int) -> int:
    """KiB of a process, with its share of what it shares."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))

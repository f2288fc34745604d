"""A process and all that it started: who they are, the CPU time they used, the memory they hold.

Promises: standard library only; each figure is of all processes of the family together; no figure where the system has
no /proc. A process that was started in a session of its own belongs to the family, too.
Does not know: what the processes do."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Entry:
    """A process in /proc. `ticks` is the CPU time of itself and of the children that it has waited for."""

    pid: int
    parent: int
    session: int
    started: int
    ticks: int


def read_entry(pid: int) -> Entry | None:
    """Read a process; None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] == "Z":
        return None
    return Entry(pid, int(fields[1]), int(fields[3]), int(fields[19]), sum(map(int, fields[11:15])))


def read_all() -> dict[int, Entry]:
    """Read all processes of the machine."""
    entries = (read_entry(int(path.name)) for path in Path("/proc").glob("[0-9]*"))
    return {entry.pid: entry for entry in entries if entry is not None}


@dataclass
class Family:
    """The family of a process, by its id. A member whose parent has ended remains a member."""

    leader: int
    _known: set[tuple[int, int]] = field(default_factory=set)

    def members(self) -> list[Entry]:
        """Return the living members."""
        entries = read_all()
        members = {
            pid
            for pid, entry in entries.items()
            if pid == self.leader or entry.session == self.leader or (pid, entry.started) in self._known
        }
        while more := {pid for pid, entry in entries.items() if entry.parent in members} - members:
            members |= more
        living = [entries[pid] for pid in sorted(members)]
        self._known.update((entry.pid, entry.started) for entry in living)
        return living

    def cpu_seconds(self) -> float:
        """Return the CPU time of the family so far: of its living members and of the children they waited for."""
        return sum(entry.ticks for entry in self.members()) / _TICKS

    def memory_mib(self) -> float:
        """Return what the living members hold; a page that several share is counted once."""
        return sum(_held_kib(entry.pid) for entry in self.members()) / 1024


def _held_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))

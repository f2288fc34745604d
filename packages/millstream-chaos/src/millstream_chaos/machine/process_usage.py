"""The resources that processes and directories use now: memory, descriptors, threads, files and bytes.

Promises: a process that has ended uses nothing; shared pages are divided by the number of their users, so that sums
over processes are right.
Does not know: which processes belong to a job."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Usage:
    """The resources of one process or of several together."""

    memory: int = 0
    descriptors: int = 0
    threads: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.memory + other.memory, self.descriptors + other.descriptors, self.threads + other.threads)


def process_usage(pid: int) -> Usage:
    """Measure one process."""
    return Usage(resident_memory(pid), _count(f"/proc/{pid}/fd"), _count(f"/proc/{pid}/task"))


def total_usage(pids: Iterable[int]) -> Usage:
    """Measure several processes together."""
    total = Usage()
    for pid in pids:
        total += process_usage(pid)
    return total


def resident_memory(pid: int) -> int:
    """Return the resident bytes of a process; pages shared with others count by share."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
            return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, ValueError):
        return 0


@dataclass(frozen=True)
class DirectoryUsage:
    """The files below a directory and the bytes they occupy on disk (holes count nothing)."""

    files: int = 0
    bytes: int = 0


def directory_usage(directory: Path) -> DirectoryUsage:
    """Measure a directory; files that disappear meanwhile are left out."""
    files = occupied = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                status = os.lstat(os.path.join(folder, name))
            except FileNotFoundError:
                continue
            files += 1
            occupied += status.st_blocks * 512
    return DirectoryUsage(files, occupied)


def _count(directory: str) -> int:
    try:
        return len(os.listdir(directory))
    except OSError:
        return 0

"""A small disk that can be filled, and a limit on the memory of a process and its children.

Promises: `SmallDisk` is a file system with a fixed size; with a `MemoryLimit` the kernel's out-of-memory killer ends a
process of the group when the group exceeds its limit. Both are removed when their `with` block ends.
Does not know: jobs. Both need Linux and root."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from millstream.errors import UserError
from millstream.testing.host import Host

_GROUPS = Path("/sys/fs/cgroup")
_numbers = itertools.count()


class NoLimits(UserError):
    """This user cannot limit disks or memory on this machine."""

    hint = "full disks and memory limits need Linux and root"

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} cannot be created: {reason}")


class SmallDisk:
    """A file system in memory, mounted at a directory, with room for `size` bytes."""

    def __init__(self, directory: Path, size: int) -> None:
        self.directory, self._size = directory, size
        self._ballast = directory / "ballast"

    def __enter__(self) -> SmallDisk:
        self.directory.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={self._size}", "tmpfs", str(self.directory)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NoLimits(what="a small disk", reason=done.stderr.strip())
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", str(self.directory)], check=False)

    def fill(self) -> None:
        """Fill the disk."""
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * (1 << 16))

    def free(self) -> None:
        """Free the space again."""
        self._ballast.unlink(missing_ok=True)


@dataclass(frozen=True)
class _LimitedHost(Host):
    """This machine, for processes in a control group."""

    procs: str = ""

    def command(self, *arguments: str) -> list[str]:
        return ["/bin/sh", "-c", f'echo $$ > {self.procs} && exec "$@"', "sh", *arguments]


class MemoryLimit:
    """A control group whose processes together may use `size` bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        own = f"millstream-{os.getpid()}-{next(_numbers)}"
        first = (_GROUPS / "memory").is_dir()  # control groups version 1 have a hierarchy for memory
        self._group = _GROUPS / "memory" / own if first else _GROUPS / own
        self._limit = "memory.limit_in_bytes" if first else "memory.max"

    def __enter__(self) -> MemoryLimit:
        try:
            self._group.mkdir()
            (self._group / self._limit).write_text(str(self._size))
        except OSError as problem:
            raise NoLimits(what="a memory limit", reason=str(problem)) from problem
        return self

    def __exit__(self, *_: object) -> None:
        deadline = time.monotonic() + 10
        while self._group.exists() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # a killed process leaves the group with a delay
                self._group.rmdir()
            time.sleep(0.1)

    @property
    def host(self) -> Host:
        """This machine, with processes that start in the group."""
        return _LimitedHost(procs=str(self._group / "cgroup.procs"))

    def kills(self) -> int:
        """Return how many processes of the group the kernel has killed."""
        for name in ("memory.oom_control", "memory.events"):
            with contextlib.suppress(FileNotFoundError):
                lines = (self._group / name).read_text().splitlines()
                return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
        return 0

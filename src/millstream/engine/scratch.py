"""The directory of a job on a host: local stores and unpacked files of the program.

Promises: only its owner can look into it. It goes with its job; one that a dead process left behind goes when the next
job starts on that host. A directory that is in use is never removed.
Does not know: what is in it. Nothing in it needs to survive: a worker rebuilds what it does not find.

A directory in use has a mark on which every process that uses it, on whatever host, holds a shared lock; where a file
system has no locks across hosts, the time of the mark says that it is used: it is updated every minute."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import time
from pathlib import Path

from millstream.errors import ExternalError

PREFIX = "millstream-"
MARK = "in-use"
PARTS = ("stores", "dependencies")  # what workers make
_TOUCH_EVERY = 60.0  # seconds
_KEPT = 8  # directories that a worker holds
_UNUSED_FOR = 600.0  # seconds, before a directory that nobody has locked counts as left behind


class ForeignDirectory(ExternalError):
    """The directory of the job belongs to somebody else."""

    hint = "let io.tmp.dirs name a directory that other users cannot write to"

    def __init__(self, path: str) -> None:
        super().__init__(f"the directory {path}, which this job needs for its local files, belongs to another user")


class Hold:
    """The use of a directory by this process, until `release`."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        Path(directory).parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = _lock(directory)
        self._touched = time.monotonic()
        _remove_unused(Path(directory))

    def touch(self) -> None:
        """Say that the directory is in use."""
        if time.monotonic() - self._touched >= _TOUCH_EVERY:
            self._touched = time.monotonic()
            with contextlib.suppress(OSError):
                os.utime(os.path.join(self.directory, MARK))

    def release(self) -> None:
        """This process needs it no longer."""
        os.close(self._descriptor)


_used: dict[str, Hold] = {}  # by this worker, the newest last


def use(directory: str) -> None:
    """A task of this worker uses the directory; those of the oldest jobs it served are let go of."""
    hold = _used.pop(directory, None) or Hold(directory)
    hold.touch()
    _used[directory] = hold
    while len(_used) > _KEPT:
        _used.pop(next(iter(_used))).release()


def release_all() -> None:
    """This worker uses none."""
    while _used:
        _used.popitem()[1].release()


def remove_parts(directory: str) -> None:
    """The job is over: delete what workers have made, and the directory if nothing else is in it."""
    for part in PARTS:
        shutil.rmtree(os.path.join(directory, part), ignore_errors=True)
    with contextlib.suppress(OSError):
        if os.listdir(directory) == [MARK]:
            shutil.rmtree(directory, ignore_errors=True)


def _lock(directory: str) -> int:
    """Make the directory, and lock its mark; again if somebody removed it in between."""
    mark = os.path.join(directory, MARK)
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        if os.stat(directory).st_uid != os.geteuid():
            raise ForeignDirectory(directory)
        try:
            descriptor = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        with contextlib.suppress(OSError):  # a file system without locks: the time of the mark has to do
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        with contextlib.suppress(FileNotFoundError):
            os.utime(mark)
            if os.path.samestat(os.stat(mark), os.fstat(descriptor)):
                return descriptor
        os.close(descriptor)


def _remove_unused(own: Path) -> None:
    """Delete directories beside our own that processes left behind; by the clock of the file system itself."""
    try:
        now = os.stat(own / MARK).st_mtime
        beside = [each for each in own.parent.iterdir() if each.name.startswith(PREFIX) and each != own]
    except OSError:
        return
    for directory in beside:
        with contextlib.suppress(OSError):
            found = os.lstat(directory)
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
                _remove_if_unused(directory, now)


def _remove_if_unused(directory: Path, now: float) -> None:
    mark = directory / MARK
    if now - os.lstat(mark).st_mtime < _UNUSED_FOR:
        return
    descriptor = os.open(mark, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(descriptor)

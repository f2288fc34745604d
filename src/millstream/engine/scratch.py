"""The scratch directory of a job on a host: local state stores and unpacked dependencies.

Promises: only its owner has access to it. It is deleted when its job ends; a directory that a dead process left behind
is deleted when the next job starts on that host. A directory that is in use is never deleted.
Does not know: what is in it. Nothing in it needs to survive: a worker rebuilds missing files.

A directory in use has a marker file. Every process that uses the directory, on any host, holds a shared lock on it. On
file systems without locks across hosts, the modification time of the marker shows that the directory is in use; it is
updated every minute."""

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
PARTS = ("stores", "dependencies")  # subdirectories that workers create
_TOUCH_EVERY = 60.0  # seconds
_MAX_HELD = 8  # directories that a worker holds at once
_UNUSED_FOR = 600.0  # seconds after which an unlocked directory counts as left behind


class ForeignDirectory(ExternalError):
    """The directory of the job belongs to another user."""

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
        """Update the marker's modification time, if it is older than a minute."""
        if time.monotonic() - self._touched >= _TOUCH_EVERY:
            self._touched = time.monotonic()
            with contextlib.suppress(OSError):
                os.utime(os.path.join(self.directory, MARK))

    def release(self) -> None:
        """Release the lock: this process uses the directory no longer."""
        os.close(self._descriptor)


_used: dict[str, Hold] = {}  # directories of this worker, the most recent last


def use(directory: str) -> None:
    """Hold the directory for a task of this worker, and release those that were used least recently."""
    hold = _used.pop(directory, None) or Hold(directory)
    hold.touch()
    _used[directory] = hold
    while len(_used) > _MAX_HELD:
        _used.pop(next(iter(_used))).release()


def release_all() -> None:
    """Release all directories of this worker."""
    while _used:
        _used.popitem()[1].release()


def remove_parts(directory: str) -> None:
    """Delete what workers created for an ended job, and the directory if nothing else is in it."""
    for part in PARTS:
        shutil.rmtree(os.path.join(directory, part), ignore_errors=True)
    with contextlib.suppress(OSError):
        if os.listdir(directory) == [MARK]:
            shutil.rmtree(directory, ignore_errors=True)


def _lock(directory: str) -> int:
    """Create the directory and lock its marker; repeat if another process removed it in between."""
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
        with contextlib.suppress(OSError):  # a file system without locks: the marker's time is used instead
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        with contextlib.suppress(FileNotFoundError):
            os.utime(mark)
            if os.path.samestat(os.stat(mark), os.fstat(descriptor)):
                return descriptor
        os.close(descriptor)


def _remove_unused(directory_in_use: Path) -> None:
    """Delete sibling directories that dead processes left behind; times are by the clock of the file system."""
    try:
        now = os.stat(directory_in_use / MARK).st_mtime
        siblings = [
            sibling
            for sibling in directory_in_use.parent.iterdir()
            if sibling.name.startswith(PREFIX) and sibling != directory_in_use
        ]
    except OSError:
        return
    for directory in siblings:
        with contextlib.suppress(OSError):
            status = os.lstat(directory)
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
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

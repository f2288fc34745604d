"""Who may read the files that a job keeps for itself: state, logs, staged output, plans.

Promises: files and directories made through this module are accessible to their owner only, unless this process was
told otherwise; the umask may take more rights away. Files that exist keep their rights.
Does not know: what files hold, or file systems that are not local."""

from __future__ import annotations

import errno
import os
from enum import Enum

from millstream.errors import UserError


class FileAccess(Enum):
    """Who has access to new files. The value is the mode of a directory; files lack the right to execute."""

    OWNER = 0o700
    GROUP = 0o770
    UMASK = 0o777


class UnknownFileAccess(UserError):
    """The option that widens access has a value without a meaning."""

    def __init__(self, word: str) -> None:
        self.word = word
        names = ", ".join(access.name.lower() for access in FileAccess)
        super().__init__(f"files can be accessible to {names}, not to '{word}'", hint=f"use one of {names}")


_current = FileAccess.OWNER


def use_access(word: str) -> None:
    """Set the access of all files that this process makes from now on."""
    global _current
    try:
        _current = FileAccess[word.upper()]
    except KeyError:
        raise UnknownFileAccess(word) from None


def directory_mode() -> int:
    """The mode of a new directory."""
    return _current.value


def opener(path: str, flags: int) -> int:
    """Open a file for `open(..., opener=opener)`; a new one gets its rights when it is made."""
    return os.open(path, flags, _current.value & 0o666)


def make_directories(path: str) -> None:
    """Make a directory with those above it; nothing if it is there. Their names are on the device when this returns."""
    above = os.path.dirname(path)
    if above and not os.path.isdir(above):
        make_directories(above)
    if not os.path.isdir(path):
        try:
            os.mkdir(path, directory_mode())
        except FileExistsError:
            if not os.path.isdir(path):
                raise
        sync_directory(above or ".")


def sync_directory(path: str) -> None:
    """Bring the names in a directory to the device."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some mounts know no sync of a directory
            raise
    finally:
        os.close(descriptor)

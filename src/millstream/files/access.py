"""Permissions of the files that a job keeps for itself: state, logs, staged output, plans.

Promises: files and directories that are created through this module are accessible to their owner only, unless
`set_file_access` widened that in this process; the umask may take more rights away. Existing files keep their
permissions.
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
    """The option that widens access has an unknown value."""

    def __init__(self, word: str) -> None:
        self.word = word
        names = ", ".join(access.name.lower() for access in FileAccess)
        super().__init__(f"files can be accessible to {names}, not to '{word}'", hint=f"use one of {names}")


_current = FileAccess.OWNER


def set_file_access(word: str) -> None:
    """Set the access of all files that this process creates from now on."""
    global _current
    try:
        _current = FileAccess[word.upper()]
    except KeyError:
        raise UnknownFileAccess(word) from None


def directory_mode() -> int:
    """Return the mode of a new directory."""
    return _current.value


def opener(path: str, flags: int) -> int:
    """Open a file for `open(..., opener=opener)`; a new file has its permissions from the moment it exists."""
    return os.open(path, flags, _current.value & 0o666)


def sync_directory(path: str) -> None:
    """Sync a directory: its names are on the device when this returns."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some mounts cannot sync a directory
            raise
    finally:
        os.close(descriptor)

"""Errors of storage, which name the file and the remedy.

Promises: storage that cannot be used now (`StorageFailure`) is distinguished from a file that is missing or damaged.
Does not know: who reads or writes."""

from __future__ import annotations

import errno
import os

from millstream.errors import ExternalError, UserError

_HINTS = {
    errno.ENOSPC: "free space there or use another directory; the job goes on from its last checkpoint",
    errno.EDQUOT: "raise the quota or use another directory; the job goes on from its last checkpoint",
    errno.EACCES: "give the user of the driver and of all executors permission to write there",
    errno.EPERM: "give the user of the driver and of all executors permission to write there",
    errno.EROFS: "mount the file system for writing, on the driver and on all executors",
    errno.EIO: "check the disk or the network mount; the system's log may have details",
    errno.ENOENT: "create or mount the directory, on the driver and on all executors",
    errno.ENOTDIR: "a part of the path is a file; use another directory",
}


class StorageFailure(ExternalError):
    """The file system refused an operation: no space, no permission, a broken disk."""

    def __init__(self, action: str, path: str, error: OSError) -> None:
        self.path = path
        self.errno = error.errno or 0
        reason = os.strerror(self.errno) if self.errno else str(error)
        hint = _HINTS.get(self.errno, "check that the driver and all executors can use the directory")
        super().__init__(f"cannot {action} {path}: {reason.lower()}", hint=hint)


class MissingFile(ExternalError):
    """A file that should be there is not."""

    hint = "it may have been deleted manually, or the directory is not the one that the job wrote to"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"there is no file {path}")


class CorruptFile(ExternalError):
    """The content of a file is not what was written to it."""

    hint = "restore it from a copy, or start from an older checkpoint or a savepoint"

    def __init__(self, path: str, expected: str, found: str) -> None:
        self.path = path
        self.expected = expected
        self.found = found
        super().__init__(f"the file {path} is damaged: expected {expected}, found {found}")


class OutsideRoot(UserError):
    """A name would lead out of the storage's directory."""

    hint = "names are relative, without '..', and no link may lead elsewhere"

    def __init__(self, name: str, root: str) -> None:
        self.name = name
        self.root = root
        super().__init__(f"the name {name!r} is not inside {root}")


class ConnectorStorageFailure(ExternalError):
    """The storage of a source or sink refused an operation; `StorageFailure` is the error for a job's own files."""

    def __init__(self, path: str, action: str, problem: Exception) -> None:
        self.path = path
        refused = isinstance(problem, OSError)
        reason = problem.strerror.lower() if isinstance(problem, OSError) and problem.strerror else str(problem)
        super().__init__(
            f"cannot {action} {path}: {reason.splitlines()[0] if reason else repr(problem)}",
            hint="there must be space and permission, on the driver and all executors" if refused else None,
        )

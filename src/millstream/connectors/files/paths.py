"""Names of files: what a user gave, what lies below it, and what a file looked like when it was planned.

Promises: a path is absolute and local; hidden files and directories (`.` and `_`) below a given path are left out; a
file that is not what it was is noticed.
Does not know: what files hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, urlsplit

from millstream.errors import ExternalError, UserError


class UnusablePath(UserError):
    """A path that cannot be used as asked."""

    def __init__(self, path: str, problem: str, *, hint: str | None = None) -> None:
        self.path = path
        super().__init__(f"{path} {problem}", hint=hint)


class UnreadableFile(ExternalError):
    """The file system refused to give a file or directory."""

    hint = "it must be there and readable under the same name for the driver and all executors"

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        super().__init__(f"cannot read {path}: {(error.strerror or str(error)).lower()}")


class FileVanished(ExternalError):
    """A file that was planned is gone."""

    hint = "leave files where they are until the job has read them; all executors must see the same directory"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"the file {path} was there when it was planned and is gone now")


class FileChanged(UserError):
    """A file that was planned has changed since, so the same range would give other records."""

    hint = "write files elsewhere and move them in when they are complete; never write to a file that is being read"

    def __init__(self, path: str, planned: tuple[int, int], found: tuple[int, int]) -> None:
        self.path, self.planned, self.found = path, planned, found
        change = (
            f"from {planned[0]} to {found[0]} bytes" if planned[0] != found[0] else "its modification time is newer"
        )
        super().__init__(f"the file {path} has changed since it was planned: {change}")


def local(path: str | os.PathLike[str]) -> str:
    """The absolute local path of a path or a `file:` URI."""
    text = os.fspath(path)
    if not isinstance(text, str) or not text:
        raise UnusablePath(repr(path), "is not a path", hint="give a string such as 'data/in' or 'file:///data/in'")
    parts = urlsplit(text)
    if "://" not in text and parts.scheme != "file":
        return os.path.abspath(text)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        hint = "mount it, and give its path on the driver and all executors"
        raise UnusablePath(text, "is not on a local or mounted file system", hint=hint)
    return os.path.abspath(unquote(parts.path))


def look_at(path: str) -> tuple[int, int]:
    """Size and modification time (in nanoseconds) of a file."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise FileVanished(path) from None
    except OSError as error:
        raise UnreadableFile(path, error) from error
    return found.st_size, found.st_mtime_ns


def below(roots: Iterable[str]) -> Iterator[str]:
    """The files at or below the paths that are not hidden, each once; the order within a directory is by name."""
    given: set[str] = set()
    for root in roots:
        if not os.path.exists(root):
            raise UnusablePath(root, "does not exist", hint="create it first, or give another path")
        for path in [root] if not os.path.isdir(root) else _walk(root):
            if path not in given:
                given.add(path)
                yield path


def _walk(root: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise UnreadableFile(str(error.filename or root), error) from error

    visited: set[str] = set()
    for folder, folders, files in os.walk(root, followlinks=True, onerror=refuse):
        visited.add(os.path.realpath(folder))
        # a link to a directory above would never end
        folders[:] = sorted(
            name for name in folders if not _hidden(name) and os.path.realpath(f"{folder}/{name}") not in visited
        )
        yield from (os.path.join(folder, name) for name in sorted(files) if not _hidden(name))


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))

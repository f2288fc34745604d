"""Paths of a file source: resolving them, finding files below them, and detecting changed files.

Promises: a path is absolute and local, or a URI; hidden files and directories (`.` and `_`) below a given path are
skipped; a file that changed since it was planned is detected.
Does not know: what files contain."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, urlsplit

from millstream.errors import ExternalError, UserError
from millstream.files.contract import FileSystem
from millstream.files.locations import join_path, scheme_of
from millstream.files.remote import ATOMIC_RENAMES, OBJECT_STORES, check_scheme, get_file_system


class UnusablePath(UserError):
    """A path that cannot be used."""

    def __init__(self, path: str, problem: str, *, hint: str | None = None) -> None:
        self.path = path
        super().__init__(f"{path} {problem}", hint=hint)


class UnreadableFile(ExternalError):
    """A file or directory cannot be read."""

    hint = "it must exist and be readable under the same name for the driver and all executors"

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        super().__init__(f"cannot read {path}: {(error.strerror or str(error)).lower()}")


class FileVanished(ExternalError):
    """A file that was planned is gone."""

    hint = "leave files where they are until the job has read them; all executors must see the same directory"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"the file {path} existed when it was planned, and does not exist any more")


class FileChanged(UserError):
    """A file has changed since it was planned, so the same range would have other records."""

    hint = "write files elsewhere and move them when they are complete; never write to a file that is being read"

    def __init__(self, path: str, planned: tuple[int, int], actual: tuple[int, int]) -> None:
        self.path, self.planned, self.actual = path, planned, actual
        change = (
            f"from {planned[0]} to {actual[0]} bytes" if planned[0] != actual[0] else "its modification time is newer"
        )
        super().__init__(f"the file {path} has changed since it was planned: {change}")


class OutputNotAtomic(UserError):
    """A scheme on which incomplete files are visible."""

    def __init__(self, path: str, scheme: str) -> None:
        self.path, self.scheme = path, scheme
        supported = ", ".join(sorted({*ATOMIC_RENAMES, *OBJECT_STORES} - {"file", "local", "memory"}))
        super().__init__(
            f"a file sink cannot write to {path}: {scheme}:// neither renames atomically nor hides a file until it is "
            "complete",
            hint=f"use a directory of a mounted file system, or one of the schemes {supported}",
        )


def check_output_scheme(path: str) -> None:
    """Raise `OutputNotAtomic` for a URI on which output would be visible before it is committed."""
    scheme = scheme_of(path)
    if scheme is not None and scheme not in ATOMIC_RENAMES and scheme not in OBJECT_STORES:
        raise OutputNotAtomic(path, scheme)


def resolve_path(path: str | os.PathLike[str]) -> str:
    """Return the absolute path of a local path or `file:` URI; for other URIs the URI, having checked its scheme."""
    text = os.fspath(path)
    if not isinstance(text, str) or not text:
        raise UnusablePath(repr(path), "is not a path", hint="use a string such as 'data/in' or 's3://bucket/in'")
    parts = urlsplit(text)
    if "://" not in text and parts.scheme != "file":
        return os.path.abspath(text)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise UnusablePath(text, "names another machine", hint="mount it, and use its path")
        return os.path.abspath(unquote(parts.path))
    check_scheme(text)
    return text.rstrip("/")


def file_status(path: str) -> tuple[int, int]:
    """Return the size and the version of a file; locally the version is the modification time in nanoseconds."""
    try:
        return get_file_system(path).status(path)
    except FileNotFoundError:
        raise FileVanished(path) from None
    except OSError as error:
        raise UnreadableFile(path, error) from error


def list_files(roots: Iterable[str]) -> Iterator[str]:
    """Yield the files at or below the paths that are not hidden, each once, in the order of names."""
    seen: set[str] = set()
    for root in roots:
        files = get_file_system(root)
        if not files.exists(root):
            raise UnusablePath(root, "does not exist", hint="create it first, or use another path")
        for path in [root] if not files.is_directory(root) else _walk(files, root):
            if path not in seen:
                seen.add(path)
                yield path


def _walk(files: FileSystem, root: str) -> Iterator[str]:
    try:
        for folder, folders, names in files.walk(root):
            folders[:] = [name for name in folders if not _is_hidden(name)]
            if any(map(_is_hidden, folder.removeprefix(root).split("/"))):
                continue  # some file systems list these directories nevertheless
            yield from (join_path(folder, name) for name in names if not _is_hidden(name))
    except OSError as error:
        raise UnreadableFile(str(error.filename or root), error) from error


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))

"""Small files in one directory, found by name: one for each table, or one for each catalog.

Promises: a file is complete when it appears, and is replaced atomically, so after a crash it has the old or the new
content. Local files belong to their owner alone, because options of tables can be secrets. Any name makes a valid file
name.
Does not know: what files hold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, unquote

from millstream.files.contract import FileSystem
from millstream.files.errors import StorageFailure
from millstream.files.local import LocalFileSystem
from millstream.files.locations import absolute_location, is_uri
from millstream.files.remote import get_file_system


def open_file_system(path: str) -> tuple[FileSystem, str]:
    """Return the file system of a path or URI, and the path on it."""
    location = absolute_location(path)
    return (get_file_system(location) if is_uri(location) else LocalFileSystem()), location


def encode_name(name: str) -> str:
    """Return a name as part of a path: all but letters, digits, `_`, `-`, `~` and inner dots becomes `%` and hex."""
    encoded = quote(name, safe="")
    return f"%2E{encoded[1:]}" if encoded.startswith(".") else encoded


@contextmanager
def _translate_errors(action: str, path: str) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError as error:
        raise StorageFailure(action, path, error) from error


class NamedFiles:
    """The files of a directory whose names end in `suffix`."""

    def __init__(self, file_system: FileSystem, directory: str, suffix: str) -> None:
        self._fs, self._directory, self._suffix = file_system, directory, suffix

    def path(self, name: str) -> str:
        """Return the path of a name."""
        return f"{self._directory}/{encode_name(name)}{self._suffix}"

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        with _translate_errors("list", self._directory):
            files = self._fs.list_if_exists(self._directory)
        return sorted(unquote(file.removesuffix(self._suffix)) for file in files if file.endswith(self._suffix))

    def exists(self, name: str) -> bool:
        """Return whether there is a file of that name."""
        with _translate_errors("look for", self.path(name)):
            return self._fs.exists(self.path(name))

    def read(self, name: str) -> bytes:
        """Return the content of a file; a `KeyError` if there is none."""
        with _translate_errors("read", self.path(name)):
            try:
                return self._fs.read_bytes(self.path(name))
            except (FileNotFoundError, NotADirectoryError):
                raise KeyError(name) from None

    def create(self, name: str, data: bytes) -> bool:
        """Create a file; return False if there is one of that name."""
        with _translate_errors("write", self.path(name)):
            temporary = self._write_temporary(name, data)
            try:
                self._fs.move_new_durably(temporary, self.path(name))
            except FileExistsError:
                self._fs.remove(temporary)
                return False
        return True

    def replace(self, name: str, data: bytes) -> None:
        """Create a file, or replace it."""
        with _translate_errors("write", self.path(name)):
            self._fs.rename_durably(self._write_temporary(name, data), self.path(name))

    def remove(self, name: str) -> None:
        """Delete a file; a `KeyError` if there is none."""
        with _translate_errors("delete", self.path(name)):
            try:
                self._fs.remove(self.path(name))
            except FileNotFoundError:
                raise KeyError(name) from None
            self._fs.sync_dir(self._directory)

    def _write_temporary(self, name: str, data: bytes) -> str:
        # writers of the same temporary file write the same bytes
        temporary = f"{self.path(name)}.{hashlib.sha256(data).hexdigest()[:16]}.tmp"
        self._fs.make_dirs(self._directory)
        self._fs.write_bytes(temporary, data, True)
        return temporary

"""The store of a session cluster on shared storage: its programs, and the archives of those that have ended.

    <root>/programs/<id>.json     the description of a program that runs
    <root>/programs/<id>.bin      the uploaded file of the program
    <root>/programs/<id>.cancel   an empty file: the program is to be cancelled
    <root>/archive/<id>.json      a program that has ended, with the answers of its REST resources

Promises: a program is in the store if its description exists, which is written last and deleted first. A file that is
not a description is skipped and logged.
Does not know: what a program is; a description is JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from millstream.files.errors import StorageFailure
from millstream.files.locations import absolute_location, is_uri, join_path
from millstream.files.remote import get_file_system

_log = logging.getLogger("millstream.session")

_PROGRAMS, _ARCHIVE = "programs", "archive"


class ProgramStore:
    """The files of a session cluster below a directory or URI."""

    def __init__(self, root: str) -> None:
        self.root = absolute_location(root)
        self._fs = get_file_system(self.root)

    def add(self, program: str, description: dict[str, Any], content: bytes) -> None:
        """Store a program."""
        self._write(_PROGRAMS, f"{program}.bin", content)
        self._write(_PROGRAMS, f"{program}.json", json.dumps(description).encode())

    def content(self, program: str) -> bytes:
        """Return the uploaded file of a program."""
        return self._fs.read_bytes(self._path(_PROGRAMS, f"{program}.bin"))

    def cancel(self, program: str) -> None:
        """Note that a program is to be cancelled."""
        self._write(_PROGRAMS, f"{program}.cancel", b"")

    def is_cancelled(self, program: str) -> bool:
        """Return whether a program is to be cancelled."""
        return f"{program}.cancel" in self._fs.list_if_exists(self._path(_PROGRAMS, ""))

    def programs(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of the programs that have not ended."""
        return self._read_all(_PROGRAMS)

    def archive(self, program: str, ended: dict[str, Any]) -> None:
        """Write the archive of a program that has ended, and delete the program. After a crash in between, the program
        is archived and is not started again."""
        self._write(_ARCHIVE, f"{program}.json", json.dumps(ended).encode())
        for name in (f"{program}.json", f"{program}.bin", f"{program}.cancel"):
            self._remove(_PROGRAMS, name)

    def forget(self, program: str) -> None:
        """Delete the archive of a program that has ended."""
        self._remove(_ARCHIVE, f"{program}.json")

    def _remove(self, folder: str, name: str) -> None:
        with suppress(OSError):
            self._fs.remove(self._path(folder, name))

    def archived(self) -> dict[str, dict[str, Any]]:
        """Return the programs that have ended."""
        return self._read_all(_ARCHIVE)

    def _read_all(self, folder: str) -> dict[str, dict[str, Any]]:
        values = {}
        for name in sorted(self._fs.list_if_exists(self._path(folder, ""))):
            if name.endswith(".json") and not name.startswith("."):
                path = self._path(folder, name)
                try:
                    value = json.loads(self._fs.read_bytes(path))
                except (OSError, ValueError, RecursionError) as problem:
                    _log.warning("%s is skipped: %s", path, problem)
                    continue
                if isinstance(value, dict):
                    values[name.removesuffix(".json")] = value
        return values

    def _write(self, folder: str, name: str, data: bytes) -> None:
        _write(self._path(folder, ""), name, data)

    def _path(self, folder: str, name: str) -> str:
        return join_path(join_path(self.root, folder), name)


def write_history(directory: str, jobs: Iterable[dict[str, Any]], archive: dict[str, Any]) -> None:
    """Write one file for each job to the directory of a history server, as Flink does."""
    for job in jobs:
        root = f"/jobs/{job['jid']}"
        own_entries = [entry for entry in archive["archive"] if f"{entry['path']}/".startswith(f"{root}/")]
        overview = {"path": "/jobs/overview", "json": json.dumps({"jobs": [job]})}
        _write(absolute_location(directory), job["jid"], json.dumps({"archive": [overview, *own_entries]}).encode())


def _write(directory: str, name: str, data: bytes) -> None:
    """Write a file that appears when it is complete."""
    path, fs = join_path(directory, name), get_file_system(directory)
    try:
        if is_uri(directory):
            fs.write_bytes(path, data, True)
            return
        fs.make_dirs(directory)
        temporary = join_path(directory, f".{name}.tmp")
        fs.write_bytes(temporary, data, True)
        fs.rename_durably(temporary, path)
    except OSError as problem:
        action = "write"
        raise StorageFailure(action, path, problem) from problem

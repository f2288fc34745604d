"""The lease of a job, which one driver holds at a time, and its files on shared storage.

Promises: terms are numbers that only grow, and each is taken by one driver. A reader decides by its own monotonic clock
and by the renewals it has seen whether a lease is expired, so clocks of machines are never compared. The outcome of the
job is written once.
Does not know: jobs, checkpoints, threads.

    <directory>/term-0000000003      the driver that took term 3; created once
    <directory>/beat-0000000003      how often the holder of term 3 has renewed the lease
    <directory>/outcome              how the job ended: no driver runs it again

A read of the storage must return what was written before, and of several drivers that create a name one must succeed.
Local disks, NFS, and object stores with conditional writes fulfil both."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from millstream.files.contract import FileSystem
from millstream.files.errors import CorruptFile, StorageFailure
from millstream.files.local import LocalFileSystem
from millstream.files.remote import ObjectStore

_OUTCOME = "outcome"
_KEPT_TERMS = 10
_attempts = itertools.count()


@dataclass(frozen=True)
class Held:
    """The state of a lease: its newest term, the driver that took it, and how often that driver has renewed it."""

    term: int
    holder: str
    beat: int


@dataclass(frozen=True)
class Outcome:
    """How the job ended: the name of a final `JobStatus`, and the cause."""

    status: str
    cause: str | None = None


class Lease(Protocol):
    """A lease on shared storage, or in a service that keeps leases."""

    def held(self) -> Held | None:
        """Return the newest term; None if no driver ever took one."""

    def take(self, term: int, holder: str) -> bool:
        """Take a term; False if another driver has taken it."""

    def renew(self, term: int, beat: int) -> None:
        """Renew the lease of a term; `beat` counts the renewals."""

    def outcome(self) -> Outcome | None:
        """Return how the job ended; None while it runs."""

    def conclude(self, outcome: Outcome) -> None:
        """Write how the job ended, unless that is written already."""


@dataclass(frozen=True)
class Watch:
    """What a standby driver has read of a lease, and when it read this first, on its own monotonic clock; an immutable
    value."""

    seen: Held | None = None
    since: float = 0.0

    def after(self, held: Held | None, now: float) -> Watch:
        """Return the watch after another read of the lease."""
        return self if held == self.seen else Watch(held, now)

    def is_expired(self, now: float, duration: float) -> bool:
        """Return whether no driver holds the lease: none ever did, or the holder has not renewed it for `duration`
        seconds."""
        return self.seen is None or now - self.since >= duration


class FileLease:
    """A lease in a directory, or below a URI on an object store."""

    def __init__(self, directory: str, fs: FileSystem | None = None) -> None:
        self.directory = directory
        self._fs = fs if fs is not None else LocalFileSystem()

    def held(self) -> Held | None:
        """Read the newest term."""
        terms = self._terms()
        if not terms:
            return None
        record = self._parse(_term(terms[-1]), dict, self._read(_term(terms[-1])) or b"{}")
        renewals = self._parse(_beat(terms[-1]), int, self._read(_beat(terms[-1])) or b"0")
        return Held(terms[-1], str(record.get("holder", "")), renewals)

    def take(self, term: int, holder: str) -> bool:
        """Create the file of the term, unless it exists."""
        if not self._create(_term(term), json.dumps({"term": term, "holder": holder}).encode()):
            return False
        for old in self._terms()[:-_KEPT_TERMS]:
            for name in (_beat(old), _term(old)):
                with suppress(OSError):
                    self._fs.remove(f"{self.directory}/{name}")
        return True

    def renew(self, term: int, beat: int) -> None:
        """Write the number of renewals."""
        with self._as_storage_failure("renew the lease in"):
            if isinstance(self._fs, ObjectStore):  # an object becomes visible when it is complete
                self._fs.write_bytes(f"{self.directory}/{_beat(term)}", json.dumps(beat).encode(), False)
                return
            temporary = self._write(_beat(term), json.dumps(beat).encode(), sync=False)
            self._fs.replace(temporary, f"{self.directory}/{_beat(term)}")

    def outcome(self) -> Outcome | None:
        """Read the outcome, if it is written."""
        data = self._read(_OUTCOME)
        if data is None:
            return None
        read = self._parse(_OUTCOME, dict, data)
        return Outcome(str(read.get("status", "")), read.get("cause"))

    def conclude(self, outcome: Outcome) -> None:
        """Create the file of the outcome, unless it exists."""
        self._create(_OUTCOME, json.dumps({"status": outcome.status, "cause": outcome.cause}).encode())

    def _terms(self) -> list[int]:
        with self._as_storage_failure("read the lease in"):
            try:
                names = self._fs.list(self.directory)
            except FileNotFoundError:
                return []
        return sorted(int(name[5:]) for name in names if name.startswith("term-") and name[5:].isdecimal())

    def _parse(self, name: str, json_type: type, data: bytes) -> Any:
        try:
            read = json.loads(data)
        except (ValueError, RecursionError):
            read = None
        if type(read) is not json_type:
            path = f"{self.directory}/{name}"
            raise CorruptFile(path, "a file of a lease", repr(data[:40]))
        return read

    def _read(self, name: str) -> bytes | None:
        with self._as_storage_failure("read the lease in"):
            try:
                return self._fs.read_bytes(f"{self.directory}/{name}")
            except FileNotFoundError:
                return None

    def _create(self, name: str, data: bytes) -> bool:
        with self._as_storage_failure("write the lease in"):
            if isinstance(self._fs, ObjectStore):
                with suppress(FileExistsError):
                    self._fs.write_new(f"{self.directory}/{name}", data)
                    return True
                return False
            self._fs.make_dirs(self.directory)
            temporary = self._write(name, data, sync=True)
            try:
                self._fs.move_new(temporary, f"{self.directory}/{name}")
            except FileExistsError:
                with suppress(OSError):
                    self._fs.remove(temporary)
                return False
            self._fs.sync_dir(self.directory)
        return True

    def _write(self, name: str, data: bytes, *, sync: bool) -> str:
        writer = f"{os.uname().nodename}-{os.getpid()}-{threading.get_ident()}-{next(_attempts)}"
        temporary = f"{self.directory}/.{name}.{writer}.tmp"
        self._fs.write_bytes(temporary, data, sync)
        return temporary

    @contextmanager
    def _as_storage_failure(self, action: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageFailure(action, self.directory, error) from error


def _term(term: int) -> str:
    return f"term-{term:010d}"


def _beat(term: int) -> str:
    return f"beat-{term:010d}"

"""A lease that one driver of a job holds at a time, and the file that keeps it on shared storage.

Promises: terms are numbers that only grow, and each is taken by one driver; a reader finds a lease expired by its own
monotonic clock, from beats it has seen, so clocks of machines are never compared; how the job ended is written once.
Does not know: jobs, checkpoints, threads.

    <directory>/term-0000000003      who took term 3; made once, by one
    <directory>/beat-0000000003      how often the holder of term 3 has said that it lives
    <directory>/outcome              how the job ended: nobody will run it again

Storage must show what was written to whoever reads later, and let one of several creators of a name win: local disks,
NFS, and object stores with conditional writes do."""

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
    """A lease as a reader finds it: its newest term, who took that, and how often the holder has renewed it."""

    term: int
    holder: str
    beat: int


@dataclass(frozen=True)
class Outcome:
    """How the job ended: the name of a final `JobStatus`, and why."""

    status: str
    cause: str | None = None


class Lease(Protocol):
    """What leadership needs of shared storage, or of a service that keeps leases."""

    def held(self) -> Held | None:
        """The newest term; None when nobody ever took one."""

    def take(self, term: int, holder: str) -> bool:
        """Take a term that nobody has; False when somebody was quicker."""

    def renew(self, term: int, beat: int) -> None:
        """Say that the holder of a term lives."""

    def outcome(self) -> Outcome | None:
        """How the job ended; None while it has not."""

    def conclude(self, outcome: Outcome) -> None:
        """Write down how the job ended; the first to do so counts."""


@dataclass(frozen=True)
class Watch:
    """What a waiting driver has seen of a lease, and since when, on its own monotonic clock: pure."""

    seen: Held | None = None
    since: float = 0.0

    def after(self, held: Held | None, now: float) -> Watch:
        """What is known after another look."""
        return self if held == self.seen else Watch(held, now)

    def expired(self, now: float, duration: float) -> bool:
        """Whether nobody holds the lease: none ever did, or the holder has not renewed it for `duration` seconds."""
        return self.seen is None or now - self.since >= duration


class FileLease:
    """A lease in a directory, or below a URI on an object store."""

    def __init__(self, directory: str, fs: FileSystem | None = None) -> None:
        self.directory = directory
        self._fs = fs if fs is not None else LocalFileSystem()

    def held(self) -> Held | None:
        """The newest term."""
        terms = self._terms()
        if not terms:
            return None
        taken = self._parse(_term(terms[-1]), dict, self._read(_term(terms[-1])) or b"{}")
        beaten = self._parse(_beat(terms[-1]), int, self._read(_beat(terms[-1])) or b"0")
        return Held(terms[-1], str(taken.get("holder", "")), beaten)

    def take(self, term: int, holder: str) -> bool:
        """Make the file of the term, unless it is there."""
        if not self._create(_term(term), json.dumps({"term": term, "holder": holder}).encode()):
            return False
        for old in self._terms()[:-_KEPT_TERMS]:
            for name in (_beat(old), _term(old)):
                with suppress(OSError):
                    self._fs.remove(f"{self.directory}/{name}")
        return True

    def renew(self, term: int, beat: int) -> None:
        """Write the beat."""
        with self._telling("renew the lease in"):
            if isinstance(self._fs, ObjectStore):  # an object appears when it is complete
                self._fs.write_bytes(f"{self.directory}/{_beat(term)}", json.dumps(beat).encode(), False)
                return
            temporary = self._write(_beat(term), json.dumps(beat).encode(), sync=False)
            self._fs.replace(temporary, f"{self.directory}/{_beat(term)}")

    def outcome(self) -> Outcome | None:
        """What is written in the file, if there is one."""
        data = self._read(_OUTCOME)
        if data is None:
            return None
        read = self._parse(_OUTCOME, dict, data)
        return Outcome(str(read.get("status", "")), read.get("cause"))

    def conclude(self, outcome: Outcome) -> None:
        """Make the file, unless it is there."""
        self._create(_OUTCOME, json.dumps({"status": outcome.status, "cause": outcome.cause}).encode())

    def _terms(self) -> list[int]:
        with self._telling("look at the lease in"):
            try:
                names = self._fs.list(self.directory)
            except FileNotFoundError:
                return []
        return sorted(int(name[5:]) for name in names if name.startswith("term-") and name[5:].isdecimal())

    def _parse(self, name: str, kind: type, data: bytes) -> Any:
        try:
            read = json.loads(data)
        except (ValueError, RecursionError):
            read = None
        if type(read) is not kind:
            path = f"{self.directory}/{name}"
            raise CorruptFile(path, "a file of a lease", repr(data[:40]))
        return read

    def _read(self, name: str) -> bytes | None:
        with self._telling("read the lease in"):
            try:
                return self._fs.read_bytes(f"{self.directory}/{name}")
            except FileNotFoundError:
                return None

    def _create(self, name: str, data: bytes) -> bool:
        with self._telling("write the lease in"):
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
        own = f"{os.uname().nodename}-{os.getpid()}-{threading.get_ident()}-{next(_attempts)}"
        temporary = f"{self.directory}/.{name}.{own}.tmp"
        self._fs.write_bytes(temporary, data, sync)
        return temporary

    @contextmanager
    def _telling(self, action: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageFailure(action, self.directory, error) from error


def _term(term: int) -> str:
    return f"term-{term:010d}"


def _beat(term: int) -> str:
    return f"beat-{term:010d}"

"""A log on an object store: one object for each record, because an object cannot be appended to.

    <log>                  there is a log; what an earlier version wrote stands in it
    <log>.d/<number>       a record, in a frame

Promises: adding a record writes that record and nothing else; a record that was added or read by this process is not
fetched again; records that are dropped are deleted. One process at a time adds records.
Does not know: what records are."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.checkpoint.frames import framed, record_at, scan
from millstream.checkpoint.object_store import ObjectStore


class DamagedRecord(Exception):
    """An object does not hold what was written to it."""

    def __init__(self, path: str, found: int) -> None:
        self.path, self.found = path, found
        super().__init__(path)


class ObjectLog:
    """The log at a path. Failures of the store are `OSError`s."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        self._store, self._path = store, path
        self._earlier: list[bytes] | None = None  # records in the object of the log itself
        self._known: dict[int, bytes] = {}
        self._next: int | None = None

    def exists(self) -> bool:
        """Whether there is a log, be it empty."""
        return self._store.exists(self._path)

    def append(self, record: bytes) -> None:
        """Add a record; it is there when this returns."""
        if self._next is None:
            if not self.exists():
                self.replace(())
            self._next = max(self._numbers(), default=-1) + 1
        self._store.write_bytes(self._name(self._next), framed(self._next, record), True)
        self._known[self._next] = record
        self._next += 1

    def read(self) -> list[bytes]:
        """All records, in order."""
        if self._earlier is None:
            if not self.exists():
                return []
            data = self._store.read_bytes(self._path)
            self._earlier, end, later = scan(data)
            if later is not None:
                raise DamagedRecord(self._path, end)
        numbers = self._numbers()
        self._known = {number: self._record(number) for number in numbers}
        return [*self._earlier, *self._known.values()]

    def _record(self, number: int) -> bytes:
        known = self._known.get(number)
        if known is not None:
            return known
        data = self._store.read_bytes(self._name(number))
        record = record_at(data, number, number)
        if record is None:
            raise DamagedRecord(self._name(number), len(data))
        return record

    def replace(self, keep: Sequence[bytes]) -> None:
        """Make these records the whole log. Is it the end of what is there, the rest is deleted.

        Else there is no log between the first step and the last: a crash leaves what the next call begins with."""
        wanted = list(keep)
        there = self.read()
        earlier, numbers = len(self._earlier or ()), list(self._known)
        dropped = len(there) - len(wanted)
        if self._earlier is not None and there[max(dropped, 0) :] == wanted and dropped >= earlier:
            if earlier:
                self._store.write_bytes(self._path, b"", True)
                self._earlier = []
            for number in numbers[: dropped - earlier]:
                self._store.remove(self._name(number))
                del self._known[number]
            return
        self.delete()
        for number, record in enumerate(wanted):
            self._store.write_bytes(self._name(number), framed(number, record), True)
        self._store.write_bytes(self._path, b"", True)
        self._known, self._earlier, self._next = dict(enumerate(wanted)), [], len(wanted)

    def delete(self) -> None:
        """Delete the log; nothing if there is none."""
        if self.exists():
            self._store.remove(self._path)
        for number in self._numbers():
            self._store.remove(self._name(number))
        self._known, self._earlier, self._next = {}, None, None

    def _name(self, number: int) -> str:
        return f"{self._path}.d/{number:020d}"

    def _numbers(self) -> list[int]:
        try:
            names = self._store.list(f"{self._path}.d")
        except FileNotFoundError:
            return []
        return sorted(int(name) for name in names if name.isdecimal())

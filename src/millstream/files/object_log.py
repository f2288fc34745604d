"""An append-only log on an object store: one object for each record, because an object cannot be appended to.

    <log>                  the log exists; holds the records that an earlier version wrote
    <log>.d/<number>       a record, in a frame

Promises: appending a record writes that record and nothing else; a record that this process appended or read is not
fetched again; records that are dropped are deleted. One process at a time appends.
Does not know: what records are."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.files.frames import frame_record, read_record, scan_records
from millstream.files.remote import ObjectStore


class DamagedRecord(Exception):
    """An object does not hold what was written to it; `size` is how many bytes were usable."""

    def __init__(self, path: str, size: int) -> None:
        self.path, self.size = path, size
        super().__init__(path)


class ObjectLog:
    """The log at a path. Failures of the store are `OSError`s."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        self._store, self._path = store, path
        self._earlier: list[bytes] | None = None  # records in the object of the log itself
        self._known: dict[int, bytes] = {}
        self._next: int | None = None

    def exists(self) -> bool:
        """Whether there is a log; it may be empty."""
        return self._store.exists(self._path)

    def append(self, record: bytes) -> None:
        """Append a record; it is durable when this returns."""
        if self._next is None:
            if not self.exists():
                self.replace(())
            self._next = max(self._list_numbers(), default=-1) + 1
        self._write(self._next, record)
        self._known[self._next] = record
        self._next += 1

    def read(self) -> list[bytes]:
        """Return all records, in order."""
        if self._earlier is None:
            if not self.exists():
                return []
            data = self._store.read_bytes(self._path)
            self._earlier, end, later = scan_records(data)
            if later is not None:
                raise DamagedRecord(self._path, end)
        self._known = {number: self._read(number) for number in self._list_numbers()}
        return [*self._earlier, *self._known.values()]

    def replace(self, keep: Sequence[bytes]) -> None:
        """Make these records the whole log. If they are its last records, the records before them are deleted.

        Otherwise the log is deleted and written again: there is no log between the first step and the last, and after
        a crash the next call begins with what is left."""
        kept = list(keep)
        current = self.read()
        earlier, numbers = len(self._earlier or ()), list(self._known)
        dropped = len(current) - len(kept)
        if self._earlier is not None and current[max(dropped, 0) :] == kept and dropped >= earlier:
            if earlier:
                self._store.write_bytes(self._path, b"", True)
                self._earlier = []
            for number in numbers[: dropped - earlier]:
                self._store.remove(self._name(number))
                del self._known[number]
            return
        self.delete()
        for number, record in enumerate(kept):
            self._write(number, record)
        self._store.write_bytes(self._path, b"", True)
        self._known, self._earlier, self._next = dict(enumerate(kept)), [], len(kept)

    def delete(self) -> None:
        """Delete the log; nothing if there is none."""
        if self.exists():
            self._store.remove(self._path)
        for number in self._list_numbers():
            self._store.remove(self._name(number))
        self._known, self._earlier, self._next = {}, None, None

    def _write(self, number: int, record: bytes) -> None:
        self._store.write_bytes(self._name(number), frame_record(number, record), True)

    def _read(self, number: int) -> bytes:
        known = self._known.get(number)
        if known is not None:
            return known
        data = self._store.read_bytes(self._name(number))
        record = read_record(data, number, number)
        if record is None:
            raise DamagedRecord(self._name(number), len(data))
        return record

    def _name(self, number: int) -> str:
        return f"{self._path}.d/{number:020d}"

    def _list_numbers(self) -> list[int]:
        try:
            names = self._store.list(f"{self._path}.d")
        except FileNotFoundError:
            return []
        return sorted(int(name) for name in names if name.isdecimal())

"""The checkpoints and savepoints of one job that observers may read, by name.

Promises: only snapshots of the job can be opened: its existing checkpoints, savepoints that were taken of it in this
process, and the snapshot from which it started. The files of an opened checkpoint are kept until it was unused for a
minute, even if the job retires it. The methods may be called from any thread.
Does not know: what is in a snapshot; who reads it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from millstream.checkpoint.savepoint import NoSuchCheckpoint, Snapshot, open_snapshot
from millstream.cluster.checkpoints import Checkpoints
from millstream.errors import MillstreamError, UserError
from millstream.files.errors import MissingFile
from millstream.times import Clock

_KEPT_SECONDS = 60.0
_MOST_OPEN = 4  # the number of checkpoints whose files are kept at the same time
_MOST_SAVEPOINTS = 50
_ATTEMPTS = 5
LATEST, STARTED_FROM = "latest", "started-from"


class NoSuchSnapshot(UserError):
    """The job has no checkpoint or savepoint of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is no snapshot '{name[:100]}' any more",
            hint="newer checkpoints replace older ones, see execution.checkpointing.num-retained",
        )


@dataclass(frozen=True)
class NamedSnapshot:
    """A snapshot that can be opened. Its `kind` is checkpoint or savepoint."""

    name: str
    kind: str
    path: str


@dataclass
class _Open:
    snapshot: Snapshot
    used_at: float
    release: Callable[[], None]


class OpenSnapshots:
    """The snapshots of one job."""

    def __init__(self, checkpoints: Checkpoints, started_from: str | None, clock: Clock) -> None:
        self._checkpoints, self._started_from, self._clock = checkpoints, started_from, clock
        self._savepoints: deque[tuple[str, str]] = deque(maxlen=_MOST_SAVEPOINTS)
        self._count = 0
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()

    def add_savepoint(self, path: str) -> None:
        """Add a savepoint that was taken of the job."""
        with self._lock:
            self._count += 1
            self._savepoints.append((f"savepoint-{self._count}", path))

    def list(self) -> list[NamedSnapshot]:
        """Return all snapshots, newest first: checkpoints, savepoints, and the one that the job started from."""
        with self._lock:
            numbers = {int(name.removeprefix("chk-")) for name in self._open if name.startswith("chk-")}
            savepoints = list(self._savepoints)[::-1]
        with suppress(MillstreamError, OSError):  # storage cannot be read now
            numbers |= set(self._checkpoints.numbers())
        path_of = self._checkpoints.path_of
        snapshots = [NamedSnapshot(f"chk-{n}", "checkpoint", path_of(n)) for n in sorted(numbers, reverse=True)]
        snapshots += [NamedSnapshot(name, "savepoint", path) for name, path in savepoints]
        if self._started_from is not None:
            snapshots.append(NamedSnapshot(STARTED_FROM, "savepoint", self._started_from))
        return snapshots

    def open(self, name: str) -> tuple[NamedSnapshot, Snapshot]:
        """Return a snapshot by name; `latest` is the newest checkpoint.

        Raises:
            NoSuchSnapshot: There is none.

        """
        self.expire()
        for _ in range(_ATTEMPTS if name == LATEST else 1):  # the newest checkpoint may be replaced while it is opened
            named = next((one for one in self.list() if name in (one.name, LATEST)), None)
            snapshot = None if named is None else self._use(named) or self._read(named)
            if named is not None and snapshot is not None:
                return named, snapshot
        raise NoSuchSnapshot(name)

    def _use(self, named: NamedSnapshot) -> Snapshot | None:
        with self._lock:
            known = self._open.get(named.name)
            if known is None:
                return None
            known.used_at = self._clock.precise()
            return known.snapshot

    def _read(self, named: NamedSnapshot) -> Snapshot | None:
        """Open a snapshot; None if it was deleted meanwhile."""
        storage = self._checkpoints.storage
        try:
            snapshot = open_snapshot(named.path, storage)
        except (NoSuchCheckpoint, MissingFile):
            return None
        release = _nothing
        if named.kind == "checkpoint":
            release = self._checkpoints.pin(snapshot.metadata.handles)
            # its files may have been deleted before they were pinned
            if not storage.exists(snapshot.metadata.checkpoint):
                release()
                return None
        with self._lock:
            before = self._open.pop(named.name, None)
            self._open[named.name] = _Open(snapshot, self._clock.precise(), release)
        if before is not None:  # another thread opened it at the same time
            before.release()
        return snapshot

    def expire(self) -> None:
        """Release checkpoints that were unused for a minute, and the least recently used ones if there are too many."""
        now = self._clock.precise()
        with self._lock:
            by_use = sorted(self._open, key=lambda name: self._open[name].used_at)
            for index, name in enumerate(by_use):
                is_surplus = index < len(by_use) - _MOST_OPEN
                if is_surplus or now - self._open[name].used_at > _KEPT_SECONDS:
                    self._open.pop(name).release()


def _nothing() -> None:
    """Do nothing: the files of a savepoint belong to the user."""

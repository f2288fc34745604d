"""The enumerator of a file source: plans ranges of bytes of files.

Promises: every file found is read once, whole, however small or large the budgets are; a range says all that is needed
to check and read it, and to go on behind it after a restart, even for a file that no checkpoint knew. Files are begun
in the order in which they were found, so that one reader gives them in order; several readers read as many files side
by side, so that time moves on evenly in files that were written side by side.
Does not know: lines, formats; a file that cannot be cut is read in one range, one that is made of units is cut between
them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.connectors.files import paths
from millstream.connectors.files.bulk import DamagedFile
from millstream.connectors.files.ranges import FileFormat
from millstream.files.remote import get_file_system

_REGIONS = 32
_LEAST_REGION, _GREATEST_REGION = 1 << 20, 128 << 20


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file as it was when its first range was planned. `region` is the size of its splits."""

    number: int
    path: str
    size: int
    modified: int
    region: int

    @classmethod
    def of(cls, number: int, path: str, splittable: bool) -> PlannedFile:
        """Return the file as it is now."""
        size, modified = paths.look_at(path)
        even = -(-size // _REGIONS)
        region = min(max(even, _LEAST_REGION), _GREATEST_REGION) if splittable else max(size, 1)
        return cls(number, path, size, modified, region)

    def start(self, at: int) -> dict[str, Any]:
        """Where a range begins, with all that must be known to read it or to plan the rest."""
        return {"path": self.path, "at": at, "size": self.size, "modified": self.modified, "region": self.region}

    def regions(self) -> Iterator[Region]:
        """Return the splits of the file."""
        for index, first in enumerate(range(0, self.size, self.region)):
            yield Region(f"{self.number:08d}.{index:05d}", self, first, min(first + self.region, self.size))


@dataclass(slots=True)
class Region:
    """A split: a part of a file, of which all before `at` is planned."""

    name: str
    file: PlannedFile
    at: int
    end: int
    begun: bool = False


@dataclass(frozen=True, slots=True)
class _Look:
    """What a look into a file has told: bytes per record, and where its units begin if it is made of such."""

    width: float
    units: Sequence[int] | None = None

    def cut(self, at: int, wanted: int, end: int) -> int:
        """Where a range that begins at `at` ends: about where it is wanted, and never with a part of a unit only."""
        if self.units is None:
            return min(wanted, end)
        following = bisect_left(self.units, wanted)
        first = bisect_left(self.units, at)
        following = max(following, first + 1)  # at least one unit, if one is left
        return min(self.units[following], end) if following < len(self.units) else end


class FileEnumerator(SplitEnumerator):
    """Finds files below the paths: once, or again every `interval` milliseconds."""

    def __init__(
        self,
        roots: Sequence[str],
        interval: int | None,
        can_split: Callable[[str], bool],
        file_format: FileFormat,
        parallelism: int,
        state: Any = None,
    ) -> None:
        known = state or {"found": False, "next": 0, "read": [], "open": []}
        self._roots = roots
        self._interval = interval
        self._can_split = can_split
        self._format = file_format
        self._parallelism = parallelism
        self._found: bool = known["found"]
        self._next: int = known["next"]
        self._read: set[str] = set(known["read"])
        self._regions: dict[str, Region] = {}
        for number, path, size, modified, region, left in known["open"]:
            for split in PlannedFile(number, path, size, modified, region).regions():
                if split.name in left:
                    split.at, split.begun = left[split.name], left[split.name] > split.at
                    self._regions[split.name] = split
        self._waiting: deque[str] = deque(known.get("waiting", ()))
        self._looked_at: int | None = None
        self._ended: list[str] = []
        self._looks: dict[str, _Look] = {}

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan an equal share of the budget for as many splits as there are readers, then for the next ones."""
        self._look(budget.now)
        self._ended = []
        ranges: list[SplitRange] = []
        bytes_left, records_left = max(budget.bytes, 1), float(max(budget.records, 1))
        share: int | None = None
        regions = self._in_order()
        # what rounding leaves of a record is worth no look into another split
        while bytes_left > 0 and records_left >= 0.5 and (region := next(regions, None)) is not None:
            if region.name in budget.held:
                continue
            look = self._look_into(region.file)
            width = look.width
            room = min(bytes_left, max(int(records_left * width), 1))
            if share is None:
                ready = len(self._regions) - len(self._regions.keys() & budget.held)
                share = -(-room // min(self._parallelism, ready))
            whole = region.file.region >= region.file.size and not self._can_split(region.file.path)
            end = (
                region.end
                if whole
                else look.cut(region.at, region.at + max(min(room, share), self._format.least_range), region.end)
            )
            ranges.append(SplitRange(region.name, region.file.start(region.at), end))
            bytes_left -= end - region.at
            records_left -= (end - region.at) / width
            region.at, region.begun = end, True
        self._drop_ended()
        return ranges

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan less of each file; files that `planned` discovered are taken from it."""
        return self.plan_from([replace(part, end=part.start["at"], records=0) for part in planned], budget)

    def _in_order(self) -> Iterator[Region]:
        """All splits with bytes left, files still unread included."""
        while self._waiting and len({region.file.number for region in self._regions.values()}) < self._parallelism:
            self._open(self._waiting.popleft())
        yield from self._side_by_side()
        while self._waiting:
            yield from self._open(self._waiting.popleft())

    def _side_by_side(self) -> list[Region]:
        """The splits of open files: the next of each file, then those behind them."""
        turns: dict[int, int] = {}
        placed: list[tuple[int, Region]] = []
        for region in self._regions.values():
            turn = turns[region.file.number] = turns.get(region.file.number, -1) + 1
            placed.append((turn, region))
        if len(turns) > 1:
            placed.sort(key=lambda each: each[0])
        return [region for _, region in placed]

    def _open(self, path: str) -> list[Region]:
        file = PlannedFile.of(self._next, path, self._can_split(path))
        self._next += 1
        self._read.add(path)
        regions = list(file.regions())
        self._regions.update((region.name, region) for region in regions)
        return regions

    def _look(self, now: int) -> None:
        again = self._interval is not None and (self._looked_at is None or now - self._looked_at >= self._interval)
        if self._found and not again:
            return
        known = self._read | set(self._waiting)
        fresh = [path for path in paths.below(self._roots) if path not in known]
        if self._interval is not None:
            fresh.sort(key=lambda path: paths.look_at(path)[1])
        self._waiting.extend(fresh)
        self._found, self._looked_at = True, now

    def _look_into(self, file: PlannedFile) -> _Look:
        """About how many bytes a record of the file has, and where it must not be cut."""
        if file.path not in self._looks:
            try:
                with get_file_system(file.path).open(file.path) as opened:
                    units = self._format.units(opened)
                    if units is None:
                        opened.seek(0)
                        look = _Look(max(self._format.record_size(opened), 1.0))
                    else:
                        look = _Look(file.size / max(sum(rows for _, rows in units), 1), sorted(at for at, _ in units))
            except FileNotFoundError:
                raise paths.FileVanished(file.path) from None
            except (pa.ArrowException, ValueError) as problem:
                raise DamagedFile(file.path, problem) from problem
            except OSError as error:
                raise paths.UnreadableFile(file.path, error) from error
            self._looks[file.path] = look
        return self._looks[file.path]

    def _drop_ended(self) -> None:
        for name, region in list(self._regions.items()):
            if region.at >= region.end:
                del self._regions[name]
                self._ended.append(name)
        if len(self._looks) > 4 * len(self._regions) + 100:
            self._looks.clear()

    def skip(self, done: SplitRange) -> None:
        """Go on behind the range; its file becomes known by it if need be."""
        if done.split not in self._regions and done.start["path"] not in self._read:
            start = done.start
            number = int(done.split.partition(".")[0])
            file = PlannedFile(number, start["path"], start["size"], start["modified"], start["region"])
            self._next = max(self._next, number + 1)
            self._read.add(file.path)
            self._regions.update((region.name, region) for region in file.regions())
            if file.path in self._waiting:
                self._waiting.remove(file.path)
        region = self._regions[done.split]
        region.at, region.begun = done.end, True
        self._ended = []
        self._drop_ended()

    def snapshot(self) -> dict[str, Any]:
        """Return the discovered files, and the planned offset of each."""
        files: dict[int, list[Any]] = {}
        for region in self._regions.values():
            file = region.file
            entry = files.setdefault(file.number, [file.number, file.path, file.size, file.modified, file.region, {}])
            entry[5][region.name] = region.at
        open_files = {entry[1] for entry in files.values()}
        return {
            "found": self._found,
            "next": self._next,
            "read": sorted(self._read),
            "open": list(files.values()),
            "waiting": [path for path in self._waiting if path not in open_files],
        }

    def finished(self) -> bool:
        """Whether all files of a set that does not change were planned."""
        return self._interval is None and self._found and not self._regions and not self._waiting

    def splits(self) -> list[str]:
        """What was begun, what ended with the last plan, and what comes next.

        Of the splits not yet begun only as many are named as there are readers: each of those holds its reader's
        watermark, and that is enough."""
        begun = [region.name for region in self._regions.values() if region.begun]
        unread = [region.name for region in self._side_by_side() if not region.begun]
        coming = (f"{self._next + index:08d}.00000" for index in range(len(self._waiting)))
        unread = [
            *unread[: self._parallelism],
            *(name for name, _ in zip(coming, range(self._parallelism), strict=False)),
        ]
        return sorted({*begun, *self._ended, *unread[: self._parallelism]})

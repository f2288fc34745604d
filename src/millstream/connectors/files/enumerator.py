"""The enumerator of a file source: plans ranges of bytes of files.

Promises: every discovered file is read once and completely, for any budgets. A range contains all that is needed to
check and read it, and to continue after it after a restart, even for a file that is in no checkpoint. Files are started
in the order in which they were discovered, so one reader emits them in order; several readers read several files at the
same time, so that event time advances evenly in files that were written at the same time.
Does not know: lines, formats. A file that cannot be split is read in one range, a file of units is split between
them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import pyarrow as pa

from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.connectors.files import paths
from millstream.connectors.files.bulk import DamagedFile
from millstream.connectors.files.ranges import FileFormat
from millstream.files.remote import get_file_system

_REGIONS_PER_FILE = 32
_MIN_REGION, _MAX_REGION = 1 << 20, 128 << 20


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
        size, modified = paths.file_status(path)
        equal_share = -(-size // _REGIONS_PER_FILE)
        region = min(max(equal_share, _MIN_REGION), _MAX_REGION) if splittable else max(size, 1)
        return cls(number, path, size, modified, region)

    def start(self, at: int) -> dict[str, Any]:
        """Return the start of a range, with all that is needed to read it or to plan the rest."""
        return {"path": self.path, "at": at, "size": self.size, "modified": self.modified, "region": self.region}

    def regions(self) -> Iterator[Region]:
        """Return the splits of the file."""
        for index, first in enumerate(range(0, self.size, self.region)):
            yield Region(f"{self.number:08d}.{index:05d}", self, first, min(first + self.region, self.size))


@dataclass(slots=True)
class Region:
    """A split: a part of a file; everything before `at` is planned."""

    name: str
    file: PlannedFile
    at: int
    end: int
    begun: bool = False


@dataclass(frozen=True, slots=True)
class _FileLayout:
    """The layout of a file: bytes per record, and the offsets of its units if it has any."""

    width: float
    units: Sequence[int] | None = None

    def cut(self, at: int, target: int, end: int) -> int:
        """Return the end of a range that begins at `at`: near the target, and at the start of a unit."""
        if self.units is None:
            return min(target, end)
        next_unit = bisect_left(self.units, target)
        first_unit = bisect_left(self.units, at)
        next_unit = max(next_unit, first_unit + 1)  # at least one unit, if there is one
        return min(self.units[next_unit], end) if next_unit < len(self.units) else end


class FileEnumerator(SplitEnumerator):
    """Discovers files below the paths: once, or every `interval` milliseconds."""

    def __init__(
        self,
        roots: Sequence[str],
        interval: int | None,
        can_split: Callable[[str], bool],
        file_format: FileFormat,
        parallelism: int,
        state: Any = None,
    ) -> None:
        position = state or {"found": False, "next": 0, "read": [], "open": []}
        self._roots = roots
        self._interval = interval
        self._can_split = can_split
        self._format = file_format
        self._parallelism = parallelism
        self._discovered: bool = position["found"]
        self._next: int = position["next"]
        self._read: set[str] = set(position["read"])
        self._regions: dict[str, Region] = {}
        for number, path, size, modified, region, offsets in position["open"]:
            for split in PlannedFile(number, path, size, modified, region).regions():
                if split.name in offsets:
                    split.at, split.begun = offsets[split.name], offsets[split.name] > split.at
                    self._regions[split.name] = split
        self._waiting: deque[str] = deque(position.get("waiting", ()))
        self._discovered_at: int | None = None
        self._ended: list[str] = []
        self._layouts: dict[str, _FileLayout] = {}

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan an equal share of the budget for as many splits as there are readers, then for the next ones."""
        self._discover(budget.now)
        self._ended = []
        ranges: list[SplitRange] = []
        bytes_left, records_left = max(budget.bytes, 1), float(max(budget.records, 1))
        share: int | None = None
        regions = self._in_order()
        # less than half a record is a rounding error, not worth another split
        while bytes_left > 0 and records_left >= 0.5 and (region := next(regions, None)) is not None:
            if region.name in budget.held:
                continue
            layout = self._layout_of(region.file)
            width = layout.width
            room = min(bytes_left, max(int(records_left * width), 1))
            if share is None:
                ready = len(self._regions) - len(self._regions.keys() & budget.held)
                share = -(-room // min(self._parallelism, ready))
            must_read_whole = region.file.region >= region.file.size and not self._can_split(region.file.path)
            end = (
                region.end
                if must_read_whole
                else layout.cut(region.at, region.at + max(min(room, share), self._format.least_range), region.end)
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
        """Yield all splits with unread bytes, including those of unread files."""
        while self._waiting and len({region.file.number for region in self._regions.values()}) < self._parallelism:
            self._open(self._waiting.popleft())
        yield from self._interleave_files()
        while self._waiting:
            yield from self._open(self._waiting.popleft())

    def _interleave_files(self) -> list[Region]:
        """Return the splits of open files: the first unread one of each file, then the second ones, and so on."""
        turns: dict[int, int] = {}
        ordered: list[tuple[int, Region]] = []
        for region in self._regions.values():
            turn = turns[region.file.number] = turns.get(region.file.number, -1) + 1
            ordered.append((turn, region))
        if len(turns) > 1:
            ordered.sort(key=itemgetter(0))
        return [region for _, region in ordered]

    def _open(self, path: str) -> list[Region]:
        file = PlannedFile.of(self._next, path, self._can_split(path))
        self._next += 1
        self._read.add(path)
        regions = list(file.regions())
        self._regions.update((region.name, region) for region in regions)
        return regions

    def _discover(self, now: int) -> None:
        is_due = self._interval is not None and (
            self._discovered_at is None or now - self._discovered_at >= self._interval
        )
        if self._discovered and not is_due:
            return
        known_paths = self._read | set(self._waiting)
        new_paths = [path for path in paths.list_files(self._roots) if path not in known_paths]
        if self._interval is not None:
            new_paths.sort(key=lambda path: paths.file_status(path)[1])
        self._waiting.extend(new_paths)
        self._discovered, self._discovered_at = True, now

    def _layout_of(self, file: PlannedFile) -> _FileLayout:
        """Return the approximate size of a record of the file, and where it must not be split."""
        if file.path not in self._layouts:
            try:
                with get_file_system(file.path).open(file.path) as opened:
                    units = self._format.units(opened)
                    if units is None:
                        opened.seek(0)
                        layout = _FileLayout(max(self._format.record_size(opened), 1.0))
                    else:
                        layout = _FileLayout(
                            file.size / max(sum(rows for _, rows in units), 1), sorted(at for at, _ in units)
                        )
            except FileNotFoundError:
                raise paths.FileVanished(file.path) from None
            except (pa.ArrowException, ValueError) as problem:
                raise DamagedFile(file.path, problem) from problem
            except OSError as error:
                raise paths.UnreadableFile(file.path, error) from error
            self._layouts[file.path] = layout
        return self._layouts[file.path]

    def _drop_ended(self) -> None:
        for name, region in list(self._regions.items()):
            if region.at >= region.end:
                del self._regions[name]
                self._ended.append(name)
        if len(self._layouts) > 4 * len(self._regions) + 100:
            self._layouts.clear()

    def skip(self, split_range: SplitRange) -> None:
        """Continue after the range; its file is registered if it is unknown."""
        if split_range.split not in self._regions and split_range.start["path"] not in self._read:
            start = split_range.start
            number = int(split_range.split.partition(".")[0])
            file = PlannedFile(number, start["path"], start["size"], start["modified"], start["region"])
            self._next = max(self._next, number + 1)
            self._read.add(file.path)
            self._regions.update((region.name, region) for region in file.regions())
            if file.path in self._waiting:
                self._waiting.remove(file.path)
        region = self._regions[split_range.split]
        region.at, region.begun = split_range.end, True
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
            "found": self._discovered,
            "next": self._next,
            "read": sorted(self._read),
            "open": list(files.values()),
            "waiting": [path for path in self._waiting if path not in open_files],
        }

    def finished(self) -> bool:
        """Whether all files of a set that does not change were planned."""
        return self._interval is None and self._discovered and not self._regions and not self._waiting

    def splits(self) -> list[str]:
        """Return the started splits, those that ended with the last plan, and the next ones.

        Of the splits that are not started, only as many as there are readers are returned: each of them holds back the
        watermark of its reader, which is enough."""
        begun = [region.name for region in self._regions.values() if region.begun]
        unread = [region.name for region in self._interleave_files() if not region.begun]
        coming = (f"{self._next + index:08d}.00000" for index in range(len(self._waiting)))
        unread = [
            *unread[: self._parallelism],
            *(name for name, _ in zip(coming, range(self._parallelism), strict=False)),
        ]
        return sorted({*begun, *self._ended, *unread[: self._parallelism]})

"""The enumerator of table sources: data files, distributed to splits.

Promises: a file is in one split and in one range; the files of a split keep the order in which they were discovered. A
range names its files, so a replay reads the same ones.
Does not know: table formats."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.source import Budget, SplitEnumerator, SplitRange


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table; `partition` has the values of columns that are not inside, as text."""

    path: str
    rows: int
    partition: dict[str, str | None]

    def to_json(self) -> list[Any]:
        """Return the file as a JSON value."""
        return [self.path, self.rows, self.partition]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> DataFile:
        """Create a file from its JSON value."""
        return cls(data[0], data[1], data[2])


class FileEnumerator(SplitEnumerator):
    """Plans files. The state of a bounded scan is which files of a version are read; of a continuous one, also the
    version up to which files are known."""

    def __init__(self, parallelism: int, state: Any) -> None:
        self._splits = max(parallelism, 1)
        self._version: int | None = None
        self._distributed = 0
        self._unread: dict[str, list[DataFile]] = {str(number): [] for number in range(self._splits)}
        if state is not None:
            self._restore(state)

    def _restore(self, state: Any) -> None:
        self._splits, self._version, self._distributed = state["splits"], state["version"], state["dealt"]
        self._unread = {
            split: [DataFile.from_json(file) for file in files] for split, files in state["waiting"].items()
        }

    @abstractmethod
    def discover(self, version: int | None) -> tuple[int | None, list[DataFile]]:
        """Return the next version of the table after `version`, with its new files; after None, the first version.

        Returns `version` and no files if there is no later version."""

    @abstractmethod
    def continuous(self) -> bool:
        """Whether the source waits for later versions."""

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan files of each split, up to its share of the budget."""
        while not any(self._unread.values()) and not self._is_last():
            before = self._version
            if not self._distribute(*self.discover(before)) and self._version == before:
                break
        ready = [split for split, files in self._unread.items() if files and split not in budget.held]
        share = max(budget.records // max(len(ready), 1), 1)
        planned: list[SplitRange] = []
        for split in ready:
            files = self._unread[split]
            count = 1
            while count < len(files) and sum(file.rows for file in files[: count + 1]) <= share:
                count += 1
            chosen, self._unread[split] = files[:count], files[count:]
            names = [file.to_json() for file in chosen]
            planned.append(SplitRange(split, names, None, sum(file.rows for file in chosen)))
        if planned:  # the last range holds the state after the plan
            last = planned[-1]
            planned[-1] = SplitRange(last.split, last.start, self.snapshot(), last.records)
        return planned

    def _is_last(self) -> bool:
        return self._version is not None and not self.continuous()

    def _distribute(self, version: int | None, files: Sequence[DataFile]) -> bool:
        self._version = version
        for file in files:
            self._unread[str(self._distributed % self._splits)].append(file)
            self._distributed += 1
        return bool(files)

    def snapshot(self) -> Any:
        """Return the version and its unread files."""
        waiting = {split: [file.to_json() for file in files] for split, files in self._unread.items()}
        return {"splits": self._splits, "version": self._version, "dealt": self._distributed, "waiting": waiting}

    def skip(self, done: SplitRange) -> None:
        """Continue after a plan; its last range holds the state."""
        if done.end is not None:
            self._restore(done.end)

    def splits(self) -> list[str]:
        """Return the splits that have files, or may get some."""
        if self._is_last():
            return [split for split, files in self._unread.items() if files]
        return list(self._unread)

    def finished(self) -> bool:
        """Whether all files are read and no later version is read."""
        return self._is_last() and not any(self._unread.values())

    def lag(self) -> int:
        """Return the number of rows in unread files."""
        return sum(file.rows for files in self._unread.values() for file in files)

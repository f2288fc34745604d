"""Data files of a table as splits: each file once, in its order, whatever the budget and wherever the job stops."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.connector.source import Budget
from millstream.connectors.lakehouse.file_splits import DataFile, FileEnumerator

VERSIONS = [
    [DataFile(f"v{version}-{number}", 10, {"day": str(version)}) for number in range(4)] for version in range(3)
]


class Versions(FileEnumerator):
    """A table with three versions, of which a bounded scan reads the last."""

    def __init__(self, parallelism: int, state: Any, *, follows: bool) -> None:
        self._follows = follows
        super().__init__(parallelism, state)

    def discover(self, version: int | None) -> tuple[int | None, list[DataFile]]:
        if not self._follows:
            return (2, [file for files in VERSIONS for file in files]) if version is None else (version, [])
        following = 0 if version is None else version + 1
        return (following, VERSIONS[following]) if following < len(VERSIONS) else (version, [])

    def continuous(self) -> bool:
        return self._follows


def read(follows: bool, parallelism: int, records: int, restart_every: int | None = None) -> list[tuple[str, str]]:
    """Plan until nothing is left; returns split and path of each file."""
    enumerator, taken = Versions(parallelism, None, follows=follows), []
    for step in range(100):
        if restart_every is not None and step % restart_every == 0:
            enumerator = Versions(parallelism, enumerator.snapshot(), follows=follows)
        planned = enumerator.plan(Budget(records, records, 0))
        if not planned:
            return taken
        taken += [(each.split, file[0]) for each in planned for file in each.start]
    raise AssertionError("it does not end")


PATHS = [file.path for files in VERSIONS for file in files]


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("records", [1, 25, 1000])
@pytest.mark.parametrize("restart_every", [None, 1, 2])
def test_each_file_is_read_once_and_in_its_order(follows: bool, records: int, restart_every: int | None) -> None:
    taken = read(follows, 3, records, restart_every)
    assert sorted(path for _, path in taken) == sorted(PATHS)
    for split in {split for split, _ in taken}:
        own = [path for each, path in taken if each == split]
        assert own == sorted(own, key=PATHS.index)


def test_a_plan_stays_within_its_budget_or_reads_one_file() -> None:
    enumerator = Versions(2, None, follows=False)
    assert [each.records for each in enumerator.plan(Budget(40, 40, 0))] == [20, 20]
    assert [each.records for each in enumerator.plan(Budget(5, 5, 0))] == [10, 10]


def test_a_replayed_plan_advances_past_its_files() -> None:
    first, other = Versions(2, None, follows=True), Versions(2, None, follows=True)
    for each in first.plan(Budget(40, 40, 0)):
        other.skip(each)
    assert other.snapshot() == first.snapshot()
    assert other.plan(Budget(40, 40, 0)) == first.plan(Budget(40, 40, 0))


def test_splits_that_are_held_are_left_out() -> None:
    enumerator = Versions(2, None, follows=False)
    enumerator.plan(Budget(1, 1, 0))
    assert {each.split for each in enumerator.plan(Budget(100, 100, 0, held=frozenset({"0"})))} == {"1"}
    assert not enumerator.finished()
    assert enumerator.lag() == 50


def test_a_bounded_scan_ends_and_a_continuous_one_waits() -> None:
    bounded, continuous = Versions(1, None, follows=False), Versions(1, None, follows=True)
    for _ in range(5):
        bounded.plan(Budget(1000, 1000, 0))
        continuous.plan(Budget(1000, 1000, 0))
    assert bounded.finished()
    assert bounded.splits() == []
    assert not continuous.finished()
    assert continuous.splits() == ["0"]

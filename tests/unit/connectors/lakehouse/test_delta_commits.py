"""Commits to Delta tables: the search for an earlier commit covers only the versions that can have it."""

from __future__ import annotations

from typing import Any

from millstream.connectors.lakehouse.delta_commits import _MAX_CLOCK_SKEW, _STAGED, _is_in_history
from millstream.connectors.lakehouse.staging import StagedDataFile, digest


class History:
    """A table with a history, the newest commit first."""

    def __init__(self, *commits: dict[str, Any]) -> None:
        self._commits = commits
        self.limits: list[int] = []

    def history(self, limit: int) -> list[dict[str, Any]]:
        self.limits.append(limit)
        return list(self._commits[:limit])


FILES = [StagedDataFile("job", 3, "a.parquet", 1, 1, {}, {}, at=10_000_000)]
OURS = {_STAGED: digest(FILES), "timestamp": 10_000_001}


def foreign_commits(count: int, timestamp: int) -> list[dict[str, Any]]:
    return [{_STAGED: "another", "timestamp": timestamp}] * count


def test_a_commit_is_found_in_a_long_history() -> None:
    assert _is_in_history(History(*foreign_commits(600, 10_000_002), OURS), FILES)


def test_the_history_is_read_back_to_the_time_of_the_files() -> None:
    long_ago = 10_000_000 - _MAX_CLOCK_SKEW - 1
    table = History(*foreign_commits(63, 10_000_002), *foreign_commits(5000, long_ago))
    assert not _is_in_history(table, FILES)
    assert table.limits == [64], "older commits cannot be of these files"


def test_a_short_history_is_read_once() -> None:
    table = History(*foreign_commits(3, 10_000_002))
    assert not _is_in_history(table, FILES)
    assert table.limits == [64]

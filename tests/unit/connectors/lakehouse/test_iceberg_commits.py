"""Commits to Iceberg tables: the number of marks in a table is bounded."""

from __future__ import annotations

import json

import pytest

from millstream.connectors.lakehouse.iceberg_commits import _EPOCH, _MAX_MARKS, _expired_marks, _parse_mark, paths_of
from millstream.connectors.lakehouse.staging import StagedDataFile


def test_marks_of_earlier_releases_are_read() -> None:
    assert _parse_mark("7") == {"epoch": 7, "staged": "", "at": 0}
    mark = {"epoch": 7, "staged": "abc", "at": 5}
    assert _parse_mark(json.dumps(mark)) == mark


def marks(count: int) -> dict[str, str]:
    return {f"{_EPOCH}.job{at}": json.dumps({"epoch": 1, "staged": "", "at": at}) for at in range(count)}


def test_the_oldest_marks_of_other_jobs_expire() -> None:
    properties = {**marks(_MAX_MARKS + 1), "owner": "somebody"}
    assert _expired_marks(properties, f"{_EPOCH}.new job") == [f"{_EPOCH}.job0", f"{_EPOCH}.job1"]
    assert _expired_marks(properties, f"{_EPOCH}.job0") == [f"{_EPOCH}.job1"], "not the one that is written"
    assert _expired_marks(marks(_MAX_MARKS - 1), f"{_EPOCH}.new job") == []


@pytest.mark.parametrize(
    ("location", "path"), [("/warehouse/t", "file:///warehouse/t/data/a"), ("s3://bucket/t", "s3://bucket/t/data/a")]
)
def test_files_are_named_by_uris(location: str, path: str) -> None:
    assert paths_of(location, [StagedDataFile("job", 1, "data/a", 1, 1, {}, {}, 0)]) == [path]

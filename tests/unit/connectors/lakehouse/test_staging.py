"""The writer of table sinks: names, partitions and sizes of staged files, and their removal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from millstream.connector.sink import WriterContext
from millstream.connectors.lakehouse import staging
from millstream.connectors.lakehouse.columns import table_schema
from millstream.connectors.lakehouse.staging import ParquetWriter, StagedDataFile, tag
from millstream.types.factory import Types
from millstream.types.row import Row

ROWS = Types.ROW_NAMED(["n", "day"], [Types.LONG(), Types.STRING()])


def writer(location: Path, by: tuple[str, ...] = (), *, inside: bool = False, attempt: str = "3-a") -> ParquetWriter:
    context = WriterContext("job", "sink", 1, 2, 7, attempt, 99)
    return ParquetWriter(str(location), "data", ROWS, table_schema(ROWS), by, context, partition_columns_inside=inside)


def write(target: ParquetWriter, *rows: tuple[int, str | None]) -> list[StagedDataFile]:
    target.write([Row(n=n, day=day) for n, day in rows], None)
    return [StagedDataFile.from_json(data) for data in target.prepare_commit()]


def columns_of(path: Path) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = pq.ParquetFile(path).read().to_pydict()
    return columns


def test_a_file_name_contains_the_sink_and_the_attempt(tmp_path: Path) -> None:
    (file,) = write(writer(tmp_path), (1, "mon"), (2, None))
    owner = "millstream:job:sink"
    assert file.path == f"data/part-00000007-00001-000-{tag(owner)}-{tag('3-a')}.parquet"
    assert (file.owner, file.epoch, file.rows, file.at, file.generation) == (owner, 7, 2, 99, 3)
    assert file.nulls == {"n": 0, "day": 1}
    assert file.size == (tmp_path / file.path).stat().st_size
    (other,) = write(writer(tmp_path, attempt="4-b"), (1, "mon"))
    assert other.path != file.path


def test_rows_of_a_partition_have_a_directory_of_their_own(tmp_path: Path) -> None:
    files = write(writer(tmp_path, ("day",)), (1, "a/b"), (2, None), (3, "a/b"))
    assert {Path(file.path).parent.as_posix(): file.partition for file in files} == {
        "data/day=a%2Fb": {"day": "a/b"},
        "data/day=__HIVE_DEFAULT_PARTITION__": {"day": None},
    }
    assert [columns_of(tmp_path / file.path) for file in files] == [{"n": [1, 3]}, {"n": [2]}]


def test_partition_columns_are_in_the_files_if_the_format_needs_them(tmp_path: Path) -> None:
    (file,) = write(writer(tmp_path, ("day",), inside=True), (1, "mon"))
    assert columns_of(tmp_path / file.path) == {"n": [1], "day": ["mon"]}


def test_a_large_buffer_is_written_before_the_end_of_the_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_ROLL_BYTES", 1)
    target = writer(tmp_path)
    for n in range(3):
        target.write([Row(n=n, day="mon")], None)
    assert len(list(tmp_path.rglob("*.parquet"))) == 3
    assert [StagedDataFile.from_json(data).rows for data in target.prepare_commit()] == [1, 1, 1]


def test_an_empty_epoch_stages_nothing(tmp_path: Path) -> None:
    assert write(writer(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_aborted_output_is_removed(tmp_path: Path) -> None:
    target = writer(tmp_path)
    assert write(target, (1, "mon"))
    target.abort()
    assert list(tmp_path.rglob("*.parquet")) == []
    assert target.prepare_commit() == []

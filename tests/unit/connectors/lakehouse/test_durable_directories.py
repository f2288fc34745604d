"""New output directories are synced in their parent; otherwise a power loss would lose their files."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from millstream.common import Row, Types
from millstream.connector.sink import WriterContext
from millstream.connectors.lakehouse.staging import ParquetWriter
from millstream.files.local import LocalFileSystem


@pytest.fixture
def synced(monkeypatch):
    """The inodes that were synced."""
    found = []
    original = os.fsync

    def fsync(descriptor):
        found.append(os.fstat(descriptor).st_ino)
        original(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def check(synced, base, path):
    """Check that all directories from `base` to that of a path were synced after the next one was created."""
    while path != base:
        path = path.parent
        assert path.stat().st_ino in synced, path


def test_the_directory_of_staged_files(tmp_path, synced):
    LocalFileSystem(private=False).make_private_dir(str(tmp_path / "output/day=1/.staging"))
    check(synced, tmp_path, tmp_path / "output/day=1/.staging")


def test_the_directory_of_a_partition(tmp_path, synced):
    files = LocalFileSystem(private=False)
    with files.writing(str(tmp_path / "staged")) as stream:
        stream.write(b"rows")
    files.move_new_durably(str(tmp_path / "staged"), str(tmp_path / "output/day=1/part-0"))
    check(synced, tmp_path, tmp_path / "output/day=1/part-0")


def test_directories_for_state_and_logs(tmp_path, synced):
    LocalFileSystem().make_dirs(str(tmp_path / "a/b/c"))
    check(synced, tmp_path, tmp_path / "a/b/c")


def test_the_directories_of_a_table(tmp_path, synced):
    rows = Types.ROW_NAMED(["day", "name"], [Types.STRING(), Types.STRING()])
    schema = pa.schema([("day", pa.string()), ("name", pa.string())])
    context = WriterContext("job", "sink", 0, 1, 1, "0-a", 0)
    writer = ParquetWriter(
        str(tmp_path / "table"), "data", rows, schema, ("day",), context, partition_columns_inside=True
    )
    writer.write([Row("monday", "a")], None)
    (staged,) = writer.prepare_commit()
    (path,) = (tmp_path / "table").rglob("*.parquet")
    check(synced, tmp_path, path)
    assert staged

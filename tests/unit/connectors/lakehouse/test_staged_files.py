"""Staged files of table sinks: rows by partition, committables of an owner, files of dead attempts."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from millstream.connector.staged import NotStaged
from millstream.connectors.lakehouse.columns import NoColumn, NotAppended, table_schema, to_table
from millstream.connectors.lakehouse.commits import Orphans, group_by_owner
from millstream.connectors.lakehouse.staging import StagedDataFile, digest, split_by_partition, tag
from millstream.types.factory import Types
from millstream.types.row import Row, RowKind


def staged(path: str, owner: str = "job", epoch: int = 1, generation: int = 0) -> StagedDataFile:
    return StagedDataFile(owner, epoch, path, 100, 10, {}, {}, 0, generation)


def name_of(epoch: int, owner: str, attempt: str) -> str:
    return f"part-{epoch}-0-0-{tag(owner)}-{tag(attempt)}.parquet"


def test_rows_are_split_by_the_values_of_all_partition_columns() -> None:
    days = pa.array([datetime.date(2026, 1, 1), datetime.date(2026, 1, 2), None, datetime.date(2026, 1, 1)])
    table = pa.table({"day": days, "shop": ["a", "a", None, "b"], "n": [1, 2, 3, 4]})
    parts = {tuple(partition.items()): rows["n"].to_pylist() for partition, rows in split_by_partition(table, ["day"])}
    assert parts == {(("day", "2026-01-01"),): [1, 4], (("day", "2026-01-02"),): [2], (("day", None),): [3]}
    both = [(partition, rows.num_rows) for partition, rows in split_by_partition(table, ["day", "shop"])]
    assert len(both) == 4
    assert ({"day": None, "shop": None}, 1) in both
    assert list(split_by_partition(table, [])) == [({}, table)]


def test_committables_are_grouped_by_their_owner() -> None:
    files = [staged("a", "one"), staged("b", "other"), staged("c", "one")]
    grouped = group_by_owner([file.to_json() for file in files])
    assert grouped == {"one": [files[0], files[2]], "other": [files[1]]}


def test_the_digest_of_a_commit_does_not_depend_on_the_order_of_its_files() -> None:
    assert digest([staged("a"), staged("b")]) == digest([staged("b"), staged("a")])
    assert digest([staged("a")]) != digest([staged("b")])


@pytest.mark.parametrize("path", ["../other/a.parquet", "/etc/passwd", "day=1/../../a", ""])
def test_a_committable_cannot_name_a_file_outside_of_its_table(path: str) -> None:
    with pytest.raises(NotStaged):
        staged(path)


def test_only_files_of_dead_attempts_of_committed_epochs_are_removed(tmp_path: Path) -> None:
    kept = name_of(2, "job", "alive")
    others = [name_of(3, "job", "alive"), name_of(2, "another job", "alive"), "_delta_log", "part-2.parquet"]
    dead = name_of(2, "job", "dead")
    for name in (kept, *others, dead):
        (tmp_path / name).write_bytes(b"")
    Orphans().remember_committed(str(tmp_path), "job", [staged(kept, epoch=2)])
    assert {path.name for path in tmp_path.iterdir()} == {kept, *others}


def test_files_of_dead_attempts_are_removed_after_a_start_and_at_the_end(tmp_path: Path) -> None:
    orphans = Orphans()
    orphans.remember_committed(str(tmp_path), "job", [staged(name_of(1, "job", "alive"), epoch=1)])
    dead = tmp_path / name_of(2, "job", "dead")
    dead.write_bytes(b"")
    orphans.remember_committed(str(tmp_path), "job", [staged(name_of(2, "job", "alive"), epoch=2)])
    assert dead.exists(), "the directory is not listed at every commit"
    orphans.remember_committed(str(tmp_path), "job", [staged(name_of(3, "job", "alive"), epoch=3, generation=1)])
    assert not dead.exists(), "a new generation may follow attempts that died"
    dead = tmp_path / name_of(4, "job", "dead")
    dead.write_bytes(b"")
    orphans.remember_committed(str(tmp_path), "job", [staged(name_of(4, "job", "alive"), epoch=4, generation=1)])
    orphans.finish(str(tmp_path))
    assert not dead.exists()


def test_columns_of_a_table_for_the_fields_of_a_row() -> None:
    inner = Types.ROW_NAMED(["x"], [Types.LONG()])
    kind = Types.ROW_NAMED(
        ["at", "price", "tags", "inner"], [Types.INSTANT(), Types.BIG_DEC(), Types.LIST(Types.STRING()), inner]
    )
    schema = table_schema(kind)
    assert [str(each.type) for each in schema] == [
        "timestamp[us, tz=UTC]",
        "decimal128(38, 18)",
        "list<item: string>",
        "struct<x: int64>",
    ]
    with pytest.raises(NoColumn, match=r"field outer\.inside"):
        table_schema(Types.ROW_NAMED(["outer"], [Types.ROW_NAMED(["inside"], [Types.BIG_INT()])]))


def test_a_sink_that_appends_refuses_updates() -> None:
    kind = Types.ROW_NAMED(["n"], [Types.LONG()])
    schema = table_schema(kind)
    assert to_table([Row(n=1)], kind, schema)["n"].to_pylist() == [1]
    deleted = Row(n=1)
    deleted.set_row_kind(RowKind.DELETE)
    with pytest.raises(NotAppended):
        to_table([deleted], kind, schema)

"""The Delta sink: its table is checked before the job starts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from millstream.connectors.lakehouse.columns import NoColumn
from millstream.connectors.lakehouse.delta_sink import DeltaSink, TableMismatch, _comparable
from millstream.types.factory import RowTypeInfo, Types

pytest.importorskip("deltalake")

ROWS = Types.ROW_NAMED(["id", "day"], [Types.LONG(), Types.STRING()])


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def sink(location: str, row_type: RowTypeInfo = ROWS, *by: str) -> DeltaSink:
    return DeltaSink.for_row_data(location, row_type).with_partition_columns(*by).build()


def test_a_missing_table_is_created_with_the_columns_of_the_rows(location: str) -> None:
    assert sink(location).version() is None
    sink(location, ROWS, "day").check()
    table = sink(location, ROWS, "day").table()
    assert [field.name for field in table.schema().fields] == ["id", "day"]
    assert table.metadata().partition_columns == ["day"]
    assert sink(location).version() == 0


def test_a_table_with_other_columns_is_refused(location: str) -> None:
    sink(location).check()
    other = Types.ROW_NAMED(["id", "day"], [Types.LONG(), Types.DOUBLE()])
    with pytest.raises(TableMismatch, match=r"have \{'id': 'int64', 'day': 'double'\}.* has \{.*'day': 'string'\}"):
        sink(location, other).check()


def test_a_table_with_other_partitions_is_refused(location: str) -> None:
    sink(location).check()
    with pytest.raises(TableMismatch, match=r"partitioned by \['day'\], the table has .*partitioned by \[\]"):
        sink(location, ROWS, "day").check()


def test_partition_columns_are_columns_of_the_rows(location: str) -> None:
    with pytest.raises(TableMismatch, match="no column month to partition by"):
        sink(location, ROWS, "month").check()


def test_delta_has_no_time_of_day(location: str) -> None:
    with pytest.raises(NoColumn, match="time of day"):
        sink(location, Types.ROW_NAMED(["at"], [Types.SQL_TIME()]))


def test_a_sink_that_overwrites_replaces_the_version_at_which_it_was_built(location: str) -> None:
    before = DeltaSink.for_row_data(location, ROWS).overwrite().build()
    assert (before.overwrites, before.replaces) == (True, None)
    sink(location).check()
    after = DeltaSink.for_row_data(location, ROWS).overwrite().build()
    assert (after.overwrites, after.replaces) == (True, 0)


def test_storage_options_are_not_shown(location: str) -> None:
    options = {"AWS_SECRET_ACCESS_KEY": "hidden"}
    assert "hidden" not in repr(DeltaSink.for_row_data(location, ROWS).with_storage_options(options).build())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.string(), pa.large_string()),
        (pa.list_(pa.field("item", pa.int64())), pa.large_list(pa.field("element", pa.int64()))),
        (pa.struct([("a", pa.string())]), pa.struct([("a", pa.large_string())])),
        (pa.map_(pa.string(), pa.binary()), pa.map_(pa.large_string(), pa.large_binary())),
    ],
)
def test_types_that_differ_in_their_encoding_only_are_the_same(one: pa.DataType, other: pa.DataType) -> None:
    assert _comparable(one) == _comparable(other)
    assert _comparable(pa.int32()) != _comparable(pa.int64())

"""Arrow data, pandas and Polars become tables, and tables become their data, with the same types and values."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from remaining_rows import rows

from millstream.errors import UserError
from millstream.sql.errors import SqlValidationError
from millstream.table import DataTypes, TableEnvironment
from millstream.table.expressions import col
from millstream.types.row import Row

NESTED = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING())])
SECOND = datetime.datetime(2020, 1, 1, 1, 2, 3)  # noqa: DTZ001
ALL_TYPES = pa.table(
    {
        "i8": pa.array([1, None], pa.int8()),
        "i16": pa.array([1, None], pa.int16()),
        "i32": pa.array([1, None], pa.int32()),
        "i64": pa.array([1, None], pa.int64()),
        "f32": pa.array([1.5, None], pa.float32()),
        "f64": pa.array([1.5, None], pa.float64()),
        "b": pa.array([True, None], pa.bool_()),
        "s": pa.array(["a", None], pa.string()),
        "y": pa.array([b"a", None], pa.binary()),
        "d": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
        "day": pa.array([datetime.date(2020, 1, 1), None], pa.date32()),
        "clock": pa.array([datetime.time(1, 2, 3), None], pa.time32("ms")),
        "ms": pa.array([SECOND, None], pa.timestamp("ms")),
        "us": pa.array([SECOND, None], pa.timestamp("us")),
        "ns": pa.array([1, None], pa.timestamp("ns")),
        "utc": pa.array([SECOND, None], pa.timestamp("us", "UTC")),
        "list": pa.array([[1, None], None], pa.list_(pa.int32())),
        "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
        "row": pa.array([{"x": 1, "y": "a"}, None], pa.struct([("x", pa.int32()), ("y", pa.string())])),
        "rows": pa.array([[{"x": {"z": 1}}], None], pa.list_(pa.struct([("x", pa.struct([("z", pa.int64())]))]))),
    }
)


# --------------------------------------------------------------------------------------------------------------- Arrow


def test_arrow_types_are_the_same_after_a_round_trip(t_env: TableEnvironment) -> None:
    table = t_env.from_arrow(ALL_TYPES)
    assert str(table.get_schema().get_field_data_type("ns")) == "TIMESTAMP(9)"
    assert str(table.get_schema().get_field_data_type("utc")) == "TIMESTAMP_LTZ(6)"
    assert table.to_arrow() == ALL_TYPES


@pytest.mark.parametrize(
    ("column", "data_type"),
    [
        (pa.array([200], pa.uint8()), "SMALLINT"),
        (pa.array([2**31], pa.uint32()), "BIGINT"),
        (pa.array([2**63], pa.uint64()), "DECIMAL(20, 0)"),
        (pa.array(["a"], pa.large_string()), "STRING"),
        (pa.array(["a"], pa.string_view()), "STRING"),
        (pa.array(["a"]).dictionary_encode(), "STRING"),
        (pa.array([b"ab"], pa.binary(2)), "BINARY(2)"),
        (pa.array([[1]], pa.large_list(pa.int32())), "ARRAY<INT>"),
        (pa.array([[1]], pa.list_(pa.int32(), 1)), "ARRAY<INT>"),
        (pa.array([Decimal("1.5")], pa.decimal256(10, 2)), "DECIMAL(10, 2)"),
        (pa.array([SECOND], pa.timestamp("s")), "TIMESTAMP(0)"),
        (pa.array([SECOND.date()], pa.date64()), "DATE"),
    ],
)
def test_other_arrow_types_become_the_type_with_the_same_values(
    t_env: TableEnvironment, column: pa.Array, data_type: str
) -> None:
    table = t_env.from_arrow(pa.table({"c": column}))
    assert str(table.get_schema().get_field_data_type("c")) == data_type
    assert table.to_arrow()["c"].to_pylist() == column.to_pylist()


@pytest.mark.parametrize("column", [pa.nulls(1), pa.array([(1, 2, 3)], pa.month_day_nano_interval())])
def test_a_type_without_a_sql_type_is_refused(t_env: TableEnvironment, column: pa.Array) -> None:
    with pytest.raises(UserError, match=r"column 'c' has the Arrow type .* which no SQL type represents exactly"):
        t_env.from_arrow(pa.table({"c": column}))


@pytest.mark.parametrize(
    ("column", "data_type"),
    [
        (pa.array([300]), DataTypes.TINYINT()),
        (pa.array([1.5]), DataTypes.INT()),
        (pa.array([1]), DataTypes.STRING()),
        (pa.array([None], pa.int32()), DataTypes.INT().not_null()),
        (pa.array([1], pa.timestamp("us")), DataTypes.TIMESTAMP(3)),
    ],
)
def test_a_value_that_does_not_fit_the_schema_is_refused(
    t_env: TableEnvironment, column: pa.Array, data_type: Any
) -> None:
    with pytest.raises(TypeError, match=r"column 'c' of Arrow type .* does not fit"):
        t_env.from_arrow(pa.table({"c": column}), [data_type])


def test_data_that_is_not_arrow_is_refused(t_env: TableEnvironment) -> None:
    with pytest.raises(TypeError, match="list is not Arrow data"):
        t_env.from_arrow([1, 2])
    with pytest.raises(TypeError, match="the schema has 1 columns, but the data has 2: a, b"):
        t_env.from_arrow(pa.table({"a": [1], "b": [2]}), ["x"])


def test_batches_readers_and_streams_are_read(t_env: TableEnvironment) -> None:
    table = pa.table({"a": [1, 2, 3]})
    batch = table.to_batches()[0]
    for data in (batch, [batch], table.to_reader(), pl.DataFrame({"a": [1, 2, 3]}), duckdb.sql("SELECT * FROM batch")):
        assert rows(t_env.from_arrow(data)) == [(1,), (2,), (3,)]


def test_splits_are_read_in_parallel(t_env: TableEnvironment) -> None:
    t_env.get_config().set("parallelism.default", "3")
    table = t_env.from_arrow(pa.table({"a": list(range(1000))}), splits_num=3)
    assert sorted(table.to_arrow()["a"].to_pylist()) == list(range(1000))
    with pytest.raises(UserError, match="number of splits must be at least 1, not 0"):
        t_env.from_arrow(pa.table({"a": [1]}), splits_num=0)


def test_columns_of_the_same_type_are_not_copied(t_env: TableEnvironment) -> None:
    column = pa.array(np.arange(100))
    table = t_env.from_arrow(pa.table({"a": column}))
    (chunk,) = table._plan.table.origin.__closure__[0].cell_contents.chunks
    assert chunk.field(0).buffers()[1].address == column.buffers()[1].address


def test_the_changelog_is_applied(t_env: TableEnvironment) -> None:
    table = t_env.from_arrow(pa.table({"k": ["a", "b", "a"], "v": [1, 2, 3]}))
    totals = table.group_by(col("k")).select(col("k"), col("v").sum.alias("s"))
    assert sorted(totals.to_arrow().to_pylist(), key=str) == [{"k": "a", "s": 4}, {"k": "b", "s": 2}]


def test_batches_are_emitted_while_the_job_runs(t_env: TableEnvironment) -> None:
    numbers = t_env.sql_query("SELECT a FROM (VALUES (1), (2)) AS t(a)")
    with numbers.to_arrow_batches() as batches:
        assert batches.schema.names == ["a"]
        assert sorted(value for batch in batches for value in batch["a"].to_pylist()) == [1, 2]


def test_batches_of_a_changelog_need_a_column_for_row_kinds(t_env: TableEnvironment) -> None:
    table = t_env.from_arrow(pa.table({"k": ["a", "a"], "v": [1, 3]}))
    totals = table.group_by(col("k")).select(col("v").sum.alias("s"))
    with pytest.raises(SqlValidationError, match="the table emits updates"):
        totals.to_arrow_batches()
    with totals.to_arrow_batches(row_kind_column="op") as batches:
        changes = pa.Table.from_batches(batches, batches.schema)
    assert changes.to_pylist() == [{"s": 1, "op": "+I"}, {"s": 1, "op": "-U"}, {"s": 4, "op": "+U"}]


def test_other_libraries_read_tables(t_env: TableEnvironment) -> None:
    numbers = t_env.from_elements([(1, "a"), (2, "b")], ["n", "s"])
    assert duckdb.sql("SELECT sum(n) FROM numbers").fetchall() == [(3,)]
    assert pa.table(numbers).num_rows == 2
    assert pl.DataFrame(numbers).rows() == [(1, "a"), (2, "b")]


def test_polars_frames_become_tables_and_tables_polars_frames(t_env: TableEnvironment) -> None:
    frame = pl.DataFrame({"n": [1, None], "s": ["a", "b"], "l": [[1], []], "r": [{"x": 1}, {"x": 2}]})
    assert t_env.from_polars(frame).to_polars().equals(frame)
    assert rows(t_env.from_polars(frame.lazy().select("n"), ["m"]).select(col("m"))) == [(1,), (None,)]


# -------------------------------------------------------------------------------------------------------------- pandas


def test_nested_rows_arrays_and_maps_of_pandas(t_env: TableEnvironment) -> None:
    frame = pd.DataFrame({"r": [{"x": 1, "y": "a"}], "l": [[1, 2]], "m": [{"k": 1}]})
    table = t_env.from_pandas(
        frame, [NESTED, DataTypes.ARRAY(DataTypes.INT()), DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())]
    )
    assert rows(table) == [(Row(1, "a"), [1, 2], {"k": 1})]
    result = table.to_pandas()
    assert result.r.tolist() == [{"x": 1, "y": "a"}]
    assert result.l[0].tolist() == [1, 2]
    assert dict(result.m[0]) == {"k": 1}


def test_types_of_pandas_are_derived(t_env: TableEnvironment) -> None:
    frame = pd.DataFrame({"r": [{"x": 1}], "t": [pd.Timestamp("2020-01-01T00:00:00Z")], 3: [[1.5]]})
    table = t_env.from_pandas(frame)
    assert [str(data_type) for data_type in table.get_schema().get_field_data_types()] == [
        "ROW<`x` BIGINT>",
        "TIMESTAMP(9)",
        "ARRAY<DOUBLE>",
    ]
    assert table.get_schema().get_field_names() == ["r", "t", "3"]


def test_missing_values_of_pandas_are_null(t_env: TableEnvironment) -> None:
    frame = pd.DataFrame({"f": [1.0, np.nan], "s": ["a", None], "i": pd.array([1, None], dtype="Int64")})
    assert rows(t_env.from_pandas(frame)) == [(1.0, "a", 1), (None, None, None)]
    assert rows(t_env.from_pandas(frame[["f"]], [DataTypes.INT()])) == [(1,), (None,)]


def test_timestamps_of_pandas_have_the_zone_of_the_session(t_env: TableEnvironment) -> None:
    t_env.get_config().set_local_timezone("Asia/Tokyo")
    instant = pd.Timestamp("2020-01-01T00:00:00Z")
    frame = pd.DataFrame({"aware": [instant], "local": [pd.Timestamp("2020-01-01T09:00:00")]})
    zoned = DataTypes.TIMESTAMP_LTZ(3)
    result = t_env.from_pandas(frame, [zoned, zoned]).to_pandas()
    assert result.aware[0] == result.local[0] == instant
    assert str(result.aware.dt.tz) == "Asia/Tokyo"


def test_a_wrong_schema_of_pandas_is_refused(t_env: TableEnvironment) -> None:
    frame = pd.DataFrame({"a": np.int8([1])})
    with pytest.raises(TypeError, match=r"Expected a string.*got int8"):
        t_env.from_pandas(frame, [DataTypes.STRING()])
    with pytest.raises(TypeError, match="needs a pandas DataFrame, not list"):
        t_env.from_pandas([1])
    with pytest.raises(TypeError, match="schema must be a row type, a list of names or a list of data types"):
        t_env.from_pandas(frame, 5)


def test_a_result_without_rows_is_a_frame_with_columns(t_env: TableEnvironment) -> None:
    table = t_env.from_pandas(pd.DataFrame({"a": [1]}))
    empty = table.filter(col("a") > 1)
    assert list(empty.to_pandas().columns) == ["a"]
    assert empty.to_arrow().schema == pa.schema([("a", pa.int64())])


def test_fields_of_a_row_type_are_a_list() -> None:
    fields = NESTED.fields.copy()
    fields.reverse()
    assert DataTypes.ROW(fields).names == ["y", "x"]
    assert NESTED.names == ["x", "y"]

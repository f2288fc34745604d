"""Bitmaps are Python values at the ends of tables, and all functions of bitmaps are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.errors import UserError
from millstream.sql.columns import SqlTypeInfo
from millstream.sql.errors import SqlError
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions import aggregation, bitmap_aggregates
from millstream.sql.functions.aggregates import create_aggregation
from millstream.sql.functions.spark import get_spark_type
from millstream.sql.syntax import parse_type
from millstream.sql.types import data_types as t
from millstream.table import Bitmap, DataTypes, TableEnvironment
from millstream.table.udf import udf

assert bitmap_aggregates


def test_bitmaps_of_a_program_are_columns(t_env: TableEnvironment) -> None:
    row_type = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("b", parse_type("BITMAP"))])
    table = t_env.from_elements([(1, Bitmap([1, 2])), (2, Bitmap([2, -1])), (3, None)], row_type)
    t_env.create_temporary_view("v", table)
    t_env.create_temporary_function("longer", udf(lambda b: b | Bitmap([70_000]), result_type="BITMAP"))
    query = t_env.sql_query("SELECT id, BITMAP_AND(b, longer(b)) AS same, longer(b) AS more FROM v WHERE b IS NOT NULL")
    with query.execute().collect() as rows:
        assert sorted(map(tuple, rows)) == [
            (1, Bitmap([1, 2]), Bitmap([1, 2, 70_000])),
            (2, Bitmap([2, -1]), Bitmap([2, -1, 70_000])),
        ]
    frame = t_env.sql_query("SELECT BITMAP_OR_AGG(b) AS b, BITMAP_OR_CARDINALITY_AGG(b) AS n FROM v").to_pandas()
    assert frame["n"].tolist() == [3]
    assert [Bitmap.from_bytes(data) for data in frame["b"]] == [Bitmap([1, 2, -1])]


def test_values_of_other_types_are_refused() -> None:
    info = SqlTypeInfo(t.BITMAP)
    assert info._from_array(info.to_arrow([Bitmap([3]), None])) == [Bitmap([3]), None]
    with pytest.raises(Exception, match="BITMAP"):
        info.to_arrow([b"not one"])


def test_plans_with_bitmaps_are_not_lowered_to_spark() -> None:
    """A plan with bitmaps runs on our own operators: Spark would compare and order bitmaps as bytes."""
    assert get_spark_type(t.BITMAP) is None


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("name", [name for name in aggregation.AGGREGATES if name.startswith("BITMAP_")])
def test_merged_accumulators_equal_one_accumulator(name: str, retracts: bool) -> None:
    build = "BUILD" in name
    row_type: t.DataType = t.INT if build else t.BITMAP
    call = AggregateCall(name, (0,), t.BITMAP, (row_type,))
    numbers = range(-700, 700) if build else range(-15, 15)
    values = [None, *(n if build else Bitmap([n % 7, n, n + 1, 5]).to_bytes() for n in numbers)]
    aggregate = create_aggregation(call, retracts=retracts)
    all_rows, first_part, second_part = aggregate.create(), aggregate.create(), aggregate.create()
    for index, value in enumerate(values):
        aggregate.add(all_rows, (value,))
        aggregate.add(first_part if index % 3 else second_part, (value,))
    assert aggregate.value(all_rows) is not None
    aggregate.merge(first_part, second_part)
    assert aggregate.value(first_part) == aggregate.value(all_rows)
    if retracts:
        for value in values:
            aggregate.retract(first_part, (value,))
        assert first_part == aggregate.create()
        assert aggregate.value(first_part) is None


def test_a_table_has_columns_of_bitmaps(t_env: TableEnvironment) -> None:
    t_env.execute_sql("CREATE TABLE p (id INT, b BITMAP NOT NULL) WITH ('connector'='blackhole')")
    with t_env.execute_sql("DESCRIBE p").collect() as rows:
        assert [tuple(row)[:3] for row in rows] == [("id", "INT", True), ("b", "BITMAP", False)]
    for refused in ("INSERT INTO p SELECT 1, x'00'", "CREATE TABLE q (b BITMAP(3)) WITH ('connector'='blackhole')"):
        with pytest.raises(SqlError):
            t_env.execute_sql(refused)


@pytest.mark.parametrize("name", ["csv", "json", "parquet"])
def test_files_have_no_columns_of_bitmaps(t_env: TableEnvironment, tmp_path: Path, name: str) -> None:
    t_env.execute_sql(
        f"CREATE TABLE f (b BITMAP) WITH ('connector'='filesystem', 'path'='{tmp_path}/f', 'format'='{name}')"
    )
    with pytest.raises(UserError, match="cannot read or write BITMAP"):
        t_env.execute_sql("INSERT INTO f SELECT BITMAP_BUILD(ARRAY[1])")


def test_all_functions_are_listed(t_env: TableEnvironment) -> None:
    listed = t_env.list_functions()
    for name in ("upper", "bitmap_build", "bitmap_or_agg", "count", "array_agg", "json_arrayagg", "lag", "row_number"):
        assert name in listed
    assert "single_value" not in listed
    with t_env.execute_sql("SHOW FUNCTIONS").collect() as rows:
        assert [row[0] for row in rows] == listed

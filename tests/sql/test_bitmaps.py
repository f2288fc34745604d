"""Bitmaps come into tables and out of them as Python's values, and every function has its name in the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.errors import UserError
from millstream.sql.columns import SqlTypeInfo
from millstream.sql.errors import SqlError
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions import aggregation, bitmap_aggregates
from millstream.sql.functions.aggregates import create_aggregation as made
from millstream.sql.functions.spark import get_spark_type
from millstream.sql.syntax import parse_type
from millstream.sql.types import data_types as t
from millstream.table import Bitmap, DataTypes, TableEnvironment
from millstream.table.udf import udf

assert bitmap_aggregates


def test_bitmaps_of_a_program_are_columns(t_env: TableEnvironment) -> None:
    kind = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("b", parse_type("BITMAP"))])
    table = t_env.from_elements([(1, Bitmap([1, 2])), (2, Bitmap([2, -1])), (3, None)], kind)
    t_env.create_temporary_view("v", table)
    t_env.create_temporary_function("longer", udf(lambda b: b | Bitmap([70_000]), result_type="BITMAP"))
    query = t_env.sql_query("SELECT id, BITMAP_AND(b, longer(b)) AS same, longer(b) AS more FROM v WHERE b IS NOT NULL")
    with query.execute().collect() as found:
        assert sorted(map(tuple, found)) == [
            (1, Bitmap([1, 2]), Bitmap([1, 2, 70_000])),
            (2, Bitmap([2, -1]), Bitmap([2, -1, 70_000])),
        ]
    frame = t_env.sql_query("SELECT BITMAP_OR_AGG(b) AS b, BITMAP_OR_CARDINALITY_AGG(b) AS n FROM v").to_pandas()
    assert frame["n"].tolist() == [3]
    assert [Bitmap.from_bytes(each) for each in frame["b"]] == [Bitmap([1, 2, -1])]


def test_only_bitmaps_are_bitmaps() -> None:
    info = SqlTypeInfo(t.BITMAP)
    assert info._from_array(info.to_arrow([Bitmap([3]), None])) == [Bitmap([3]), None]
    with pytest.raises(Exception, match="BITMAP"):
        info.to_arrow([b"not one"])


def test_spark_is_given_no_bitmaps() -> None:
    """A plan with bitmaps runs on the engine's own operators: as bytes, Spark would compare and order them."""
    assert get_spark_type(t.BITMAP) is None


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("name", [name for name in aggregation.AGGREGATES if name.startswith("BITMAP_")])
def test_accumulators_that_are_put_together_are_as_one(name: str, retracts: bool) -> None:
    build = "BUILD" in name
    kind: t.DataType = t.INT if build else t.BITMAP
    call = AggregateCall(name, (0,), t.BITMAP, (kind,))
    numbers = range(-700, 700) if build else range(-15, 15)
    values = [None, *(n if build else Bitmap([n % 7, n, n + 1, 5]).to_bytes() for n in numbers)]
    aggregate = made(call, retracts=retracts)
    whole, one, other = aggregate.create(), aggregate.create(), aggregate.create()
    for place, value in enumerate(values):
        aggregate.add(whole, (value,))
        aggregate.add(one if place % 3 else other, (value,))
    assert aggregate.value(whole) is not None
    aggregate.merge(one, other)
    assert aggregate.value(one) == aggregate.value(whole)
    if retracts:
        for value in values:
            aggregate.retract(one, (value,))
        assert one == aggregate.create()
        assert aggregate.value(one) is None


def test_a_table_has_columns_of_bitmaps(t_env: TableEnvironment) -> None:
    t_env.execute_sql("CREATE TABLE p (id INT, b BITMAP NOT NULL) WITH ('connector'='blackhole')")
    with t_env.execute_sql("DESCRIBE p").collect() as found:
        assert [tuple(row)[:3] for row in found] == [("id", "INT", True), ("b", "BITMAP", False)]
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
    with t_env.execute_sql("SHOW FUNCTIONS").collect() as found:
        assert [row[0] for row in found] == listed

"""Pandas functions get PyFlink's forms: Series, DataFrames for rows, values of literals; once for each group."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from remaining_rows import rows

from millstream.errors import UserError
from millstream.table import (
    AggregateFunction,
    DataTypes,
    EnvironmentSettings,
    Schema,
    TableDescriptor,
    TableEnvironment,
)
from millstream.table.expressions import col, lit
from millstream.table.udf import udaf, udf
from millstream.table.window import Tumble
from millstream.types.row import Row

NESTED = DataTypes.ROW([DataTypes.FIELD("c", DataTypes.INT()), DataTypes.FIELD("d", DataTypes.STRING())])
COLUMNS = DataTypes.ROW(
    [
        DataTypes.FIELD("a", DataTypes.SMALLINT()),
        DataTypes.FIELD("b", NESTED),
        DataTypes.FIELD("ts", DataTypes.TIMESTAMP(3)),
    ]
)
START = datetime.datetime(2020, 1, 1, 10, 0)  # noqa: DTZ001
ROWS = [
    (1, Row(2, "x"), START),
    (1, None, START + datetime.timedelta(minutes=1)),
    (2, Row(5, "y"), START + datetime.timedelta(hours=1)),
]


class Forms(AggregateFunction):
    """Describes what it is called with; each call of accumulate adds a text."""

    def create_accumulator(self) -> list[str]:
        return []

    def accumulate(self, accumulator: list[str], *args: Any) -> None:
        accumulator.append(", ".join(f"{type(a).__name__} {a.dtype} {a.tolist()}" for a in args))

    def get_value(self, accumulator: list[str]) -> str:
        return "|".join(accumulator)


@pytest.fixture
def nested(t_env: TableEnvironment) -> Any:
    return t_env.from_elements(ROWS, COLUMNS)


def test_map_gives_a_data_frame_with_the_fields_of_nested_rows(nested: Any) -> None:
    def describe(frame: pd.DataFrame) -> pd.DataFrame:
        assert list(frame.columns) == ["a", "c", "d", "ts"]
        return pd.DataFrame({"sum": frame.a + frame.c.fillna(0), "text": frame.d})

    result_type = DataTypes.ROW([DataTypes.FIELD("s", DataTypes.BIGINT()), DataTypes.FIELD("t", DataTypes.STRING())])
    mapped = nested.map(udf(describe, result_type=result_type, func_type="pandas"))
    assert mapped.get_schema().get_field_names() == ["s", "t"]
    assert rows(mapped) == [(1, None), (3, "x"), (7, "y")]


def test_a_column_of_rows_is_a_data_frame(nested: Any) -> None:
    @udf(result_type=NESTED, func_type="pandas")
    def swap(frame: pd.DataFrame) -> pd.DataFrame:
        assert list(frame.columns) == ["c", "d"]
        assert isinstance(frame.d, pd.Series)
        return frame

    assert rows(nested.select(swap(col("b")).get("d"), col("a"))) == [("x", 1), ("y", 2), (None, 1)]


def test_a_series_of_dicts_is_a_column_of_rows(nested: Any) -> None:
    pair = udf(lambda a: pd.Series([{"d": str(v), "c": v} for v in a]), result_type=NESTED, func_type="pandas")
    assert rows(nested.select(pair(col("a")).get("c"), pair(col("a")).get("d"))) == [(1, "1"), (1, "1"), (2, "2")]


def test_literals_are_values_and_columns_are_series(nested: Any) -> None:
    @udf(result_type="STRING", func_type="pandas")
    def forms(column: pd.Series, *constants: Any) -> pd.Series:
        return pd.Series([f"{column.dtype} {constants}"] * len(column))

    day = datetime.date(2020, 1, 1)
    assert rows(nested.limit(1).select(forms(col("a"), lit(2), lit("x"), lit(day)))) == [
        ("int16 (2, 'x', datetime.date(2020, 1, 1))",)
    ]


def test_timestamps_with_a_zone_are_in_the_zone_of_the_session(t_env: TableEnvironment, nested: Any) -> None:
    t_env.get_config().set_local_timezone("Asia/Tokyo")
    t_env.create_temporary_view("nested", nested)

    @udf(result_type="TIMESTAMP_LTZ(3)", func_type="pandas")
    def local(instants: pd.Series) -> pd.Series:
        assert str(instants.dt.tz) == "Asia/Tokyo"
        return instants.dt.tz_localize(None)  # local times are in the session's zone

    @udaf(result_type="INT", func_type="pandas")
    def hour(instants: pd.Series) -> int:
        return instants.dt.hour.max()

    instants = t_env.sql_query("SELECT CAST(ts AS TIMESTAMP_LTZ(3)) AS i FROM nested")
    assert rows(instants.select(hour(col("i")))) == [(11,)]
    assert rows(instants.filter(local(col("i")) != col("i"))) == []


@pytest.mark.parametrize("result", [float("nan"), None, pd.NA, pd.NaT, np.float64("nan")])
def test_a_missing_value_is_null(nested: Any, result: Any) -> None:
    aggregate = udaf(lambda _a: result, result_type="DOUBLE", func_type="pandas")
    scalar = udf(lambda a: pd.Series([result] * len(a), dtype=object), result_type="DOUBLE", func_type="pandas")
    assert rows(nested.select(aggregate(col("a")))) == [(None,)]
    assert rows(nested.limit(1).select(scalar(col("a")))) == [(None,)]


def test_an_aggregate_class_gets_whole_columns_once_for_each_group(nested: Any) -> None:
    forms = udaf(Forms(), result_type="STRING", func_type="pandas")
    grouped = nested.group_by(col("a")).select(col("a"), forms(col("a"), col("b").get("d"), lit(1)))
    assert rows(grouped) == [
        (1, "Series int16 [1, 1], Series object ['x', None], Series int32 [1, 1]"),
        (2, "Series int16 [2], Series object ['y'], Series int32 [1]"),
    ]


def test_an_aggregate_class_gets_whole_columns_once_for_each_window(t_env: TableEnvironment, tmp_path: Path) -> None:
    forms = udaf(Forms(), result_type="STRING", func_type="pandas")
    schema = Schema.new_builder().column("a", "SMALLINT").column("ts", "TIMESTAMP(3)").watermark("ts", "ts").build()
    descriptor = TableDescriptor.for_connector("filesystem").schema(schema).option("path", str(tmp_path))
    events = t_env.from_descriptor(descriptor.format("csv").build())
    (tmp_path / "events.csv").write_text("".join(f"{a},{ts}\n" for a, _, ts in ROWS))
    window = Tumble.over(lit(1).hours).on(col("ts")).alias("w")
    windowed = events.window(window).group_by(col("w")).select(col("w").start, forms(col("a")))
    assert rows(windowed) == [
        (START, "Series int16 [1, 1]"),
        (START + datetime.timedelta(hours=1), "Series int16 [2]"),
    ]


def test_the_rows_of_an_aggregate_are_a_data_frame(nested: Any) -> None:
    @udaf(result_type=NESTED, func_type="pandas")
    def last(frame: pd.DataFrame) -> tuple[Any, Any]:
        assert list(frame.columns) == ["a", "c", "d", "ts"]
        return frame.c.max(), frame.d.iloc[-1]

    aggregated = (
        nested.group_by(col("a")).aggregate(last.alias("most", "last")).select(col("a"), col("most"), col("last"))
    )
    assert rows(aggregated) == [(1, 2, None), (2, 5, "y")]


def test_no_rows_are_empty_series(nested: Any) -> None:
    total = udaf(lambda a: int(a.sum()) + len(a), result_type="BIGINT", func_type="pandas")
    assert rows(nested.filter(col("a") > 9).select(total(col("a")))) in ([], [(0,)])


def test_a_result_of_another_type_is_refused(nested: Any) -> None:
    half = udaf(lambda _a: 2.5, result_type="INT", func_type="pandas", name="half")
    with pytest.raises(UserError, match=r"function 'half': it returned 2\.5, which is not a INT"):
        rows(nested.select(half(col("a"))))


def test_arrow_functions_see_the_names_of_fields(nested: Any) -> None:
    @udf(result_type="INT", func_type="arrow")
    def first(pairs: pa.StructArray) -> pa.Array:
        return pc.struct_field(pairs, "c")

    assert rows(nested.select(first(col("b")))) == [(2,), (5,), (None,)]


def test_wrong_function_types_are_errors_of_values() -> None:
    with pytest.raises(ValueError, match="The func_type must be one of 'general, pandas' or 'arrow'"):
        udf(lambda a: a, result_type="INT", func_type="vector")
    with pytest.raises(TypeError, match="is not a function"):
        udf(5, result_type="INT")
    with pytest.raises(UserError, match="needs an AggregateFunction"):
        udaf(lambda a: a, result_type="INT")


def test_every_timestamp_is_a_time_of_windows_in_batch_mode(inline_engine: None) -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    forms = udaf(Forms(), result_type="STRING", func_type="pandas")
    window = Tumble.over(lit(1).hours).on(col("ts")).alias("w")
    windowed = t_env.from_elements(ROWS, COLUMNS).window(window).group_by(col("w")).select(forms(col("a")))
    assert rows(windowed) == [("Series int16 [1, 1]",), ("Series int16 [2]",)]

"""TIMESTAMP(7..9) and TIMESTAMP_LTZ(7..9) keep their nanoseconds: in literals, keys, state, joins, casts and files."""

from __future__ import annotations

import datetime
from pathlib import Path

import pandas as pd
import pytest
from remaining_rows import rows

from millstream.serialization import codec
from millstream.table import PlanReference, TableEnvironment
from millstream.types.nanoseconds import add_nanosecond, read_iso_timestamp, truncate_fraction

T789, T700 = "2021-04-13 20:12:11.123456789", "2021-04-13 20:12:11.123456700"
VALUES = f"(VALUES (1, TIMESTAMP '{T789}'), (2, TIMESTAMP '{T700}'), (3, TIMESTAMP '{T789}')) AS x(k, t)"
ZONED = f"(SELECT k, CAST(t AS TIMESTAMP_LTZ(9)) AS t FROM {VALUES})"


@pytest.fixture(params=[VALUES, ZONED], ids=["TIMESTAMP", "TIMESTAMP_LTZ"])
def table(request: pytest.FixtureRequest, t_env: TableEnvironment) -> str:
    t_env.get_config().set("table.local-time-zone", "UTC")
    return str(request.param)


def test_literals_and_comparisons(t_env: TableEnvironment, table: str) -> None:
    assert rows(t_env.sql_query(f"SELECT CAST(t AS STRING) FROM {table}")) == [(T700,), (T789,), (T789,)]
    assert rows(t_env.sql_query(f"SELECT k FROM {table} WHERE t > CAST('{T700}' AS TIMESTAMP(9))")) == [(1,), (3,)]
    assert rows(t_env.sql_query(f"SELECT k FROM {table} WHERE t = CAST('{T700}' AS TIMESTAMP(9))")) == [(2,)]


def test_keys(t_env: TableEnvironment, table: str) -> None:
    query = f"SELECT CAST(t AS STRING), COUNT(*) FROM {table} GROUP BY t"
    assert rows(t_env.sql_query(query)) == [(T700, 1), (T789, 2)]


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("CAST(MAX(t) AS STRING)", T789),
        ("CAST(MIN(t) AS STRING)", T700),
        ("COUNT(DISTINCT t)", 2),
        ("CAST(LAST_VALUE(t) AS STRING)", T789),
        ("CAST(FIRST_VALUE(t) AS STRING)", T789),
        ("CAST(ARRAY_AGG(t) AS STRING)", f"[{T789}, {T700}, {T789}]"),
        ("CAST(ARRAY_AGG(DISTINCT t) AS STRING)", f"[{T789}, {T700}]"),
        ("CAST(COLLECT(t) AS STRING)", f"{{{T789}=2, {T700}=1}}"),
    ],
)
def test_aggregates(t_env: TableEnvironment, table: str, aggregate: str, expected: object) -> None:
    assert rows(t_env.sql_query(f"SELECT {aggregate} FROM {table}")) == [(expected,)]


def test_joins_and_ranks(t_env: TableEnvironment, table: str) -> None:
    t_env.create_temporary_view("stamped", t_env.sql_query(f"SELECT * FROM {table}"))
    joined = "SELECT a.k, b.k FROM stamped a JOIN stamped b ON a.t = b.t WHERE a.k < b.k"
    assert rows(t_env.sql_query(joined)) == [(1, 3)]
    ranked = (
        "SELECT k, CAST(t AS STRING) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY t ORDER BY k) AS n FROM stamped) "
        "WHERE n = 1"
    )
    assert rows(t_env.sql_query(ranked)) == [(1, T789), (2, T700)]
    top = "SELECT k FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY t) AS n FROM stamped) WHERE n = 1"
    assert rows(t_env.sql_query(top)) == [(2,)]
    assert rows(t_env.sql_query("SELECT DISTINCT CAST(t AS STRING) FROM stamped")) == [(T700,), (T789,)]


def test_collected_objects_have_microseconds_as_in_pyflink(t_env: TableEnvironment) -> None:
    ((value,),) = rows(t_env.sql_query(f"SELECT TIMESTAMP '{T789}'"))
    assert type(value) is datetime.datetime
    assert value == datetime.datetime(2021, 4, 13, 20, 12, 11, 123456)  # noqa: DTZ001


def test_files(t_env: TableEnvironment, tmp_path: Path) -> None:
    t_env.get_config().set("table.local-time-zone", "UTC")
    for name in ("csv", "json", "parquet"):
        options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/{name}', 'format' = '{name}'"
        t_env.execute_sql(f"CREATE TABLE {name}_file (t TIMESTAMP(9), z TIMESTAMP_LTZ(9)) WITH ({options})")
        zoned = f"CAST(TIMESTAMP '{T789}' AS TIMESTAMP_LTZ(9))"
        t_env.execute_sql(f"INSERT INTO {name}_file SELECT TIMESTAMP '{T789}', {zoned}").wait()
        stored = t_env.sql_query(f"SELECT CAST(t AS STRING), CAST(z AS STRING) FROM {name}_file")
        assert rows(stored) == [(T789, T789)]


def test_plans_keep_the_digits_of_literals(t_env: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    t_env.execute_sql("CREATE TABLE printed (t TIMESTAMP(9)) WITH ('connector' = 'print')")
    plan = t_env.compile_plan_sql(f"INSERT INTO printed SELECT TIMESTAMP '{T789}'")
    t_env.load_plan(PlanReference.from_json_string(plan.as_json_string())).execute().wait()
    assert capsys.readouterr().out == "+I[2021-04-13T20:12:11.123456789]\n"


def test_timestamps_are_stored() -> None:
    for zone in (None, datetime.UTC):
        stored = codec.decode(codec.encode((pd.Timestamp(T789, tz=zone),)))
        assert stored == (pd.Timestamp(T789, tz=zone),)


def test_fractions() -> None:
    moment = datetime.datetime(2021, 4, 13, 20, 12, 11, 123456)  # noqa: DTZ001
    exact = add_nanosecond(moment, 789)
    assert add_nanosecond(moment, 0) is moment
    assert truncate_fraction(exact, 9) == exact
    assert truncate_fraction(exact, 7) == add_nanosecond(moment, 700)
    assert truncate_fraction(exact, 3) == moment.replace(microsecond=123000)
    assert read_iso_timestamp(exact.isoformat()) == exact
    assert read_iso_timestamp(moment.isoformat()) == moment

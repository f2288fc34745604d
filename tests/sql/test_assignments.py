"""INSERT converts the types that Flink converts, and refuses the others: a value is never narrowed without a CAST."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from assignments import TYPES, accepted, read_golden
from remaining_rows import rows

from millstream.sql.errors import SqlError, SqlValidationError
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.table.expressions import col


def test_types_are_converted_as_by_flink(inline_engine: None) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    actual, golden = accepted(environment, SqlError), read_golden()
    assert list(golden) == TYPES
    assert actual == golden


def test_a_number_is_not_narrowed_without_a_cast(t_env: TableEnvironment) -> None:
    t_env.execute_sql("CREATE TABLE narrow (x INT) WITH ('connector' = 'blackhole')")
    with pytest.raises(SqlValidationError, match=r"column 'EXPR\$0' is BIGINT.*'x' of .*narrow' is INT"):
        t_env.execute_sql("INSERT INTO narrow SELECT CAST(3000000000 AS BIGINT)")
    with pytest.raises(SqlValidationError, match="is BIGINT"):
        t_env.from_elements([(1,)], ["a"]).select(col("a")).execute_insert("narrow")


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("TIMESTAMP '2024-01-02 03:04:05'", "DATE", datetime.date(2024, 1, 2)),
        ("TIMESTAMP '2024-01-02 03:04:05'", "TIME", datetime.time(3, 4, 5)),
        ("ARRAY[1, 2]", "ARRAY<BIGINT>", [1, 2]),
        ("CAST(7 AS TINYINT)", "DOUBLE", 7.0),
        ("CAST('abcdef' AS STRING)", "VARCHAR(3)", "abc"),
    ],
)
def test_a_converted_value_is_written(
    t_env: TableEnvironment, tmp_path: Any, source: str, target: str, expected: Any
) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'json'"
    t_env.execute_sql(f"CREATE TABLE converted (x {target}) WITH ({options})")
    t_env.execute_sql(f"INSERT INTO converted SELECT {source}").wait()
    assert rows(t_env.from_path("converted")) == [(expected,)]

"""Window joins on columns have the results of window joins row by row, for every join type."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sql_cases import changelog, materialize

from millstream.sql.connectors.simple import register_values
from millstream.sql.operators.join import window_tables
from millstream.table import EnvironmentSettings, TableEnvironment

START = datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None)
ROWS = [
    (None if i % 9 == 0 else i * i % 6, f"n{i % 4}", i * 7 % 11, START + timedelta(seconds=i * 3 % 40))
    for i in range(48)
]
WINDOWED = "(SELECT * FROM TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '10' SECOND))) {}"
SAME = "l.window_start = r.window_start AND l.window_end = r.window_end AND l.k = r.k"
ONE, OTHER = WINDOWED.format("one", "l"), WINDOWED.format("other", "r")
OF_BOTH = f"SELECT l.k, l.v, r.k, r.v FROM {ONE} {{}} JOIN {OTHER} ON {SAME}"
OF_ONE = f"SELECT l.k, l.v FROM {ONE} WHERE {{}} EXISTS (SELECT * FROM {OTHER} WHERE {SAME})"
QUERIES = {
    "inner": OF_BOTH.format("INNER") + " AND l.n = r.n",
    "condition": OF_BOTH.format("INNER") + " AND l.v < r.v",
    "left": OF_BOTH.format("LEFT") + " AND l.v < r.v",
    "right": OF_BOTH.format("RIGHT"),
    "full": OF_BOTH.format("FULL") + " AND l.v <> r.v",
    "semi": OF_ONE.format(""),
    "anti": OF_ONE.format("NOT"),
}


def run_query(sql: str) -> Any:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    for name, rows in (("one", ROWS), ("other", ROWS[::-1][:30])):
        register_values(name, rows)
        env.execute_sql(
            f"CREATE TEMPORARY TABLE {name} (k INT, n STRING, v INT, ts TIMESTAMP(3), "
            f"WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE) WITH ('connector' = 'values', 'data-id' = '{name}')"
        )
    assert "WindowJoin" in env.explain_sql(sql)
    return materialize(changelog(env, sql)[2])


@pytest.mark.parametrize("join_type", QUERIES)
def test_columns_and_rows_have_the_same_results(
    join_type: str, inline_engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    actual = run_query(QUERIES[join_type])
    monkeypatch.setattr(window_tables, "can_compare_keys", lambda *_: False)
    assert actual
    assert actual == run_query(QUERIES[join_type])

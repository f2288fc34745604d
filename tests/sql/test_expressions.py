"""Expressions on columns of all types have Flink's type and Flink's text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from expression_rows import CHUNK, GOLDEN, ZONE, as_texts, expressions, select, sort_column

from millstream.table import EnvironmentSettings, TableEnvironment

EXPRESSIONS = expressions()


@pytest.mark.parametrize("start", range(0, len(EXPRESSIONS), CHUNK))
def test_expressions_give_flinks_types_and_texts(inline_engine: None, start: int) -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1").set("table.local-time-zone", ZONE)
    chunk = EXPRESSIONS[start : start + CHUNK]
    table = env.sql_query(select(chunk))
    types = [str(data_type) for data_type in table.get_schema().get_field_data_types()]
    env.create_temporary_view("expressions", table)
    with env.execute_sql(as_texts("expressions", len(chunk))).collect() as results:
        rows: list[Any] = [list(row) for row in results]
    different = {
        sql: (golden[sql], actual)
        for n, sql in enumerate(chunk)
        if golden[sql] != (actual := [types[n], sort_column(rows, n)])
    }
    assert not different


def test_there_are_hundreds_of_expressions() -> None:
    assert len(EXPRESSIONS) > 500

"""Names and literals of any content are data: nothing in them is interpreted as SQL, as a path or as markup."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from millstream.sql.connectors.simple import register_values
from millstream.table import DataTypes, EnvironmentSettings, PlanReference, TableEnvironment
from millstream.table.expressions import col, lit

HOSTILE = [
    "`",
    "'",
    '"',
    "--",
    "/*",
    "*/",
    "/*+ ",
    ";",
    "\\",
    "\n",
    "\0",
    "$",
    "{",
    "}",
    "%s",
    "..",
    "/",
    "=",
    "\u202e",
]
TEXTS = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=3), max_size=6).map("".join)
NAMES = TEXTS.filter(lambda name: bool(name))
SEARCH = os.environ.get("HYPOTHESIS_PROFILE") == "search"
FEW = settings(
    max_examples=400 if SEARCH else 20,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ATTACK = "x`; DROP TABLE safe; --"
STRING_ATTACK = "x'); DROP TABLE safe; --"


def name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.fixture
def create_environment(inline_engine: None) -> Callable[[], TableEnvironment]:
    def create() -> TableEnvironment:
        env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        env.get_config().set("parallelism.default", "1")
        env.execute_sql("CREATE TABLE safe (a INT) WITH ('connector' = 'blackhole')")
        return env

    return create


def rows(env: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(sql).collect() as results:
        return [tuple(row) for row in results]


def show(env: TableEnvironment, sql: str) -> str:
    ((text,),) = rows(env, sql)
    return str(text)


@FEW
@given(value=TEXTS, alias=NAMES)
@example(value=STRING_ATTACK, alias=ATTACK)
def test_literals_and_aliases_keep_their_content(create_environment: Any, value: str, alias: str) -> None:
    env = create_environment()
    table = env.sql_query(f"SELECT {literal(value)} AS {name(alias)}, CHAR_LENGTH({literal(value)}) AS n")
    assert table.get_schema().get_field_names()[0] == alias
    with table.execute().collect() as results:
        assert [tuple(row) for row in results] == [(value, len(value))]


@FEW
@given(table=NAMES, column=NAMES, comment=TEXTS, value=TEXTS)
@example(table=ATTACK, column=ATTACK, comment=STRING_ATTACK, value=STRING_ATTACK)
def test_a_table_of_any_name_is_created_from_its_show_create(
    create_environment: Any, table: str, column: str, comment: str, value: str
) -> None:
    env = create_environment()
    register_values(value, [(value,), ("other",), (None,)])
    env.execute_sql(
        f"CREATE TABLE {name(table)} ({name(column)} STRING COMMENT {literal(comment)}) COMMENT {literal(comment)} "
        f"WITH ('connector' = 'values', 'data-id' = {literal(value)})"
    )
    create = show(env, f"SHOW CREATE TABLE {name(table)}")
    env.execute_sql(f"DROP TABLE {name(table)}")
    env.execute_sql(create)
    assert show(env, f"SHOW CREATE TABLE {name(table)}") == create
    assert sorted(env.list_tables()) == sorted({"safe", table})
    assert rows(env, f"DESCRIBE {name(table)}")[0][0] == column
    query = f"SELECT {name(column)} FROM {name(table)} WHERE {name(column)} = {literal(value)}"
    assert rows(env, query) == [(value,)] * (2 if value == "other" else 1)
    explained = env.explain_sql(f"SELECT {name(column)}, COUNT(*) FROM {name(table)} GROUP BY {name(column)}")
    assert "GroupAggregate" in explained


@FEW
@given(view=NAMES, columns=st.lists(NAMES, min_size=2, max_size=2, unique=True), value=TEXTS)
@example(view=ATTACK, columns=[ATTACK, "`"], value=STRING_ATTACK)
def test_a_view_of_any_name_is_created_from_its_show_create(
    create_environment: Any, view: str, columns: list[str], value: str
) -> None:
    assume(view != "safe")
    env = create_environment()
    first, second = map(name, columns)
    env.execute_sql(f"CREATE VIEW {name(view)} ({first}, {second}) AS SELECT {literal(value)}, 1")
    create = show(env, f"SHOW CREATE VIEW {name(view)}")
    env.execute_sql(f"DROP VIEW {name(view)}")
    env.execute_sql(create)
    assert show(env, f"SHOW CREATE VIEW {name(view)}") == create
    joined = f"SELECT a.{first}, b.{second} FROM {name(view)} a JOIN {name(view)} b ON a.{second} = b.{second}"
    assert rows(env, joined) == [(value, 1)]


@FEW
@given(table=NAMES, column=NAMES, value=TEXTS)
@example(table=ATTACK, column=ATTACK, value=STRING_ATTACK)
def test_names_and_literals_in_a_compiled_plan_keep_their_content(
    create_environment: Any, table: str, column: str, value: str
) -> None:
    assume(table != "safe")
    env = create_environment()
    env.execute_sql(f"CREATE TABLE {name(table)} ({name(column)} STRING) WITH ('connector' = 'blackhole')")
    plan = env.compile_plan_sql(f"INSERT INTO {name(table)} SELECT {literal(value)}")
    text = plan.as_json_string()
    json.loads(text)
    env.load_plan(PlanReference.from_json_string(text)).execute().wait()
    assert "Sink" in env.load_plan(PlanReference.from_json_string(text)).explain()


@FEW
@given(columns=st.lists(NAMES, min_size=2, max_size=2, unique=True), value=TEXTS)
@example(columns=[ATTACK, "'"], value=STRING_ATTACK)
def test_names_and_values_of_the_table_api_keep_their_content(
    create_environment: Any, columns: list[str], value: str
) -> None:
    env = create_environment()
    row_type = DataTypes.ROW([DataTypes.FIELD(path, DataTypes.STRING()) for path in columns])
    table = env.from_elements([(value, "1"), ("other", "2")], row_type)
    first, second = columns
    selected = (
        table.filter(col(first) == lit(value)).group_by(col(first)).select(col(first).alias(second), col(second).count)
    )
    with selected.execute().collect() as results:
        assert [tuple(row) for row in results][-1] == (value, 2 if value == "other" else 1)


@settings(FEW, max_examples=400 if SEARCH else 12)
@given(value=TEXTS, folder=NAMES)
@example(value="../../out", folder="a b")
@example(value="a/b=c%2F", folder="'")
@example(value="..", folder="--")
def test_the_directory_of_a_partition_is_inside_the_directory_of_its_table(
    create_environment: Any, tmp_path: Path, value: str, folder: str
) -> None:
    assume("\0" not in value)
    env = create_environment()
    root = Path(tempfile.mkdtemp(dir=tmp_path))
    inside = root / folder.replace("/", "_").replace("\0", "_").replace("..", "_")
    inside.mkdir()
    env.execute_sql(
        f"CREATE TABLE t (v STRING, p STRING) PARTITIONED BY (p) WITH ('connector' = 'filesystem', "
        f"'path' = {literal(str(inside))}, 'format' = 'json')"
    )
    env.execute_sql(f"INSERT INTO t VALUES ('x', {literal(value)}), ('y', 'plain')").wait()
    assert [path for path in root.iterdir() if path != inside] == []
    assert sorted(rows(env, "SELECT v, p FROM t")) == [("x", value or None), ("y", "plain")]

"""A compiled plan holds no secret: it refers to secrets, which are resolved when it is loaded."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from millstream.sql.compiled.secrets import PlanSecretMissing, get_secret_key
from millstream.table import EnvironmentSettings, PlanReference, TableEnvironment

PASSWORD, TOKEN = "hunter2", "open-sesame"
URL = f"jdbc:postgresql://localhost:1/db?user=u&password={PASSWORD}"
NAME = ("default_catalog", "default_database", "snk")
SASL = "properties.sasl.password"
INSERT = f"INSERT INTO snk /*+ OPTIONS('properties.ssl.key.password'='{TOKEN}') */ SELECT id FROM src"
PLAIN_INSERT = "INSERT INTO snk SELECT id FROM src"
HINT_KEY = get_secret_key(NAME, "properties.ssl.key.password")


@pytest.fixture(autouse=True)
def inline(inline_engine: None) -> None:
    """Run jobs in this process."""


def _create_session(**options: str) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in options.items():
        env.get_config().set(key, value)
    return env


def _create(env: TableEnvironment, password: str = PASSWORD) -> TableEnvironment:
    env.execute_sql("CREATE TABLE src (id BIGINT) WITH ('connector'='datagen', 'number-of-rows'='3')")
    env.execute_sql(
        "CREATE TABLE snk (id BIGINT) WITH ('connector'='kafka', 'topic'='t', 'format'='json', "
        f"'properties.bootstrap.servers'='localhost:1', '{SASL}'='{password}')"
    )
    return env


def _load(text: str, env: TableEnvironment) -> dict[str, str]:
    """Load a plan, and return the options of its sink, hints included."""
    plan: Any = env.load_plan(PlanReference.from_json_string(text))
    (origin,) = (entry.origin for entry in plan._operations)
    return {**origin.table.options, **dict(origin.hints)}


def test_neither_the_plan_nor_its_statement_holds_a_secret() -> None:
    text = _create(_create_session()).compile_plan_sql(INSERT).as_json_string()
    assert PASSWORD not in text
    assert TOKEN not in text
    sink = next(entry for entry in json.loads(text)["tables"] if entry["name"][-1] == "snk")
    assert sink["secrets"] == [SASL]


def test_a_url_with_a_password_is_not_stored() -> None:
    env = _create(_create_session())
    env.execute_sql(
        f"CREATE TABLE db (id BIGINT) WITH ('connector'='jdbc', 'table-name'='t', 'url'='{URL}', 'username'='u')"
    )
    text = env.compile_plan_sql("INSERT INTO db SELECT id FROM src").as_json_string()
    assert PASSWORD not in text
    table = (*NAME[:2], "db")
    assert _load(text, _create_session(**{get_secret_key(table, "url"): URL}))["url"] == URL


def test_the_plan_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    _create(_create_session()).execute_sql(f"COMPILE PLAN '{tmp_path}/plan.json' FOR {PLAIN_INSERT}")
    assert stat.S_IMODE(os.stat(tmp_path / "plan.json").st_mode) == 0o600


def test_a_secret_is_read_from_an_option_of_the_session() -> None:
    text = _create(_create_session()).compile_plan_sql(INSERT).as_json_string()
    options = _load(text, _create_session(**{get_secret_key(NAME, SASL): "other", HINT_KEY: TOKEN}))
    assert options[SASL] == "other"
    assert options["properties.ssl.key.password"] == TOKEN


@pytest.mark.parametrize("restored", ["ALL", "ALL_ENFORCED"])
def test_a_secret_is_read_from_the_table_of_the_catalog(restored: str) -> None:
    text = _create(_create_session()).compile_plan_sql(PLAIN_INSERT).as_json_string()
    later = _create(_create_session(**{"table.plan.restore.catalog-objects": restored}), password="changed")
    assert _load(text, later)[SASL] == "changed"


def test_a_secret_without_a_value_is_named() -> None:
    text = _create(_create_session()).compile_plan_sql(PLAIN_INSERT).as_json_string()
    with pytest.raises(PlanSecretMissing, match=f"option '{SASL}' of table 'default_catalog.default_database.snk'"):
        _load(text, _create_session())


def test_a_secret_of_a_hint_is_not_read_from_the_table() -> None:
    text = _create(_create_session()).compile_plan_sql(INSERT.replace("ssl.key", "sasl")).as_json_string()
    with pytest.raises(PlanSecretMissing, match=SASL):
        _load(text, _create(_create_session()))


def test_a_plan_of_an_older_release_is_read() -> None:
    plan = json.loads(_create(_create_session()).compile_plan_sql(PLAIN_INSERT).as_json_string())
    plan["version"] = 1
    for table in plan["tables"]:
        for option in table.pop("secrets", ()):
            definition = table["definition"]
            assert SASL not in json.dumps(definition)
            definition["options"]["$map"].append([option, PASSWORD])
    assert _load(json.dumps(plan), _create_session())[SASL] == PASSWORD

"""The catalog of a PostgreSQL server."""

from typing import Any

import pytest

from millstream.connectors.jdbc.options import InvalidJdbcOption
from millstream.errors import ExternalError
from millstream.sql.errors import CatalogError, SqlNotSupported
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.table.catalog import JdbcCatalog, ObjectPath


@pytest.fixture
def t_env(database: Any) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    base = database.url.rpartition("/")[0]
    env.execute_sql(
        f"CREATE CATALOG pg WITH ('type' = 'jdbc', 'base-url' = 'jdbc:{base}', 'default-database' = '{database.name}')"
    )
    env.use_catalog("pg")
    return env


def test_tables_of_the_server_are_listed_described_read_and_written(database: Any, t_env: TableEnvironment) -> None:
    database.execute(
        "CREATE TABLE goods (id BIGINT, part SMALLINT, name VARCHAR(9), price NUMERIC(10, 2), tags TEXT[], "
        "made TIMESTAMP(3), seen TIMESTAMPTZ, at TIME(0), flat CHAR(2), any_number NUMERIC, key UUID, data JSONB, "
        "image BYTEA, CONSTRAINT goods_key PRIMARY KEY (part, id))"
    )
    database.execute('CREATE SCHEMA "Other\'s"')
    database.execute('CREATE TABLE "Other\'s"."T.x" (a INT)')
    assert t_env.list_tables() == ["Other's.T.x", "public.goods"]
    with t_env.execute_sql("DESCRIBE goods").collect() as rows:
        types = {row[0]: row[1] + ("" if row[2] else " NOT NULL") for row in rows}
    assert types == {
        "id": "BIGINT NOT NULL", "part": "SMALLINT NOT NULL", "name": "VARCHAR(9)", "price": "DECIMAL(10, 2)",
        "tags": "ARRAY<STRING>", "made": "TIMESTAMP(3)", "seen": "TIMESTAMP_LTZ(6)", "at": "TIME(0)",
        "flat": "CHAR(2)", "any_number": "DECIMAL(38, 18)", "key": "STRING", "data": "STRING", "image": "BYTES",
    }  # fmt: skip
    assert t_env._catalogs.table(("Other's.T.x",))[1].schema.names == ["a"]
    assert t_env._catalogs.table(("goods",))[1].primary_key == ("part", "id")
    t_env.execute_sql(
        "INSERT INTO goods (id, part, name, tags) SELECT 1, CAST(2 AS SMALLINT), 'pen', ARRAY['x', 'y']"
    ).wait()
    t_env.execute_sql("INSERT INTO `public.goods` (id, part, name) SELECT 1, CAST(2 AS SMALLINT), 'ink'").wait()
    assert database.execute("SELECT id, part, name FROM goods") == [(1, 2, "ink")]
    with t_env.execute_sql("SELECT name, price FROM goods").collect() as rows:
        assert [tuple(row) for row in rows] == [("ink", None)]


def test_the_catalog_is_read_only(database: Any, t_env: TableEnvironment) -> None:
    database.execute("CREATE TABLE t (a INT)")
    for statement, message in (
        ("CREATE TABLE u (a INT)", "cannot create or alter table 'u'"),
        ("DROP TABLE t", "cannot drop table 't'"),
        ("CREATE DATABASE d", "cannot create a database"),
        ("DROP DATABASE postgres", "cannot drop a database"),
        (f"ALTER DATABASE {database.name} SET ('a' = 'b')", "cannot alter a database"),
    ):
        with pytest.raises(SqlNotSupported, match=message):
            t_env.execute_sql(statement)
    t_env.execute_sql("CREATE TABLE IF NOT EXISTS t (a INT)")
    with pytest.raises(CatalogError, match="there is no table 'nothing'"):
        t_env.execute_sql("DESCRIBE nothing")


def test_a_catalog_that_cannot_be_opened_is_not_created(database: Any, t_env: TableEnvironment) -> None:
    base = database.url.rpartition("/")[0]
    create = "CREATE CATALOG c WITH ('type' = 'jdbc', 'base-url' = '{}', 'default-database' = '{}')"
    with pytest.raises(ExternalError, match='database "nothing" does not exist'):
        t_env.execute_sql(create.format(f"jdbc:{base}", "nothing"))
    with pytest.raises(InvalidJdbcOption, match="is not the URL of a PostgreSQL database"):
        t_env.execute_sql(create.format("jdbc:oracle://localhost", "d"))
    with pytest.raises(CatalogError, match="has no option 'base-url'"):
        t_env.execute_sql("CREATE CATALOG c WITH ('type' = 'jdbc')")
    assert "c" not in t_env.list_catalogs()


def test_secrets_of_tables_are_masked(database: Any, t_env: TableEnvironment) -> None:
    database.execute("CREATE TABLE t (a INT)")
    t_env.execute_sql("ALTER CATALOG pg SET ('password' = 'geheim')")
    for statement in ("SHOW CREATE CATALOG pg", "SHOW CREATE TABLE t", "DESCRIBE CATALOG EXTENDED pg"):
        with t_env.execute_sql(statement).collect() as rows:
            text = str(list(rows))
        assert "geheim" not in text
        assert "******" in text


def test_a_catalog_that_a_program_registers_reads_the_server(database: Any) -> None:
    database.execute("CREATE TABLE stars (id INT, name TEXT)")
    database.execute("INSERT INTO stars VALUES (1, 'vega')")
    user, password = (database.execute(f"SELECT {column}")[0][0] for column in ("current_user::text", "'secret'"))
    base = database.url.rpartition("/")[0]
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    catalog = JdbcCatalog("sky", database.name, user, password, f"jdbc:{base}")
    env.register_catalog("sky", catalog)
    assert catalog.table_exists(ObjectPath(database.name, "public.stars"))
    assert "secret" not in repr(catalog)
    with env.execute_sql(f"SELECT name FROM sky.{database.name}.stars").collect() as rows:
        assert [tuple(row) for row in rows] == [("vega",)]

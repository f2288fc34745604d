"""Secret options are used, and never shown."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.config.configuration import Configuration
from millstream.config.secrets import HIDDEN, is_secret, mask_secret, mask_statement
from millstream.connectors.kafka.source import KafkaSource
from millstream.sql.errors import SqlError
from millstream.sql.syntax import parse_statement
from millstream.table import EnvironmentSettings, TableDescriptor, TableEnvironment

SECRET = "h'u!sh"
WRITTEN = SECRET.replace("'", "''")
OPTIONS = (
    *("password", "properties.sasl.jaas.config", "value.avro-confluent.bearer-auth.token", "fs.s3a.secret.key"),
    *("s3.access-key", "value.avro-confluent.basic-auth.user-info", "http-headers"),
)


@pytest.fixture
def env() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def test_secret_keys_are_those_of_flink_and_access_keys() -> None:
    flink = "password secret my.token properties.sasl.jaas.config s3.secret-key api-key apikey auth-params service-key"
    assert all(
        map(is_secret, (*flink.split(), "basic-auth.user-info", "http-headers", "PASSWORD", "aws.secretAccessKey"))
    )
    assert all(map(is_secret, ("s3.access-key", "ssl.private.key", "passphrase", "gcs.credentials")))
    assert not any(map(is_secret, ("connector", "username", "topic", "key.format", "key.fields", "path", "url")))


@pytest.mark.parametrize("key", OPTIONS)
def test_options_are_shown_without_their_secrets(env: TableEnvironment, key: str) -> None:
    env.execute_sql(f"CREATE TABLE t (x INT) WITH ('connector'='print', '{key}'='{WRITTEN}')")
    env.execute_sql(f"CREATE CATALOG c WITH ('type'='generic_in_memory', '{key}'='{WRITTEN}')")
    env.execute_sql(f"CREATE DATABASE d WITH ('{key}'='{WRITTEN}')")
    env.execute_sql(f"SET '{key}' = '{WRITTEN}'")
    for sql in ("SHOW CREATE TABLE t", "SHOW CREATE CATALOG c", "DESCRIBE CATALOG EXTENDED c", "SET"):
        with env.execute_sql(sql).collect() as rows:
            text = "\n".join(str(row) for row in rows)
        assert key in text
        assert HIDDEN in text
        assert "u!sh" not in text
    with env.execute_sql("DESCRIBE DATABASE EXTENDED d").collect() as rows:
        assert "u!sh" not in str(list(rows))
    assert env._catalogs.table(("t",))[1].options[key] == SECRET  # type: ignore[union-attr]
    assert env.get_config().get(key, "") == SECRET


def test_views_are_shown_without_the_secrets_of_their_hints(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (x INT) WITH ('connector'='datagen')")
    env.execute_sql(f"CREATE VIEW v AS SELECT * FROM t /*+ OPTIONS('password'='{WRITTEN}') */")
    with env.execute_sql("SHOW CREATE VIEW v").collect() as rows:
        assert f"OPTIONS('password'='{HIDDEN}')" in next(iter(rows))[0]


def test_plans_contain_no_secrets(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (x INT) WITH ('connector'='datagen', 'number-of-rows'='1')")
    env.execute_sql(f"CREATE TABLE s (x INT) WITH ('connector'='blackhole', 'password'='{WRITTEN}')")
    query = f"SELECT * FROM t /*+ OPTIONS('password'='{WRITTEN}') */"
    with pytest.raises(SqlError) as caught:
        env.explain_sql(query)
    assert "password" in str(caught.value)
    assert "u!sh" not in str(caught.value)
    plan = env._bind_statement(parse_statement("INSERT INTO s SELECT * FROM t"))[0]
    assert "u!sh" not in repr(plan)


@pytest.mark.parametrize(
    "sql",
    [
        f"CREATE TABLE t (x INTT) WITH ('connector'='jdbc', 'password'='{WRITTEN}')",
        f"CREATE TABLE t (x INT) WITH ('password'='{WRITTEN}', 'connector' 'jdbc')",
        f"CREATE TABLE t (x INT) WITH ('connector'='jdbc', 'password' '{WRITTEN}')",
        f"CREATE TABLE t (x INT) WITH ('connector'='jdbc', 'password'='{WRITTEN}",
        f"-- it's\nCREATE TABLE t (`it's` INT) /* it's */ WITH ('a'='b', 'password'='{WRITTEN}') nonsense",
        f"SELECT * FROM t /*+ OPTIONS('password'='{WRITTEN}') */ WHERE nonsense nonsense",
        "SET a.password = u!sh; nonsense",
        f"CREATE TABLE t (x INT) WITH (\n'a'='b',\n'password' =\n '{WRITTEN}') nonsense",
        "CREATE TABLE t (x INT) WITH ('url'='jdbc:postgresql://me:h@st/db?user=a&password=u!sh&x=y') nonsense",
        "CREATE TABLE t (x INT) WITH ('url'='postgresql://me:u!sh@host/db') nonsense",
    ],
)
def test_errors_show_the_position_and_no_secret(env: TableEnvironment, sql: str) -> None:
    with pytest.raises(SqlError) as caught:
        env.execute_sql(sql)
    text = str(caught.value)
    assert "u!sh" not in text
    assert "^" in text
    assert caught.value.line is not None


def test_the_caret_points_at_the_error_after_masking(env: TableEnvironment) -> None:
    sql = "CREATE TABLE t (x INT) WITH ('password'='a very long secret', 'a'='b') nonsense"
    with pytest.raises(SqlError) as caught:
        env.execute_sql(sql)
    head, line, caret = caught.value.message.split("\n")[:3]
    assert f"column {sql.index('nonsense') + 1})" in head
    assert line[caret.index("^") :].startswith("nonsense")


@given(st.text(st.sampled_from("'=,()ab ;SET\npassword"), max_size=40), st.integers(0, 40))
def test_masking_moves_an_offset_with_its_text(text: str, at: int) -> None:
    at = min(at, len(text))
    masked, offset, _ = mask_statement(text, at)
    assert 0 <= offset <= len(masked)
    if masked == text:
        assert offset == at


def test_texts_of_descriptions_have_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    configuration = Configuration.from_dict({"my.password": SECRET, "pipeline.name": "p"})
    descriptor = TableDescriptor.for_connector("jdbc").option("password", SECRET).build()
    source = KafkaSource("b", None, None, properties={"sasl.password": SECRET})  # type: ignore[arg-type]
    logging.getLogger("millstream.test").warning("%s %r %s %r", configuration, configuration, descriptor, source)
    assert "pipeline.name=p" in caplog.text
    assert "u!sh" not in caplog.text


def test_secrets_of_urls_are_masked() -> None:
    assert mask_secret("url", "postgresql://me:hush@host:5432/db?a=b") == "postgresql://me:******@host:5432/db?a=b"
    assert (
        mask_secret("url", "jdbc:postgresql://host/db?user=me&password=x")
        == "jdbc:postgresql://host/db?user=me&password=******"
    )
    assert mask_secret("path", "s3://bucket/key@1:2/x") == "s3://bucket/key@1:2/x"

"""Redis tables: what is written, and looked up."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.errors import ExternalError, UserError
from millstream.sql.connectors.simple import register_values
from millstream.table import EnvironmentSettings, TableEnvironment

pytestmark = pytest.mark.usefixtures("inline_engine")


def environment(port: int, columns: str, command: str, **options: str) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("restart-strategy.type", "none")
    settings = {"host": "127.0.0.1", "port": str(port), "password": "sesame", "command": command, **options}
    text = ", ".join(f"'{key.replace('__', '.')}' = '{value}'" for key, value in settings.items())
    env.execute_sql(f"CREATE TABLE stored ({columns}) WITH ('connector' = 'redis', {text})")
    return env


def insert(env: TableEnvironment, query: str) -> None:
    env.execute_sql(f"INSERT INTO stored {query}").wait()


def test_updates_and_deletions_change_keys(redis_port: int, client: Any) -> None:
    env = environment(redis_port, "k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED", "set", ttl="1000")
    register_values("words", [(word,) for word in ["a", "b", "a", "c"]])
    env.execute_sql("CREATE TABLE words (word STRING) WITH ('connector' = 'values', 'data-id' = 'words')")
    client.set("c", "old")
    insert(env, "SELECT word, COUNT(*) FROM words GROUP BY word")
    assert {key: client.get(key) for key in client.scan_iter()} == {"a": "2", "b": "1", "c": "1"}
    assert 0 < client.ttl("a") <= 1000
    insert(env, "VALUES ('a', CAST(NULL AS BIGINT))")
    assert not client.exists("a")
    fields = "k STRING, f STRING, price DECIMAL(10, 2), PRIMARY KEY (k, f) NOT ENFORCED"
    env = environment(redis_port, fields, "hset")
    insert(env, "VALUES ('h', 'x', 1.5), ('h', 'y', 2.25)")
    assert client.hgetall("h") == {"x": "1.50", "y": "2.25"}
    first = environment(redis_port, fields, "hset", set__if__absent="true")
    insert(first, "VALUES ('h', 'x', 9.0), ('h', 'z', 3.0)")
    assert client.hgetall("h") == {"x": "1.50", "y": "2.25", "z": "3.00"}
    with env.execute_sql("SHOW CREATE TABLE stored").collect() as rows:
        assert "sesame" not in str(list(rows))


@pytest.mark.parametrize(
    ("command", "columns", "rows", "read"),
    [
        ("rpush", "k STRING, v INT", "('k', 1), ('k', 2)", lambda c: c.lrange("k", 0, -1) == ["1", "2"]),
        ("lpush", "k STRING, v BOOLEAN", "('k', TRUE)", lambda c: c.lrange("k", 0, -1) == ["true"]),
        ("sadd", "k STRING, v STRING", "('k', 'a'), ('k', 'a')", lambda c: c.smembers("k") == {"a"}),
        ("zadd", "k STRING, s DOUBLE, v STRING", "('k', 1.5, 'a')", lambda c: c.zscore("k", "a") == 1.5),
        ("incrby", "k STRING, v INT", "('k', 2), ('k', 3)", lambda c: c.get("k") == "5"),
        ("hincrby", "k STRING, f STRING, v INT", "('k', 'f', 2), ('k', 'f', 3)", lambda c: c.hget("k", "f") == "5"),
        ("del", "k STRING", "('gone')", lambda c: not c.exists("gone")),
    ],
)
def test_rows_become_commands(redis_port: int, client: Any, command: str, columns: str, rows: str, read: Any) -> None:
    client.set("gone", "1")
    insert(environment(redis_port, columns, command), f"VALUES {rows}")
    assert read(client)


def test_members_of_a_set_follow_retractions(redis_port: int, client: Any) -> None:
    env = environment(redis_port, "k STRING, v STRING", "sadd")
    register_values("words", [(word,) for word in ["a", "b", "a"]])
    env.execute_sql("CREATE TABLE words (word STRING) WITH ('connector' = 'values', 'data-id' = 'words')")
    insert(env, "SELECT 'k', word || CAST(COUNT(*) AS STRING) FROM words GROUP BY word")
    assert client.smembers("k") == {"a2", "b1"}


def look_up(env: TableEnvironment, columns: str, condition: str) -> list[tuple]:
    register_values("keys", [("a",), ("b",), ("c",), ("a",)])
    env.execute_sql(
        "CREATE TABLE asked (k STRING, h AS 'h', p AS PROCTIME()) WITH ('connector' = 'values', 'data-id' = 'keys')"
    )
    query = f"SELECT o.k, {columns} FROM asked AS o LEFT JOIN stored FOR SYSTEM_TIME AS OF o.p AS s ON {condition}"
    with env.execute_sql(query).collect() as rows:
        return sorted((tuple(row) for row in rows), key=str)


def test_keys_and_fields_are_looked_up(redis_port: int, client: Any) -> None:
    client.set("a", "1.5")
    client.hset("h", mapping={"a": "true", "b": "false"})
    env = environment(
        redis_port, "k STRING, v DOUBLE", "get", **{"lookup.cache.max-rows": "10", "lookup.cache.ttl": "60"}
    )
    assert look_up(env, "s.v", "o.k = s.k") == [("a", 1.5), ("a", 1.5), ("b", None), ("c", None)]
    env = environment(redis_port, "k STRING, f STRING, v BOOLEAN", "hget", **{"lookup.async": "true"})
    found = look_up(env, "s.k, s.v", "o.k = s.f AND o.h = s.k")
    assert found == [("a", "h", True), ("a", "h", True), ("b", "h", False), ("c", None, None)]
    client.set("a", "many")
    env = environment(redis_port, "k STRING, v DOUBLE", "get")
    with pytest.raises(ExternalError, match=r"value of the key \('a',\) is 'many', which is not DOUBLE"):
        look_up(env, "s.v", "o.k = s.k")


def test_a_row_is_one_value(redis_port: int, client: Any) -> None:
    columns = "k STRING, name STRING, n INT, PRIMARY KEY (k) NOT ENFORCED"
    env = environment(redis_port, columns, "set", **{"value.data.structure": "row"})
    insert(env, "VALUES ('a', 'ann', 3), ('b', 'bob', CAST(NULL AS INT))")
    assert client.get("a") == "a\x01ann\x013"
    found = look_up(env, "s.name, s.n", "o.k = s.k")
    assert found == [("a", "ann", 3), ("a", "ann", 3), ("b", "bob", None), ("c", None, None)]


@pytest.mark.parametrize(
    ("columns", "command", "options", "message"),
    [
        ("k STRING, v INT, w INT", "set", {}, "needs 2 columns, and the table has 3"),
        ("k STRING, v ARRAY<INT>", "set", {}, "cannot hold ARRAY<INT>"),
        ("k STRING, v INT", "sett", {}, "option 'command' must be"),
        ("k STRING, v INT", "set", {"redis-mode": "cluster"}, "'redis-mode' = 'cluster' is not supported"),
        ("k STRING, v INT, PRIMARY KEY (v) NOT ENFORCED", "set", {}, "the primary key must be k"),
        ("k STRING, v INT", "rpush", {"set.if.absent": "true"}, "'set.if.absent' needs"),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    redis_port: int, columns: str, command: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        insert(environment(redis_port, columns, command, **options), "SELECT * FROM stored")


def test_a_server_that_refuses_fails_the_job(redis_port: int, client: Any) -> None:
    wrong = environment(redis_port, "k STRING, v STRING", "set", password="open")
    with pytest.raises(ExternalError, match=f"cannot write to the Redis server 127.0.0.1:{redis_port}"):
        insert(wrong, "VALUES ('a', 'b')")
    client.rpush("list", "1")
    env = environment(redis_port, "k STRING, v INT", "incrby")
    with pytest.raises(ExternalError, match="WRONGTYPE"):
        insert(env, "VALUES ('list', 1)")
    with pytest.raises(UserError, match="Redis has no NULL"):
        insert(env, "VALUES ('a', CAST(NULL AS INT))")

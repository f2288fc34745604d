"""Topics as tables of SQL."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_running import wait_for

from millstream.sql.connectors.simple import register_values
from millstream.table import EnvironmentSettings, TableEnvironment

pytestmark = pytest.mark.usefixtures("inline_engine")


@pytest.fixture
def env() -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    env.get_config().set("table.local-time-zone", "UTC")
    register_values("words", [("a",), ("b",), ("a",), ("c",), ("c",)])
    env.execute_sql("CREATE TABLE words (word STRING) WITH ('connector'='values', 'data-id'='words')")
    return env


def options(broker: Any, topic: str, connector: str = "kafka") -> str:
    return (
        f"'connector'='{connector}', 'properties.bootstrap.servers'='{broker.bootstrap_servers}', 'topic'='{topic}', "
        "'scan.bounded.mode'='latest-offset'"
    )


def rows_of(env: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(sql).collect() as rows:
        return sorted((tuple(row) for row in rows), key=repr)


def test_written_rows_are_read_with_their_metadata(env, broker, new_topic):
    topic = new_topic("t", partitions=2)
    env.execute_sql(
        "CREATE TABLE k (word STRING, n INT, sent TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', "
        "headers MAP<STRING, BYTES> METADATA, `topic` STRING METADATA VIRTUAL, part INT METADATA FROM 'partition' "
        f"VIRTUAL, `offset` BIGINT METADATA VIRTUAL) WITH ({options(broker, topic)}, 'key.format'='raw', "
        "'key.fields'='word', 'value.format'='json', 'value.fields-include'='EXCEPT_KEY', "
        "'scan.startup.mode'='earliest-offset', 'sink.delivery-guarantee'='exactly-once', "
        f"'sink.transactional-id-prefix'='{topic}')"
    )
    env.execute_sql(
        "INSERT INTO k SELECT word, 7, TO_TIMESTAMP_LTZ(5000, 3), MAP['h', ENCODE(word, 'UTF-8')] FROM words"
    ).wait()
    query = "SELECT word, n, sent, headers['h'], `topic`, part, `offset` FROM k"
    wait_for(lambda: len(rows_of(env, query)) == 5)  # brokers show a transaction a moment after its commit
    found = rows_of(env, query)
    assert sorted(row[0] for row in found) == ["a", "a", "b", "c", "c"]
    assert {row[1] for row in found} == {7}
    assert {row[2].timestamp() for row in found} == {5}
    assert all(row[3].decode() == row[0] and row[4] == topic for row in found)
    assert len({row[5:] for row in found}) == 5
    assert len({(row[0], row[5]) for row in found}) == 3  # a key has one partition


def test_the_last_row_of_each_key_is_the_table(env, broker, new_topic):
    topic = new_topic("t", partitions=2)
    env.execute_sql(
        "CREATE TABLE u (word STRING, n BIGINT, PRIMARY KEY (word) NOT ENFORCED) WITH "
        f"({options(broker, topic, 'upsert-kafka')}, 'key.format'='json', 'value.format'='json')"
    )
    env.execute_sql("INSERT INTO u SELECT word, COUNT(*) FROM words GROUP BY word").wait()
    with env.execute_sql("SELECT word, n FROM u").collect() as rows:
        left: dict[str, int] = {}
        for row in rows:
            if str(row.get_row_kind()) in ("+I", "+U"):
                left[row[0]] = row[1]
    assert left == {"a": 2, "b": 1, "c": 2}
    env.execute_sql(
        "INSERT INTO u SELECT word, n FROM (SELECT word, COUNT(*) AS n FROM words GROUP BY word) WHERE n < 2"
    ).wait()
    with env.execute_sql("SELECT COUNT(*) FROM u").collect() as rows:
        assert [tuple(row) for row in rows][-1] == (1,)


def test_changes_of_a_database_are_followed(env, broker, topic):
    changes = [
        '{"before":null,"after":{"id":1,"v":10},"op":"c"}',
        '{"before":null,"after":{"id":2,"v":20},"op":"r"}',
        '{"before":{"id":1,"v":10},"after":{"id":1,"v":11},"op":"u"}',
        '{"before":{"id":2,"v":20},"after":null,"op":"d"}',
    ]
    broker.produce(topic, changes)
    env.execute_sql(
        f"CREATE TABLE c (id INT, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({options(broker, topic)}, "
        "'format'='debezium-json', 'scan.startup.mode'='earliest-offset')"
    )
    with env.execute_sql("SELECT SUM(v), COUNT(*) FROM c").collect() as rows:
        assert [tuple(row) for row in rows][-1] == (11, 1)

"""Table connectors: written rows can be read again, and columns are read from where their declarations say."""

import datetime
import json
import os
import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from millstream.connector.sink import WriterContext
from millstream.connector.source import Boundedness
from millstream.connectors.kafka.records import KafkaRecord
from millstream.errors import MillstreamError
from millstream.formats import format_names
from millstream.sql.connectors.registry import find_connector
from millstream.sql.connectors.simple import register_values
from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, ExplainDetail, TableEnvironment
from millstream.types.row import Row, RowKind

pytestmark = pytest.mark.usefixtures("inline_engine")


@pytest.fixture
def env() -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("table.local-time-zone", "UTC")
    return env


def rows_of(env: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(sql).collect() as rows:
        return sorted((tuple(row) for row in rows), key=repr)


def context_of(env: TableEnvironment, name: str) -> Any:
    full, table = env._catalogs.table((name,))
    return env._planner().tables.context(full, table, ())  # type: ignore[arg-type]


def read(env: TableEnvironment, name: str) -> Any:
    context = context_of(env, name)
    found = find_connector(context)
    assert found.read is not None
    return found.read(context)


def write(env: TableEnvironment, name: str) -> Any:
    context = context_of(env, name)
    found = find_connector(context)
    assert found.write is not None
    return found.write(context)


# -------------------------------------------------------------------------------------------------------------- files

EVENTS = "id INT, at_time TIMESTAMP_LTZ(3), dt STRING, hr INT"


def files_table(path: Path, table_format: str, more: str = "", partitioned: str = "PARTITIONED BY (dt, hr)") -> str:
    return f"{partitioned} WITH ('connector'='filesystem', 'path'='{path}', 'format'='{table_format}'{more})"


@pytest.mark.parametrize("table_format", ["json", "csv", "parquet", "orc", "avro"])
def test_partition_columns_are_written_to_paths_and_read_from_them(
    env: TableEnvironment, tmp_path: Path, table_format: str
) -> None:
    more = ", 'csv.null-literal'='~'" if table_format == "csv" else ""
    env.execute_sql(f"CREATE TABLE f ({EVENTS}) {files_table(tmp_path, table_format, more)}")
    env.execute_sql(
        "INSERT INTO f VALUES (1, TO_TIMESTAMP_LTZ(1000, 3), '2024-01-01', 10), "
        "(2, TO_TIMESTAMP_LTZ(2000, 3), 'a/b=c', 11), (3, CAST(NULL AS TIMESTAMP_LTZ(3)), CAST(NULL AS STRING), 11)"
    ).wait()
    folders = {str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("part-*")}
    assert folders == {"dt=2024-01-01/hr=10", "dt=a%2Fb%3Dc/hr=11", "dt=__DEFAULT_PARTITION__/hr=11"}
    first_time, second_time = (datetime.datetime.fromtimestamp(second, datetime.UTC) for second in (1, 2))
    expected = [(1, first_time, "2024-01-01", 10), (2, second_time, "a/b=c", 11), (3, None, None, 11)]
    assert rows_of(env, "SELECT * FROM f") == expected
    assert rows_of(env, "SELECT id FROM f WHERE hr = 11") == [(2,), (3,)]


def test_a_file_of_a_partition_does_not_hold_its_columns(env: TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql(f"CREATE TABLE f ({EVENTS}) {files_table(tmp_path, 'json')}")
    env.execute_sql("INSERT INTO f (id, dt, hr) VALUES (1, 'x', 10)").wait()
    (part,) = tmp_path.rglob("part-*")
    assert json.loads(part.read_text()) == {"id": 1, "at_time": None}


def test_an_insert_can_name_the_partition(env: TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql(f"CREATE TABLE f (id INT, dt STRING, hr INT) {files_table(tmp_path, 'json')}")
    env.execute_sql("INSERT INTO f PARTITION (dt = 'today', hr) SELECT 1, 7").wait()
    assert rows_of(env, "SELECT * FROM f") == [(1, "today", 7)]
    with pytest.raises(SqlError, match="not partitioned by"):
        env.execute_sql("INSERT INTO f PARTITION (id = 1) SELECT 'a', 7")


def test_a_complete_partition_is_committed(env: TableEnvironment, tmp_path: Path) -> None:
    more = ", 'sink.partition-commit.policy.kind'='success-file', 'sink.partition-commit.success-file.name'='_DONE'"
    env.execute_sql(f"CREATE TABLE f (id INT, dt STRING, hr INT) {files_table(tmp_path, 'json', more)}")
    env.execute_sql("INSERT INTO f VALUES (1, 'x', 7)").wait()
    assert (tmp_path / "dt=x" / "hr=7" / "_DONE").exists()
    assert rows_of(env, "SELECT id FROM f") == [(1,)]


def test_a_table_without_partitions_is_one_directory(env: TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql(f"CREATE TABLE f (id INT) {files_table(tmp_path, 'json', partitioned='')}")
    env.execute_sql("INSERT INTO f VALUES (1)").wait()
    assert [path.parent for path in tmp_path.rglob("part-*")] == [tmp_path]


def test_metadata_columns_describe_the_file(env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n')
    columns = (
        "id INT, p STRING METADATA FROM 'file.path', n STRING METADATA FROM 'file.name', `file.size` BIGINT METADATA"
    )
    env.execute_sql(f"CREATE TABLE f ({columns}) {files_table(tmp_path, 'json', partitioned='')}")
    path = tmp_path / "a.json"
    assert rows_of(env, "SELECT * FROM f") == [(1, str(path), "a.json", os.path.getsize(path))]
    env.execute_sql(
        f"CREATE TABLE g (id INT, x STRING METADATA FROM 'file.nam') {files_table(tmp_path, 'json', partitioned='')}"
    )
    with pytest.raises(SqlError, match=r"did you mean 'file\.name'"):
        env.execute_sql("SELECT * FROM g")


@pytest.mark.parametrize("table_format", ["debezium-json", "canal-json", "maxwell-json"])
def test_a_changelog_in_files_is_read_as_a_changelog(env: TableEnvironment, tmp_path: Path, table_format: str) -> None:
    register_values("words", [Row.of_kind(RowKind.INSERT, word) for word in ("a", "b", "a")])
    env.execute_sql("CREATE TABLE words (w STRING) WITH ('connector'='values', 'data-id'='words')")
    env.execute_sql(f"CREATE TABLE f (w STRING, n BIGINT) {files_table(tmp_path, table_format, partitioned='')}")
    env.execute_sql("INSERT INTO f SELECT w, COUNT(*) FROM words GROUP BY w").wait()
    assert rows_of(env, "SELECT SUM(n) AS s FROM f")[-1:] == [(3,)]
    with env.execute_sql("SELECT * FROM f").collect() as rows:
        row_kinds = [str(row.get_row_kind()) for row in rows]
    assert sorted(row_kinds) == ["+I", "+I", "+I", "-D"]


def test_raw_lines_are_rows_of_one_column(env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("one\ntwo\n")
    env.execute_sql(f"CREATE TABLE f (line STRING) {files_table(tmp_path, 'raw', partitioned='')}")
    assert rows_of(env, "SELECT * FROM f") == [("one",), ("two",)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("'path'='/x', 'format'='json', 'json.ignore-parse-error'='true'", "ignore-parse-errors"),
        ("'path'='/x', 'format'='json', 'pth'='/x'", "did you mean 'path'"),
        ("'format'='json'", "option 'path' is missing"),
        ("'path'='/x'", "option 'format' is missing"),
        ("'path'='/x', 'format'='json', 'sink.rolling-policy.file-size'='big'", "must be a size"),
        ("'path'='/x', 'format'='json', 'sink.partition-commit.policy.kind'='mail'", "success-file"),
    ],
)
def test_a_wrong_option_is_refused(env: TableEnvironment, options: str, reason: str) -> None:
    env.execute_sql(f"CREATE TABLE f (id INT) WITH ('connector'='filesystem', {options})")
    with pytest.raises(SqlError, match=reason):
        env.execute_sql("INSERT INTO f VALUES (1)")


def test_a_connector_without_metadata_has_no_metadata_columns(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE d (id INT, x STRING METADATA) WITH ('connector'='datagen')")
    with pytest.raises(SqlError, match="has no metadata columns"):
        env.execute_sql("SELECT * FROM d")


# --------------------------------------------------------------------------------------------------------- lakehouses

WIDE = "id BIGINT, price DECIMAL(10, 2), at_time TIMESTAMP_LTZ(3), day_of DATE, tags ARRAY<STRING>, place ROW<x INT>"
VALUES = (
    "VALUES (1, 1.50, TO_TIMESTAMP_LTZ(1000, 3), DATE '2024-01-02', ARRAY['a', 'b'], ROW(7)), "
    "(2, CAST(NULL AS DECIMAL(10, 2)), CAST(NULL AS TIMESTAMP_LTZ(3)), CAST(NULL AS DATE), ARRAY['c'], ROW(8))"
)


def _lake_options(kind: str, path: Path) -> str:
    if kind == "delta":
        return f"'connector'='delta', 'table-path'='{path / 'table'}'"
    uri = f"sqlite:///{path / 'catalog.db'}"
    return (
        f"'connector'='iceberg', 'catalog-name'='lake', 'catalog-type'='sql', 'uri'='{uri}', "
        f"'warehouse'='file://{path}', 'catalog-database'='db', 'catalog-table'='t'"
    )


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_lakehouse_table_is_read_as_it_was_written(env: TableEnvironment, tmp_path: Path, kind: str) -> None:
    env.execute_sql(f"CREATE TABLE lake ({WIDE}) WITH ({_lake_options(kind, tmp_path)})")
    env.execute_sql(f"INSERT INTO lake {VALUES}").wait()
    env.execute_sql("INSERT INTO lake (id) VALUES (3)").wait()
    columns = "id, price, at_time, day_of, tags, place"
    stored_rows = rows_of(
        env, f"SELECT {columns.replace('place', 'CAST(place AS ROW<x INT>)')} FROM ({VALUES}) AS v({columns})"
    )
    assert rows_of(env, f"SELECT {columns} FROM lake WHERE id < 3") == stored_rows
    assert rows_of(env, "SELECT COUNT(*) FROM lake")[-1] == (3,)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_lakehouse_table_is_created_by_the_insert_and_not_by_explain(
    env: TableEnvironment, tmp_path: Path, kind: str
) -> None:
    with_ = f"WITH ({_lake_options(kind, tmp_path)})"
    env.execute_sql(f"CREATE TABLE lake (id INT, dt STRING) PARTITIONED BY (dt) {with_}")
    env.explain_sql("INSERT INTO lake VALUES (1, 'x')", ExplainDetail.JSON_EXECUTION_PLAN)
    with pytest.raises(MillstreamError, match=r"no table|does not exist"):
        env.execute_sql("SELECT * FROM lake")
    env.execute_sql("INSERT INTO lake VALUES (1, 'x'), (2, 'y')").wait()
    assert rows_of(env, "SELECT * FROM lake") == [(1, "x"), (2, "y")]
    assert {path.name for path in tmp_path.rglob("dt=*")} == {"dt=x", "dt=y"}


def test_versions_of_a_delta_table_can_be_read(env: TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql(
        f"CREATE TABLE lake (id INT, dt STRING) PARTITIONED BY (dt) WITH ({_lake_options('delta', tmp_path)})"
    )
    for number in (1, 2):
        env.execute_sql(f"INSERT INTO lake VALUES ({number}, 'x')").wait()
    assert rows_of(env, "SELECT * FROM lake /*+ OPTIONS('versionAsOf'='1') */") == [(1, "x")]
    assert rows_of(env, "SELECT * FROM lake") == [(1, "x"), (2, "x")]


@pytest.mark.parametrize("kind", ["VARIANT", "ARRAY<BITMAP>"])
@pytest.mark.parametrize("connector", ["delta", "iceberg", "jdbc"])
def test_types_that_exist_only_in_queries_are_refused(
    env: TableEnvironment, tmp_path: Path, connector: str, kind: str
) -> None:
    jdbc = "'connector'='jdbc', 'url'='jdbc:postgresql://localhost:1/x', 'table-name'='t'"
    env.execute_sql(
        f"CREATE TABLE x (v {kind}) WITH ({jdbc if connector == 'jdbc' else _lake_options(connector, tmp_path)})"
    )
    for statement in ("SELECT * FROM x", f"INSERT INTO x SELECT CAST(NULL AS {kind})"):
        with pytest.raises(SqlError, match="cannot read or write"):
            env.explain_sql(statement)
    assert list(tmp_path.iterdir()) == []


def test_a_lakehouse_table_without_a_primary_key_refuses_updates(env: TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql(f"CREATE TABLE lake (id BIGINT, n BIGINT) WITH ({_lake_options('delta', tmp_path)})")
    with pytest.raises(SqlError, match="accepts inserts only"):
        env.execute_sql("INSERT INTO lake SELECT id, COUNT(*) FROM (VALUES (1)) AS v(id) GROUP BY id")


# -------------------------------------------------------------------------------------------------------------- Kafka

BROKER = "'properties.bootstrap.servers'='localhost:1', 'topic'='t'"


def message(value: bytes | None, key: bytes | None = None, offset: int = 0) -> KafkaRecord:
    return KafkaRecord("t", 3, offset, 1500, key, value, (("h", b"1"), ("g", None)), "CreateTime", 9)


def pickle_copy(description: Any) -> Any:
    """Return a description as a task receives it."""
    return pickle.loads(cloudpickle.dumps(description))


def decode(source: Any, *messages: KafkaRecord) -> list[tuple[Any, ...]]:
    found = pickle_copy(source.source).schema.decode(list(messages))
    return [(str(row.get_row_kind()), *row) for row in found.values]


def encode(sink: Any, *rows: Row) -> list[tuple[Any, ...]]:
    (made,) = pickle_copy(sink.sink).serializer.messages(list(rows), None, lambda _: [0, 1])
    keys = [None] * len(made) if made.keys is None else made.keys.to_pylist()
    return list(zip(keys, made.values.to_pylist(), strict=True))


def test_columns_are_read_from_key_value_and_metadata(env: TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE k (k_id INT, name STRING, part BIGINT METADATA FROM 'partition' VIRTUAL, "
        "`offset` BIGINT METADATA VIRTUAL, sent TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', "
        "headers MAP<STRING, BYTES> METADATA, kind STRING METADATA FROM 'timestamp-type' VIRTUAL, "
        f"topic STRING METADATA VIRTUAL) WITH ('connector'='kafka', {BROKER}, 'key.format'='json', "
        "'key.fields'='k_id', 'key.fields-prefix'='k_', 'value.format'='json', 'value.fields-include'='EXCEPT_KEY', "
        "'scan.startup.mode'='earliest-offset')"
    )
    source = read(env, "k")
    assert source.schema.names == ["k_id", "name", "part", "offset", "sent", "headers", "kind", "topic"]
    assert decode(source, message(b'{"name": "x"}', b'{"id": 5}', 8)) == [
        ("+I", 5, "x", 3, 8, 1500, {"h": b"1", "g": None}, "CreateTime", "t")
    ]
    sink = write(env, "k")
    sent = datetime.datetime(1970, 1, 1, 0, 0, 2, tzinfo=datetime.UTC)
    row = Row(5, "x", sent, {"a": b"b"})
    (made,) = sink.sink.serializer.messages([row], None, lambda _: [0])
    assert encode(sink, row) == [(b'{"id":5}', b'{"name":"x"}')]
    assert made.timestamps.tolist() == [2000]
    assert made.headers == [[("a", b"b")]]


def test_upserts_are_messages_with_keys_and_deletes_are_tombstones(env: TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE u (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='upsert-kafka', "
        f"{BROKER}, 'key.format'='json', 'value.format'='json')"
    )
    source = read(env, "u")
    key = b'{"id":1}'
    assert decode(source, message(b'{"id":1,"name":"a"}', key), message(None, key)) == [
        ("+I", 1, "a"),
        ("-D", 1, None),
    ]
    rows = [Row.of_kind(kind, 1, "a") for kind in (RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)]
    value = b'{"id":1,"name":"a"}'
    assert encode(write(env, "u"), *rows) == [(key, value), (key, value), (key, None)]


def test_an_upsert_message_without_a_key_is_a_bad_record(env: TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE u (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='upsert-kafka', "
        f"{BROKER}, 'key.format'='json', 'value.format'='json')"
    )
    found = read(env, "u").source.schema.decode([message(b'{"id":1}'), message(b'{"id":2}', b'{"id":2}')])
    assert [tuple(row) for row in found.values] == [(2,)]
    assert [bad.reason for bad in found.errors] == ["the message has no key"]


def test_a_buffer_sends_the_last_row_of_each_key(env: TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE u (id INT, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='upsert-kafka', "
        f"{BROKER}, 'key.format'='raw', 'value.format'='json', 'value.fields-include'='EXCEPT_KEY', "
        "'sink.buffer-flush.max-rows'='10', 'sink.buffer-flush.interval'='1 s')"
    )
    found = encode(write(env, "u"), Row(1, 1), Row(2, 2), Row(1, 3))
    assert [value for _, value in found] == [b'{"n":2}', b'{"n":3}']


def test_changes_in_messages_are_row_kinds(env: TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE c (id INT, at_source TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL, "
        f"PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='kafka', {BROKER}, 'format'='debezium-json', "
        "'scan.startup.mode'='earliest-offset')"
    )
    source = read(env, "c")
    assert not source.mode.insert_only
    change = b'{"before":{"id":1},"after":{"id":2},"op":"u","source":{"ts_ms":5000}}'
    found = decode(source, message(change))
    assert [row[:2] for row in found] == [("-U", 1), ("+U", 2)]
    assert found[0][2].to_epoch_milli() == 5000
    made = encode(write(env, "c"), Row.of_kind(RowKind.DELETE, 1))
    assert json.loads(made[0][1])["op"] == "d"


def test_the_partitioner_chooses_the_partition_of_a_row(env: TableEnvironment) -> None:
    spread = {}
    for name in ("fixed", "round-robin"):
        env.execute_sql(
            f"CREATE TABLE `{name}` (id INT) WITH ('connector'='kafka', {BROKER}, 'format'='json', "
            f"'sink.partitioner'='{name}')"
        )
        serializer = write(env, name).sink.serializer
        (made,) = serializer.messages([Row(1), Row(2), Row(3)], None, lambda _: [0, 1])
        spread[name] = made.partitions.tolist()
    assert spread == {"fixed": [0, 0, 0], "round-robin": [0, 1, 0]}


def test_a_bounded_scan_is_bounded(env: TableEnvironment) -> None:
    options = f"'connector'='kafka', {BROKER}, 'format'='json', 'scan.startup.mode'='specific-offsets'"
    env.execute_sql(
        f"CREATE TABLE k (id INT) WITH ({options}, 'scan.startup.specific-offsets'='partition:0,offset:42;"
        "partition:1,offset:7', 'scan.bounded.mode'='latest-offset')"
    )
    source = read(env, "k").source
    assert source.boundedness() is Boundedness.BOUNDED
    assert [(each.partition, at) for each, at in source.subscription.starting.given] == [(0, 42), (1, 7)]


@pytest.mark.parametrize(
    ("definition", "options", "reason"),
    [
        ("id INT", "'format'='json'", "'properties.group.id' is missing"),
        ("id INT", "'format'='json', 'scan.startup.mode'='earliest'", "earliest-offset"),
        ("id INT", "'scan.startup.mode'='earliest-offset'", "option 'format' is missing"),
        ("id INT", "'format'='json', 'key.format'='json'", "must be set together"),
        ("id INT", "'format'='json', 'key.format'='json', 'key.fields'='ix'", "which is not a column"),
        ("id INT, PRIMARY KEY (id) NOT ENFORCED", "'format'='json'", "upsert-kafka"),
        ("id INT, x STRING METADATA FROM 'topik'", "'format'='json', 'scan.startup.mode'='latest-offset'", "topic"),
        ("id INT", "'format'='parquet', 'scan.startup.mode'='latest-offset'", "whole files"),
        ("id INT", "'format'='json', 'scan.startup.mode'='timestamp'", "timestamp-millis' is missing"),
        ("id INT", "'format'='json', 'sink.delivery-guaranty'='none'", "sink.delivery-guarantee"),
    ],
)
def test_a_wrong_kafka_table_is_refused(env: TableEnvironment, definition: str, options: str, reason: str) -> None:
    env.execute_sql(f"CREATE TABLE k ({definition}) WITH ('connector'='kafka', {BROKER}, {options})")
    with pytest.raises(SqlError, match=reason):
        read(env, "k")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("'sink.delivery-guarantee'='exactly-once'", "transactional-id-prefix"),
        ("'sink.partitioner'='fix'", "fixed"),
    ],
)
def test_a_wrong_kafka_sink_is_refused(env: TableEnvironment, options: str, reason: str) -> None:
    env.execute_sql(f"CREATE TABLE k (id INT) WITH ('connector'='kafka', {BROKER}, 'format'='json', {options})")
    with pytest.raises(SqlError, match=reason):
        env.execute_sql("INSERT INTO k VALUES (1)")


def test_every_format_checks_its_options(env: TableEnvironment) -> None:
    for number, table_format in enumerate(format_names()):
        env.execute_sql(
            f"CREATE TABLE f{number} (id INT) WITH ('connector'='filesystem', 'path'='/x', 'format'='{table_format}', "
            f"'{table_format}.no-such-option'='1')"
        )
        with pytest.raises(SqlError, match="no-such-option"):
            env.execute_sql(f"SELECT * FROM f{number}")


def test_a_writer_of_a_fixed_partition_knows_its_subtask(env: TableEnvironment) -> None:
    env.execute_sql(
        f"CREATE TABLE k (id INT) WITH ('connector'='kafka', {BROKER}, 'format'='json', 'sink.partitioner'='fixed', "
        "'sink.delivery-guarantee'='exactly-once', 'sink.transactional-id-prefix'='p')"
    )
    writer = write(env, "k").sink.create_writer(WriterContext("j", "s", 1, 2, 0, "a", 0))
    (made,) = writer._serializer.messages([Row(1)], None, lambda _: [0, 1])
    assert made.partitions.tolist() == [1]

"""Topics as tables in formats with schemas: the connector reads messages of other clients, and other clients read its
messages."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.testing.schema_registry import registry

pytestmark = pytest.mark.usefixtures("inline_engine")


@pytest.fixture
def env() -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    return env


def rows_of(env: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(sql).collect() as rows:
        return sorted(tuple(row) for row in rows)


def created(env: TableEnvironment, broker: Any, topic: str, columns: str, more: str) -> None:
    env.execute_sql(
        f"CREATE TABLE k ({columns}) WITH ('connector'='kafka', 'topic'='{topic}', "
        f"'properties.bootstrap.servers'='{broker.bootstrap_servers}', 'scan.startup.mode'='earliest-offset', "
        f"'scan.bounded.mode'='latest-offset', {more})"
    )


def order_message(folder: Path) -> tuple[Any, str]:
    """The class of a message, and the file that describes it."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    item, order = file.message_type.add(name="Item"), file.message_type.add(name="Order")
    item.field.add(name="name", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    item.field.add(name="price", number=2, type=field.TYPE_DOUBLE, label=field.LABEL_OPTIONAL)
    order.field.add(name="id", number=1, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
    order.field.add(name="item", number=2, type=field.TYPE_MESSAGE, type_name=".shop.Item", label=field.LABEL_OPTIONAL)
    order.field.add(name="tags", number=3, type=field.TYPE_STRING, label=field.LABEL_REPEATED)
    path = folder / "shop.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order")), str(path)


def test_protobuf_messages_are_read_and_written(env, broker, topic, tmp_path):
    order, file = order_message(tmp_path)
    theirs = order(id=1, tags=["a", "b"])
    theirs.item.name, theirs.item.price = "pear", 1.5
    broker.produce(topic, [theirs.SerializeToString()])
    columns = "id BIGINT, item ROW<name STRING, price DOUBLE>, tags ARRAY<STRING>"
    form = f"'format'='protobuf', 'protobuf.message-class-name'='shop.Order', 'protobuf.descriptor-set-file'='{file}'"
    created(env, broker, topic, columns, form)
    env.execute_sql("INSERT INTO k SELECT id + 1, ROW(UPPER(item.name), item.price * 2), ARRAY['c'] FROM k").wait()
    ours = order.FromString(broker.read(topic)[1].value())
    assert (ours.id, ours.item.name, ours.item.price, list(ours.tags)) == (2, "PEAR", 3.0, ["c"])
    query = "SELECT id, item.name, item.price, CARDINALITY(tags) FROM k"
    assert rows_of(env, query) == [(1, "pear", 1.5, 2), (2, "PEAR", 3.0, 1)]


def test_avro_messages_are_those_of_a_schema_registry(env, broker, topic):
    wider = {
        "type": "record", "name": "Theirs",
        "fields": [
            {"name": "more", "type": "string"}, {"name": "word", "type": ["null", "string"]},
            {"name": "n", "type": ["null", "int"]},
        ],
    }  # fmt: skip
    with registry() as server:
        server.schemas.append(json.dumps(wider))
        written = io.BytesIO()
        fastavro.schemaless_writer(written, wider, {"more": "x", "word": "a", "n": 1})
        broker.produce(topic, [struct.pack(">bI", 0, 1) + written.getvalue()])
        form = (
            "'key.format'='avro-confluent', 'key.fields'='word', 'value.format'='avro-confluent', "
            f"'key.avro-confluent.url'='{server.url}', 'value.avro-confluent.url'='{server.url}'"
        )
        created(env, broker, topic, "word STRING, n INT", form)
        env.execute_sql("INSERT INTO k VALUES ('b', 2), ('c', CAST(NULL AS INT))").wait()
        assert set(server.subjects) == {f"{topic}-key", f"{topic}-value"}
        found = broker.read(topic)[1:]
        for message, word, n in zip(found, ("b", "c"), (2, None), strict=True):
            for data, expected in ((message.key(), {"word": word}), (message.value(), {"word": word, "n": n})):
                magic, number = struct.unpack(">bI", data[:5])
                schema = fastavro.parse_schema(json.loads(server.schemas[number - 1]))
                assert (magic, fastavro.schemaless_reader(io.BytesIO(data[5:]), schema, None)) == (0, expected)
        with env.execute_sql("SELECT word, n FROM k").collect() as rows:
            assert sorted((tuple(row) for row in rows), key=str) == [("a", 1), ("b", 2), ("c", None)]

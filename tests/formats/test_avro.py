# ruff: noqa: E501
"""Avro: schemas as Flink derives them, a registry, container files read from any byte on."""

import base64
import io
import json
import pickle

import fastavro
import pyarrow as pa
import pytest
from format_cases import schema_of
from registry_server import registry

from millstream.errors import UserError
from millstream.formats import FormatType, avro_schemas, format_named
from millstream.formats.avro import ContainerFile
from millstream.formats.schema_registry import RegistryRefused, RegistryUnreachable, SchemaRegistry
from millstream.types.factory import Types
from millstream.types.row import Row

KIND = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
EVERYTHING = (
    "b BOOLEAN, t TINYINT, i INT, l BIGINT, f FLOAT, d DOUBLE, c STRING, n DECIMAL(10,2), da DATE, ti TIME(0), "
    "ts TIMESTAMP(3), z TIMESTAMP_LTZ(3), y BYTES, a ARRAY<INT>, m MAP<STRING,INT>, r ROW<x INT,y STRING>"
)
ROWS = [
    b'{"b":true,"t":1,"i":-2,"l":3,"f":0.5,"d":0.25,"c":"\xc3\xa9","n":1.50,"da":"2020-01-02","ti":"03:04:05",'
    b'"ts":"2020-01-02 03:04:05.678","z":"1969-01-02 03:04:05.678Z","y":"YWI=","a":[1,null],"m":{"k":1},"r":{"x":1,"y":"p"}}',
    b"{}",
]  # fmt: skip


@pytest.mark.parametrize("encoding", ["binary", "json"])
def test_every_type_survives_a_round_trip(encoding):
    rows = format_named("json", schema_of(EVERYTHING)).decode(ROWS).values
    made = format_named("avro", schema_of(EVERYTHING), {"encoding": encoding})
    assert made.decode(made.encode(rows)).values == rows
    again = pickle.loads(pickle.dumps(made))
    assert again.decode(made.encode(rows)).values == rows


def test_the_schema_is_the_one_flink_derives():
    schema = avro_schemas.record_schema(
        FormatType.of(pa.schema([pa.field("id", pa.int64(), False), ("r", schema_struct())]))
    )
    assert schema == {
        "type": "record",
        "name": "org.apache.flink.avro.generated.record",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "r", "default": None, "type": ["null", {
                "type": "record", "name": "org.apache.flink.avro.generated.record_r",
                "fields": [{"name": "n", "default": None,
                            "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}]}],
            }]},
        ],
    }  # fmt: skip


def schema_struct():
    return pa.struct([("n", pa.decimal128(4, 1))])


def test_a_record_is_read_with_the_schema_it_was_written_with():
    with registry() as server:
        old = Types.ROW_NAMED(["name", "extra", "id"], [Types.STRING(), Types.INT(), Types.LONG()])
        writer = format_named("avro-confluent", old, {"avro-confluent.url": server.url, "subject": "a/b"})
        reader = format_named("avro-confluent", KIND, {"url": server.url})
        data = writer.encode([Row(name="ann", extra=1, id=7), Row(name=None, extra=None, id=8)])
        assert data[0][:5] == b"\0\0\0\0\1"
        assert reader.decode(data).values == [Row(id=7, name="ann"), Row(id=8, name=None)]
        reader.decode(data)
        assert server.requests == [("POST", "/subjects/a%2Fb/versions"), ("GET", "/schemas/ids/1")]


def test_records_match_by_their_fields_not_by_their_names():
    inner = {
        "type": "record",
        "name": "Inner",
        "fields": [{"name": "y", "type": "string"}, {"name": "x", "type": "int"}],
    }
    theirs = {
        "type": "record", "name": "Theirs", "namespace": "com.shop",
        "fields": [
            {"name": "more", "type": "string"}, {"name": "r", "type": ["null", inner]},
            {"name": "a", "type": {"type": "array", "items": "com.shop.Inner"}},
            {"name": "m", "type": {"type": "map", "values": ["null", "Inner"]}},
        ],
    }  # fmt: skip
    made = {"x": 1, "y": "p"}
    with registry() as server:
        server.schemas.append(json.dumps(theirs))
        stream = io.BytesIO(b"\0\0\0\0\1")
        stream.seek(5)
        fastavro.schemaless_writer(stream, theirs, {"more": "", "r": made, "a": [made], "m": {"k": made, "n": None}})
        kind = schema_of("r ROW<x INT,y STRING>, a ARRAY<ROW<x INT,y STRING>>, m MAP<STRING,ROW<x INT,y STRING>>")
        (row,) = format_named("avro-confluent", kind, {"url": server.url}).decode([stream.getvalue()]).values
    assert row == Row(r=Row(x=1, y="p"), a=[Row(x=1, y="p")], m={"k": Row(x=1, y="p"), "n": None})


def test_an_unknown_schema_makes_a_bad_record_and_an_unreachable_registry_does_not():
    with registry() as server:
        made = format_named("avro-confluent", KIND, {"url": server.url, "on-error": "skip"})
        (bad,) = made.decode([b"\0\0\0\0\x63rest"]).errors
        assert "schema not found" in bad.reason
        server.broken = True
        with pytest.raises(RegistryUnreachable, match="backend data store"):
            made.decode([b"\0\0\0\0\x01rest"])
        url = server.url
    with pytest.raises(RegistryUnreachable):
        format_named("avro-confluent", KIND, {"url": url}).decode([b"\0\0\0\0\x01rest"])


def test_credentials_are_sent_to_the_registry_and_not_shown_in_errors():
    with registry() as server:
        server.authorization = f"Basic {base64.b64encode(b'ann:secret').decode()}"
        with pytest.raises(RegistryRefused, match="unauthorized") as caught:
            SchemaRegistry(server.url).register("s", '"int"')
        assert caught.value.status == 401
        known = SchemaRegistry(server.url.replace("http://", "http://ann:secret@"))
        assert known.register("s", '"int"') == 1
        assert known.latest("s") == (1, '"int"')
        assert SchemaRegistry(server.url, user_info="ann:secret").schema(1) == '"int"'
        with pytest.raises(RegistryRefused) as caught:
            known.schema(9)
        assert "secret" not in str(caught.value)
        with pytest.raises(RegistryRefused, match="incompatible"):
            known.register("closed", '"int"')


def test_the_next_url_is_used_if_one_does_not_respond():
    with registry() as server, registry() as other:
        other.broken = True
        assert SchemaRegistry(f"{other.url},{server.url}").register("s", '"int"') == 1
    with pytest.raises(UserError, match="address"):
        SchemaRegistry("nowhere")


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_each_block_of_a_file_comes_from_one_range(codec):
    stream = io.BytesIO()
    schema = avro_schemas.record_schema(FormatType.of(KIND))
    rows = [{"id": number, "name": f"n{number}"} for number in range(2000)]
    fastavro.writer(stream, schema, rows, codec, sync_interval=500)
    size = len(stream.getvalue())
    file = ContainerFile(stream, size)
    assert file.schema["fields"] == schema["fields"]
    for step in (1_000_000, 5000, 777, 100):
        found = [row for at in range(0, size, step) for block in file.records(at, at + step) for row in block]
        assert found == rows


def test_a_torn_file_is_an_error():
    stream = io.BytesIO()
    fastavro.writer(stream, avro_schemas.record_schema(FormatType.of(KIND)), [{"id": 1, "name": "a"}] * 100)
    data = stream.getvalue()[:-5]
    with pytest.raises(ValueError, match="sync marker"):
        list(ContainerFile(io.BytesIO(data), len(data)).records(0, len(data)))


def test_types_and_schemas_convert_in_both_directions():
    data_type = FormatType.of(
        schema_of(EVERYTHING.replace("ti TIME(0), ", "").replace("t TINYINT, ", "").replace(", z TIMESTAMP_LTZ(3)", ""))
    )
    schema = avro_schemas.record_schema(data_type)
    assert avro_schemas.record_schema(avro_schemas.format_type_of(json.loads(json.dumps(schema)))) == schema

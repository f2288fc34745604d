"""Formats by name, their options, and the types they take."""

import pickle
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from samples import SAMPLES, descriptors

from millstream.formats import (
    BadFormat,
    FormatDeserializationSchema,
    FormatType,
    MissingLibrary,
    OnError,
    TypeRoot,
    UndecodableRecord,
    UnencodableRecord,
    format_metadata,
    format_named,
    format_names,
    format_options,
)
from millstream.formats.contract import UnknownPolicy
from millstream.times import Instant
from millstream.types.factory import Types
from millstream.types.row import Row, RowKind

KIND = Types.ROW_NAMED(["id"], [Types.INT()])
DOCS = Path(__file__).parent.parent.parent / "docs" / "reference"


def test_unknown_names_and_options_are_refused_with_a_suggestion():
    with pytest.raises(BadFormat, match="did you mean 'json'"):
        format_named("jsno", KIND)
    with pytest.raises(BadFormat, match=r"did you mean json\.ignore-parse-errors"):
        format_named("json", KIND, {"json.ignore-parse-error": "true"})
    with pytest.raises(BadFormat, match="whole files"):
        format_named("parquet", KIND)
    with pytest.raises(BadFormat, match=r"needs the option avro-confluent\.url"):
        format_named("avro-confluent", KIND)
    with pytest.raises(UnknownPolicy):
        format_named("json", KIND, {"on-error": "shrug"})
    assert {"json", "parquet", "orc"} <= set(format_names())
    for name in format_names():
        assert all(option.description.endswith(".") for option in format_options(name))


def test_options_have_flinks_names_with_or_without_the_prefix_of_the_format():
    for key in ("json.ignore-parse-errors", "ignore-parse-errors"):
        made = format_named("json", KIND, {key: "true"})
        assert made.on_error is OnError.SKIP
        assert made.decode([b'{"id":"x"}']).values == [Row(id=None)]
    made = format_named("json", KIND, {"ignore-parse-errors": "true", "on-error": "dead-letter"})
    assert made.on_error is OnError.DEAD_LETTER
    assert len(made.decode([b"{"]).errors) == 1


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_can_be_pickled(name, tmp_path):
    made = SAMPLES[name].format(tmp_path)
    row = SAMPLES[name].row(3)
    again = pickle.loads(pickle.dumps(made))
    assert again.decode(made.encode([row])).values == [row]


@dataclass
class Point:
    x: int
    y: float


class Pair(NamedTuple):
    x: int
    y: float


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Types.DATACLASS(Point), Point(1, 2.5)),
        (Types.NAMED_TUPLE(Pair), Pair(1, 2.5)),
        (Types.ROW_NAMED(["x", "y"], [Types.LONG(), Types.DOUBLE()]), Row(x=1, y=2.5)),
    ],
)
@pytest.mark.parametrize("name", ["json", "csv", "avro"])
def test_records_are_of_the_declared_type(name, kind, value):
    made = format_named(name, kind)
    assert made.decode(made.encode([value])).values == [value]
    assert made.decode(made.encode([value, value])).rows(made.type_info) == [value, value]


def test_changes_are_refused_by_insert_only_formats():
    for name in ("json", "csv"):
        with pytest.raises(UnencodableRecord, match="not an insert-only row"):
            format_named(name, KIND).encode([Row.of_kind(RowKind.DELETE, id=1)])


def test_arrow_schemas_are_types_too():
    data_type = FormatType.of(
        pa.schema([("d", pa.decimal128(5, 1)), pa.field("t", pa.timestamp("us", "UTC"), nullable=False)])
    )
    assert [(child.root, child.precision, child.nullable) for child in data_type.children] == [
        (TypeRoot.DECIMAL, 5, True),
        (TypeRoot.TIMESTAMP_LTZ, 6, False),
    ]
    assert data_type.type_info().get_field_names() == ["d", "t"]


def test_a_schema_of_messages_fails_or_skips_as_its_format_says():
    failing = FormatDeserializationSchema(format_named("json", KIND))
    assert failing.deserialize(b'{"id":1}') == Row(id=1)
    with pytest.raises(UndecodableRecord, match="the message is not a valid json record"):
        failing.deserialize(b"{")
    assert FormatDeserializationSchema(format_named("json", KIND, {"on-error": "skip"})).deserialize(b"{") is None
    changes = FormatDeserializationSchema(format_named("debezium-json", KIND))
    message = b'{"before":{"id":1},"after":{"id":2},"op":"u"}'
    assert [str(row.get_row_kind()) for row in changes.deserialize_many(message)] == ["-U", "+U"]


@pytest.mark.parametrize(("order", "data"), [("big-endian", b"\0\0\0\7"), ("little-endian", b"\7\0\0\0")])
def test_raw_numbers_have_a_byte_order(order, data):
    made = format_named("raw", KIND, {"raw.endianness": order})
    assert made.encode([Row(id=7)]) == [data]
    assert made.decode([data]).values == [Row(id=7)]
    text = format_named("raw", Types.STRING(), {"charset": "latin-1"})
    assert text.decode(text.encode(["é"])).values == ["é"]
    with pytest.raises(BadFormat, match="one field"):
        format_named("raw", Types.ROW([Types.INT(), Types.INT()]))


def test_protobuf_reads_nested_messages_maps_and_enums(tmp_path):
    made = format_named(
        "protobuf", Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()]), descriptors(tmp_path)
    )
    assert made.decode([b""]).values == [Row(id=0, name="")]
    assert made.decode(made.encode([Row(id=None, name="a")])).values == [Row(id=0, name="a")]
    with pytest.raises(BadFormat, match="has no field 'nope'"):
        format_named("protobuf", Types.ROW_NAMED(["nope"], [Types.INT()]), descriptors(tmp_path))
    with pytest.raises(BadFormat, match="there is no such module"):
        format_named("protobuf", KIND, {"message-class-name": "nowhere_pb2.Message"})
    struct = pa.schema(
        [("fields", pa.map_(pa.string(), pa.struct([("number_value", pa.float64()), ("string_value", pa.string())])))]
    )
    known = format_named("protobuf", struct, {"message-class-name": "google.protobuf.struct_pb2.Struct"})
    (row,) = known.decode(known.encode([Row(fields={"a": Row(number_value=1.5, string_value=None)})])).values
    assert row == Row(fields={"a": Row(number_value=1.5, string_value=None)})
    enum = pa.schema([("name", pa.string()), ("syntax", pa.string())])
    kinds = format_named("protobuf", enum, {"message-class-name": "google.protobuf.type_pb2.Type"})
    assert kinds.decode(kinds.encode([Row(name="t", syntax="SYNTAX_PROTO3")])).values == [
        Row(name="t", syntax="SYNTAX_PROTO3")
    ]


def test_the_reference_page_is_up_to_date():
    generator = runpy.run_path(str(DOCS / "generate_formats.py"))
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    assert page == generator["page"](), "run: python docs/reference/generate_formats.py"


@pytest.mark.parametrize(
    ("mode", "text"), [("FAIL", None), ("DROP", b'{"m":{"a":1}}'), ("LITERAL", b'{"m":{"a":1,"nothing":2}}')]
)
def test_null_keys_of_maps_follow_the_mode(mode, text):
    kind = Types.ROW_NAMED(["m"], [Types.MAP(Types.STRING(), Types.INT())])
    made = format_named("json", kind, {"json.map-null-key.mode": mode, "json.map-null-key.literal": "nothing"})
    row = Row(m={"a": 1, None: 2})
    if text is None:
        with pytest.raises(UnencodableRecord, match="NULL key"):
            made.encode([row])
    else:
        assert made.encode([row]) == [text]


@pytest.mark.parametrize(("name", "library"), [("avro", "fastavro"), ("protobuf", "google.protobuf.descriptor_pool")])
def test_a_library_that_is_missing_is_named_with_how_to_install_it(name, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingLibrary, match=rf"pip install 'millstream\[{name}\]'"):
        format_named(name, KIND, {"message-class-name": "a.B"} if name == "protobuf" else {})


METADATA = {
    "debezium-json": (
        b'{"schema":{"a":1},"payload":{"after":{"id":1},"op":"c","ts_ms":5,"source":{"ts_ms":7,"db":"d","schema":"s",'
        b'"table":"t","n":1}}}',
        ['{"a":1}', Instant(0, 5000000), Instant(0, 7000000), "d", "s", "t",
         {"ts_ms": "7", "db": "d", "schema": "s", "table": "t", "n": "1"}],
    ),
    "canal-json": (
        b'{"data":[{"id":1}],"type":"INSERT","database":"d","table":"t","sqlType":{"id":4},"pkNames":["id"],"ts":5,"es":7}',
        ["d", "t", {"id": 4}, ["id"], Instant(0, 5000000), Instant(0, 7000000)],
    ),
    "maxwell-json": (
        b'{"data":{"id":1},"type":"insert","database":"d","table":"t","primary_key_columns":["id"],"ts":5}',
        ["d", "t", ["id"], Instant(0, 5000000)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", METADATA)
def test_changelog_formats_have_metadata_of_the_source(name):
    message, told = METADATA[name]
    options = {"schema-include": "true"} if name == "debezium-json" else {}
    made = pickle.loads(pickle.dumps(format_named(name, KIND, options, metadata=list(format_metadata(name)))))
    (row,) = made.decode([message]).values
    assert list(row) == [1, *told]
    assert made.type_info.get_field_names() == ["id", *format_metadata(name)]
    made.type_info.to_arrow([row])
    with pytest.raises(BadFormat, match="have no metadata field 'nope'"):
        format_named(name, KIND, metadata=["nope"])
    with pytest.raises(BadFormat, match="have no metadata"):
        format_named("json", KIND, metadata=["table"])

"""PyFlink's `datastream.formats`: its builders make schemas, readers and writers that work in a job."""

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.common import Encoder, Types, WatermarkStrategy
from millstream.common.configuration import Configuration
from millstream.common.typeinfo import RowTypeInfo
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    OrcFiles,
    OutputFileConfig,
    RollingPolicy,
    StreamingFileSink,
)
from millstream.datastream.formats.avro import (
    AvroBulkWriters,
    AvroFiles,
    AvroInputFormat,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
    NoJavaClass,
)
from millstream.datastream.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from millstream.datastream.formats.json import BadJsonSchema, JsonRowDeserializationSchema, JsonRowSerializationSchema
from millstream.datastream.formats.orc import OrcBulkWriters
from millstream.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from millstream.datastream.formats.row_types import NoRowType
from millstream.datastream.functions import SinkFunction
from millstream.errors import UserError
from millstream.formats import FormatType, UndecodableRecord
from millstream.table import DataTypes
from millstream.types.factory import TypeInformation
from millstream.types.row import Row

KIND = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
ROWS = [Row(id=number, name=f"n{number}") for number in range(20)]
SCHEMA = AvroSchema.parse_string(
    '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}'
)


@pytest.fixture
def env(inline_engine):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


def read(env, source, method=FileSource.for_record_stream_format):
    stream = env.from_source(method(source[0], str(source[1])).build(), WatermarkStrategy.no_watermarks(), "files")
    with stream.execute_and_collect() as found:
        return sorted(found, key=lambda row: row["id"])


def write(env, rows, kind, path, factory, suffix, **options):
    builder = FileSink.for_bulk_format(str(path), factory)
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    builder.with_output_file_config(OutputFileConfig.builder().with_part_suffix(suffix).build())
    if options:
        builder.enable_compact(options["strategy"], options["compactor"])
    env.from_collection(rows, kind).sink_to(builder.build())
    env.execute()


def test_rows_survive_a_round_trip_through_parquet(env, tmp_path):
    config = Configuration.from_dict({"parquet.compression": "ZSTD"})
    write(env, ROWS, KIND, tmp_path, ParquetBulkWriters.for_row_type(KIND, config), ".parquet")
    assert all(path.suffix == ".parquet" for path in tmp_path.iterdir())
    found = pq.ParquetFile(next(tmp_path.iterdir())).metadata.row_group(0).column(0)
    assert found.compression == "ZSTD"
    only = ParquetColumnarRowInputFormat(Types.ROW_NAMED(["id"], [Types.LONG()]))
    assert read(env, (only, tmp_path), FileSource.for_bulk_file_format) == [Row(id=row.id) for row in ROWS]


def test_rows_are_written_to_compacted_orc(env, tmp_path):
    options = {
        "strategy": FileCompactStrategy.builder().set_size_threshold(1 << 30).set_num_compact_threads(2).build(),
        "compactor": FileCompactor.record_wise_file_compactor(),
    }
    write(env, ROWS, KIND, tmp_path, OrcBulkWriters.for_row_type(KIND), ".orc", **options)
    (only,) = tmp_path.iterdir()
    assert only.name.startswith("compacted-part-")
    assert read(env, (OrcFiles(KIND), tmp_path), FileSource.for_bulk_file_format) == ROWS


def test_dicts_survive_a_round_trip_through_avro(env, tmp_path):
    dicts = [row.as_dict() for row in ROWS]
    write(env, dicts, None, tmp_path, AvroBulkWriters.for_generic_record(SCHEMA), ".avro")
    whole = AvroInputFormat(str(tmp_path), SCHEMA)
    found = [record for split in whole.create_input_splits(3) for record in whole.read(split)]
    assert sorted(found, key=lambda row: row["id"]) == dicts
    assert whole.get_produced_type() == GenericRecordAvroTypeInfo(SCHEMA)
    with env.create_input(whole).execute_and_collect() as records:
        assert sorted(records, key=lambda record: record["id"]) == dicts
    with pytest.raises(TypeError, match="is not an input format"):
        env.create_input("file.avro")
    assert read(env, (AvroFiles(KIND), tmp_path), FileSource.for_bulk_file_format) == ROWS
    kind = GenericRecordAvroTypeInfo(SCHEMA)
    assert TypeInformation.type_from_json(json.loads(json.dumps(kind.to_json()))) == kind


def test_dicts_survive_a_round_trip_through_parquet_with_an_avro_schema(env, tmp_path):
    dicts = [row.as_dict() for row in ROWS]
    write(env, dicts, None, tmp_path, AvroParquetWriters.for_generic_record(SCHEMA), ".parquet")
    assert read(env, (AvroParquetReaders.for_generic_record(SCHEMA), tmp_path)) == dicts


def test_csv_files_follow_a_schema(env, tmp_path):
    builder = CsvSchema.builder().add_number_column("id").add_string_column("name").set_column_separator(";")
    schema = builder.set_use_header().set_strict_headers().set_null_value("-").build()
    assert (len(schema), len(builder)) == (2, 2)
    write(env, [*ROWS, Row(id=99, name=None)], KIND, tmp_path, CsvBulkWriters.for_schema(schema), ".csv")
    for path in tmp_path.iterdir():
        assert path.read_text().startswith("id;name\n")
    assert read(env, (CsvReaderFormat.for_schema(schema), tmp_path)) == [*ROWS, Row(id=99, name=None)]
    (tmp_path / "other.csv").write_text("id;nam\n")
    with pytest.raises(UserError, match="names the columns"):
        read(env, (CsvReaderFormat.for_schema(schema), tmp_path))


def test_every_special_character_of_a_csv_schema_has_an_effect(env, tmp_path):
    builder = CsvSchema.builder().add_array_column("a", "|", Types.INT()).add_boolean_column("id")
    builder.add_number_column("n", Types.DOUBLE()).set_quote_char("'").set_escape_char("\\").set_allow_comments()
    builder.set_skip_first_data_row()
    both = CsvSchema.builder().add_string_column("gone").clear_columns().add_columns_from(builder.build()).build()
    assert both.size() == 3
    assert repr(builder.build()) == "[CsvSchema: columns=['a', 'id', 'n'], header? False]"
    (tmp_path / "f.csv").write_text("skipped\n1|2,true,0.5\n#no\n'3',false,bad\n'4',false,1\n")
    found = read(env, (CsvReaderFormat.for_schema(builder.build(), "skip"), tmp_path))
    assert found == [Row(a=[4], id=False, n=1.0), Row(a=[1, 2], id=True, n=0.5)]
    for wrong in (builder.set_column_separator, builder.set_quote_char, builder.set_escape_char):
        with pytest.raises(ValueError, match="must be a single char"):
            wrong("ab")


def test_json_messages_are_rows():
    kind = RowTypeInfo([Types.INT(), Types.SQL_TIMESTAMP()], ["id", "at"])
    schema = JsonRowDeserializationSchema.builder().type_info(kind).build()
    row = schema.deserialize(b'{"id": 1, "at": "2020-01-02T03:04:05.678Z"}')
    assert JsonRowSerializationSchema.builder().with_type_info(kind).build().serialize(row) == (
        b'{"id":1,"at":"2020-01-02T03:04:05.678Z"}'
    )
    assert schema.get_produced_type() == kind
    strict = JsonRowDeserializationSchema.builder().type_info(kind).fail_on_missing_field().build()
    with pytest.raises(UndecodableRecord, match="could not find field"):
        strict.deserialize(b'{"id": 1}')
    lenient = JsonRowDeserializationSchema.builder().type_info(kind).ignore_parse_errors().build()
    assert lenient.deserialize(b'{"id": "x"}') == Row(id=None, at=None)
    assert lenient.deserialize(b"{") is None
    for builder in (JsonRowDeserializationSchema.builder(), JsonRowSerializationSchema.builder()):
        with pytest.raises(TypeError):
            builder.build()


def test_a_json_schema_is_a_type():
    text = json.dumps({
        "type": "object",
        "definitions": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "properties": {
            "n": {"type": ["null", "integer"]}, "s": {"type": "string"}, "b": {"type": "boolean"},
            "d": {"type": "string", "format": "date"}, "y": {"type": "string", "contentEncoding": "base64"},
            "a": {"type": "array", "items": {"type": "string"}}, "p": {"$ref": "#/definitions/point"},
            "o": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        },
    })  # fmt: skip
    schema = JsonRowDeserializationSchema.builder().json_schema(text).build()
    row = schema.deserialize(b'{"n": 12, "a": ["q"], "p": {"x": 1.5}, "y": "AAA="}')
    assert (row.n, row.a, row.p, row.y, row.o) == (Decimal(12), ["q"], Row(x=Decimal("1.5")), b"\0\0", None)
    for wrong in ("[]", "{", '{"type": "object", "properties": {"x": {"type": "magic"}}}', '{"$ref": "#"}'):
        with pytest.raises(BadJsonSchema):
            JsonRowDeserializationSchema.builder().json_schema(wrong)


def test_csv_messages_are_rows():
    builder = CsvRowDeserializationSchema.Builder(KIND).set_field_delimiter("|").set_null_literal("-")
    builder.set_quote_character("'").set_escape_character("\\").set_allow_comments(True)
    schema = builder.set_array_element_delimiter(",").set_ignore_parse_errors(True).build()
    assert schema.deserialize(b"1|'a|b'") == Row(id=1, name="a|b")
    assert schema.deserialize(b"x|-") == Row(id=None, name=None)
    writing = CsvRowSerializationSchema.Builder(KIND).set_field_delimiter("|").set_line_delimiter("\r\n")
    writing.set_quote_character("'").set_null_literal("-").set_array_element_delimiter(",").set_escape_character("\\")
    assert writing.build().serialize(Row(id=1, name="it's")) == b"1|'it''s'\r\n"
    assert writing.disable_quote_character().build().serialize(Row(id=None, name="a b")) == b"-|a b\r\n"
    for made in (CsvRowDeserializationSchema.Builder, CsvRowSerializationSchema.Builder):
        with pytest.raises(TypeError):
            made(None)


def test_avro_messages_are_rows(tmp_path):
    (tmp_path / "s.avsc").write_text(str(SCHEMA))
    assert AvroSchema.parse_file(str(tmp_path / "s.avsc")) == SCHEMA
    data = AvroRowSerializationSchema(avro_schema_string=str(SCHEMA)).serialize(ROWS[3])
    assert AvroRowDeserializationSchema(avro_schema_string=str(SCHEMA)).deserialize(data) == ROWS[3]
    with pytest.raises(TypeError):
        AvroRowDeserializationSchema()
    with pytest.raises(NoJavaClass, match=r"com\.example\.User"):
        AvroRowSerializationSchema("com.example.User")


def test_row_types_may_be_arrow_schemas():
    ParquetBulkWriters.for_row_type(pa.schema([("id", pa.int64())]))
    with pytest.raises(NoRowType):
        OrcBulkWriters.for_row_type(Types.INT())
    with pytest.raises(NoRowType):
        OrcBulkWriters.for_row_type("ROW<id INT>")


def test_stream_formats_take_types_of_the_table_api(env, tmp_path):
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001 - a TIMESTAMP has no time zone
    row_type = DataTypes.ROW(
        [
            DataTypes.FIELD("id", DataTypes.TINYINT()),
            DataTypes.FIELD("name", DataTypes.VARCHAR(10)),
            DataTypes.FIELD("price", DataTypes.DECIMAL(4, 1)),
            DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
            DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
        ]
    )
    stream_type = Types.ROW(
        [Types.BYTE(), Types.STRING(), Types.BIG_DEC(), Types.SQL_TIMESTAMP(), Types.LIST(Types.STRING())]
    )
    rows = [Row(1, "a", Decimal("1.25"), moment, ["x", "y"])]
    write(env, rows, stream_type, tmp_path / "p", ParquetBulkWriters.for_row_type(row_type), ".parquet")
    schema = pq.read_schema(next((tmp_path / "p").iterdir()))
    assert [str(field.type) for field in schema][:4] == ["int8", "string", "decimal128(4, 1)", "timestamp[ms]"]
    (row,) = read(env, (ParquetColumnarRowInputFormat(row_type), tmp_path / "p"), FileSource.for_bulk_file_format)
    assert row == Row(id=1, name="a", price=Decimal("1.3"), at=moment, tags=["x", "y"])
    write(env, rows, stream_type, tmp_path / "o", OrcBulkWriters.for_row_type(row_type), ".orc")
    assert read(env, (OrcFiles(FormatType.of(schema)), tmp_path / "o"), FileSource.for_bulk_file_format) == [row]
    with pytest.raises(NoRowType):
        OrcBulkWriters.for_row_type(DataTypes.INT())
    with pytest.raises(TypeError, match="'INT' is not a data type"):
        CsvSchema.builder().add_number_column("n", "INT")


def test_each_array_column_of_a_csv_schema_has_its_separator(env, tmp_path):
    builder = CsvSchema.builder().add_array_column("id", separator=";", element_type=DataTypes.INT())
    builder.add_array_column("flags", separator=":", element_type=DataTypes.BOOLEAN())
    builder.add_array_column("names", separator=",", element_type=DataTypes.STRING())
    schema = (
        CsvSchema.builder().add_columns_from(builder.build()).set_column_separator("|").disable_quote_char().build()
    )
    rows = [Row(id=[1, 2], flags=[True, False], names=["a", "b"])]
    write(env, rows, schema.row_type(), tmp_path, CsvBulkWriters.for_schema(schema), ".csv")
    assert next(tmp_path.iterdir()).read_text() == "1;2|true:false|a,b\n"
    assert read(env, (CsvReaderFormat.for_schema(schema), tmp_path)) == rows


def test_rows_are_written_by_position_unless_they_have_the_names_of_the_schema():
    schema = AvroRowSerializationSchema(avro_schema_string=str(SCHEMA))
    by_position = schema.serialize(Row(f0=1, f1="hi"))
    assert by_position == schema.serialize(Row(1, "hi")) == schema.serialize(Row(name="hi", id=1))
    with pytest.raises(UserError, match="the row has 1 fields, its type has 2: id, name"):
        schema.serialize(Row(f0=1))


def test_the_older_name_of_the_file_sink(env, tmp_path):
    sink = StreamingFileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink.with_rolling_policy(policy=RollingPolicy.default_rolling_policy())
    built = sink.build()
    assert isinstance(built, SinkFunction)
    env.from_collection(["a", "b"], Types.STRING()).add_sink(built)
    env.execute()
    assert sorted("".join(path.read_text() for path in tmp_path.iterdir() if path.is_file())) == ["\n", "\n", "a", "b"]
    bulk = StreamingFileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(KIND))
    with pytest.raises(ValueError, match="must be OnCheckpointRollingPolicy"):
        bulk.with_rolling_policy(RollingPolicy.default_rolling_policy())
    assert bulk.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()


def test_decimals_of_a_csv_schema_have_their_scale(env, tmp_path):
    schema = CsvSchema.builder().add_number_column("id", DataTypes.DECIMAL(2, 0)).build()
    write(env, [Row(id=Decimal("1.5"))], schema.row_type(), tmp_path, CsvBulkWriters.for_schema(schema), ".csv")
    assert next(tmp_path.iterdir()).read_text() == "2\n"
    next(tmp_path.iterdir()).write_text("1.5\n")
    assert read(env, (CsvReaderFormat.for_schema(schema), tmp_path)) == [Row(id=Decimal("2"))]
